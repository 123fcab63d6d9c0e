"""A conversation as Markdown, for people: the branch that is shown, with who said what and by which model.

Texts stand as they were written. Pure.
"""

from __future__ import annotations

from chatsite.chat.transfer.form import Talk, Turn


def written(talk: Talk) -> str:
    """The title as a heading, then every message of the branch under a heading of its own."""
    title = " ".join(talk.title.split()) or "Conversation"
    blocks = [f"# {title}", f"*{talk.created_at:%Y-%m-%d %H:%M} UTC*"]
    if talk.system_prompt:
        blocks += ["## System", talk.system_prompt]
    for turn in branch_of(talk):
        blocks += [f"## {_heading(turn)}", turn.text]
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


def branch_of(talk: Talk) -> list[Turn]:
    """From the root to the active message; where none is named, to the last one."""
    turns = {turn.number: turn for turn in talk.messages}
    at = talk.active or (talk.messages[-1].number if talk.messages else None)
    branch = []
    while at is not None:
        branch.append(turns[at])
        at = turns[at].parent
    return branch[::-1]


def _heading(turn: Turn) -> str:
    if turn.role == "user":
        return "You"
    model = " ".join(turn.made.model.split()) if turn.made else ""
    end = "" if turn.state == "complete" else f" ({turn.state})"
    return f"Assistant{f', {model}' if model else ''}{end}"
