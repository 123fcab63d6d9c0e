"""Five hundred hostile texts and sixty links and pictures, as answers, questions, titles, history: no effect at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Route, expect

from tests.e2e.hostile import LINKS, LITERAL_TEXTS, PAYLOADS
from tests.e2e.tab import Tab
from tests.livesite import LiveSite

pytestmark = pytest.mark.browser

# What a text may become, and what of it may lead somewhere. Everything else is an effect.
CHECK = """() => void (window.effects = (root) => {
  const allowed = new Set(("h3 h4 h5 h6 p ul ol li blockquote hr table thead tbody tr th td em strong s a code pre " +
    "br div span button svg use article time").split(" "));
  const found = [];
  for (const node of root.querySelectorAll("*")) {
    const isMath = node.namespaceURI.endsWith("MathML");
    const isName = node.matches("article > h2.unseen:first-child");  // the page's own word for who speaks
    if (!isMath && !isName && !allowed.has(node.localName)) found.push(`<${node.localName}>`);
    for (const { name, value } of node.attributes) {
      if (/^on|^src|^srcset$|^action$|^id$|^formaction$/.test(name)) found.push(`${node.localName} ${name}`);
      if (name === "style" && !isMath) found.push(`${node.localName} style`);
      if (name === "href" && node.localName !== "use" && !/^(https?:|mailto:)/.test(value)) found.push(`href ${value}`);
    }
    if (node.localName === "a" && node.rel !== "noopener nofollow") found.push("a without rel");
  }
  if (window.owned) found.push("it ran");
  return found;
})"""
# Each text as an answer, whole and in pieces, and as a question; in the page, where pictures load and scripts run.
SHOW_ALL = """async ([texts, numPieces]) => {
  const { MarkdownView } = await import("/static/chat/markdown/view.js");
  const { QuestionView } = await import("/static/chat/thread/question.js");
  const { settled } = await import("/static/chat/markdown/math.js");
  const log = document.querySelector("#transcript");
  const found = [];
  for (const text of texts) {
    const answer = new MarkdownView(log.appendChild(document.createElement("div")));
    const step = Math.max(1, Math.ceil(text.length / (numPieces || text.length)));
    for (let end = step; end < text.length; end += step) {
      answer.update(text.slice(0, end), false);
      found.push(...window.effects(answer.root));
    }
    answer.update(text, true);
    const question = new QuestionView({ id: "1", text, variants: ["1"], created_at: "2026-01-01T00:00:00Z" }, {});
    log.append(question.node);
    if (question.node.querySelector(".said").textContent !== text) found.push("a question was changed");
    await settled();
    for (const root of [answer.root, question.node]) {
      const effects = window.effects(root);
      if (effects.length) found.push(`${text}: ${effects}`);
      root.remove();
    }
  }
  return found;
}"""
TEXT_OF = """async (texts) => {
  const { MarkdownView } = await import("/static/chat/markdown/view.js");
  return texts.map((text) => {
    const view = new MarkdownView(document.createElement("div"));
    view.update(text, true);
    return view.root.textContent;
  });
}"""


def shown_effects(tab: Tab) -> list[str]:
    tab.page.evaluate(CHECK)
    found = tab.page.evaluate(SHOW_ALL, [[*PAYLOADS, *LINKS], 4])
    return list(found) + tab.faults()


def test_five_hundred_texts_and_sixty_links_have_no_effect(tab: Tab) -> None:
    assert len(set(PAYLOADS)) == 500 and len(set(LINKS)) == 60
    assert shown_effects(tab) == []


def test_fifty_of_them_cut_at_every_character_have_none_either(tab: Tab) -> None:
    tab.page.evaluate(CHECK)
    assert tab.page.evaluate(SHOW_ALL, [[*PAYLOADS[::14], *LINKS[::4]], 0]) == []


def test_texts_in_angle_brackets_stay_in_sight(tab: Tab) -> None:
    shown = tab.page.evaluate(TEXT_OF, [text for text, _ in LITERAL_TEXTS])
    gone = [vector for (_, vector), text in zip(LITERAL_TEXTS, shown, strict=True) if vector not in text]
    assert gone == []


CARELESS: dict[str, dict[str, tuple[str, str]]] = {
    "any address is a link": {
        "build.js": ("/^(https?:|mailto:)/i", "/^/"),
        "parser.js": ("markdown.use(", "markdown.validateLink = () => true; markdown.use("),
    },
    "pictures load": {
        "build.js": ('link(token.attrGet("src"))', 'el("img", { src: token.attrGet("src") })'),
    },
    "links tell where they come from": {"build.js": ('rel: "noopener nofollow"', 'rel: "nofollow"')},
    "formulas give names": {"math.js": ("node.removeAttribute(name)", "node.getAttribute(name)")},
}


@pytest.mark.parametrize("name", CARELESS)
def test_a_page_that_is_less_careful_is_caught(site: LiveSite, person: BrowserContext, name: str) -> None:
    tab = Tab(person.new_page(), site.url)
    for module, (old, new) in CARELESS[name].items():
        change_module(tab, module, old, new)
    tab.open()
    tab.page.evaluate(CHECK)
    assert tab.page.evaluate(SHOW_ALL, [[*LINKS, "$$x \\tag{1} \\label{status}$$"], 1]) != []


def change_module(tab: Tab, name: str, old: str, new: str) -> None:
    """The page gets the module `name` with other words in it."""

    def answer(route: Route) -> None:
        source = route.fetch().text()
        assert old in source
        route.fulfill(body=source.replace(old, new), content_type="text/javascript")

    tab.page.route(f"**/markdown/{name}", answer)


@contextmanager
def stored(tab: Tab, texts: list[str]) -> Iterator[None]:
    """As if the server held these texts as titles and as messages, some of them from the cache."""

    def titles(route: Route) -> None:
        body = route.fetch().json()
        (item, *_) = body["items"]
        body["items"] = [
            item | {"id": f"{i:08x}{item['id'][8:]}", "title": text} for i, text in enumerate(texts[:60])
        ]
        route.fulfill(json=body)

    def messages(route: Route) -> None:
        body = route.fetch().json()
        question, answer = body["items"][-2:]
        body["items"] = []
        for i, text in enumerate(texts):
            row: dict[str, Any] = json.loads(json.dumps(answer if i % 2 else question))
            row |= {"id": str(i), "parent": str(i - 1) if i else None, "text": text, "variants": [str(i)]}
            if i % 4 == 1:
                row["generation"] |= {"origin": "semantic", "cache_age_s": 5}
            body["items"].append(row)
        route.fulfill(json=body)

    tab.page.route("**/api/conversations?*", titles)
    tab.page.route("**/messages?*", messages)
    yield
    tab.page.unroute_all(behavior="wait")


def test_history_and_titles_have_no_effect_either(tab: Tab) -> None:
    tab.ask("First")
    tab.wait_for_end()
    tab.conversation()
    texts = [*PAYLOADS[::2], *LINKS]
    with stored(tab, texts):
        tab.page.reload()
        expect(tab.page.locator("#transcript article")).to_have_count(len(texts))
        expect(tab.page.locator("#conversations")).to_contain_text("onerror")
        tab.page.evaluate(CHECK)
        every = "[...document.querySelectorAll('article :is(.text, .said)')].flatMap(window.effects)"
        assert tab.page.evaluate(every) == []
        assert tab.page.locator("#conversations :is(img, script, iframe, form, style)").count() == 0
        assert tab.page.evaluate("window.owned") is None
