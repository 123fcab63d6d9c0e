"""A long chat as people have them, put into the site by its own import. Knows the file's form, not the page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.sync_api import Page

BEGAN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
ANSWER = """Answer {number}: some words about **binary search**, `code` and the formula $x_{number}^2$.

1. Look at the middle.
2. Go on in one half.

```python
def find_{number}(items, wanted):
{lines}
    return None
```

| step | left |
|---|---|
| 1 | 500 |
| 2 | 250 |
"""


def long_chat(num_messages: int, num_code_lines: int = 12) -> dict[str, Any]:
    """A file with one chat: questions and answers in turn, with lists, tables, formulas and code."""
    lines = "\n".join(
        f"    middle_{i} = (low + high) // 2  # the middle of what is left" for i in range(num_code_lines)
    )
    messages = []
    for number in range(1, num_messages + 1):
        is_question = number % 2 == 1
        text = f"Question {number}" if is_question else ANSWER.format(number=number, lines=lines)
        messages.append(
            {
                "number": number,
                "parent": number - 1 or None,
                "role": "user" if is_question else "assistant",
                "text": text,
                "created_at": (BEGAN + timedelta(minutes=number)).isoformat(),
            }
        )
    moment = BEGAN.isoformat()
    talk = {"title": "A long chat", "created_at": moment, "updated_at": moment, "messages": messages}
    return {"format": "rill-conversations", "version": 1, "conversations": [talk | {"active": num_messages}]}


def put_in(page: Page, url: str, file: dict[str, Any]) -> str:
    """The id of the chat, which belongs to who is signed in on `page`, a page of the chat."""
    token = page.locator("meta[name=csrf-token]").get_attribute("content") or ""
    headers = {"X-CSRFToken": token, "Referer": url}
    answer = page.request.post(f"{url}/api/conversations/import", data=file, headers=headers)
    assert answer.status == 201, answer.text()
    return str(answer.json()["conversations"][0])
