"""From a history to token ids, exactly: the rendered text is the authority, the ledger's ids are kept where they fit.

Knows spans: which part of the rendered text the template wrote and which part a segment. Only the template's own
text can become control tokens. Does not know the model, its window or who asks.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from inference.errors import InvalidRequest
from inference.front.forms import forms_of
from inference.front.frames import frame_of, has_tags, marked_chat
from inference.front.ledger import num_unplaced, run_for, with_ledgers_of_calls
from inference.front.spans import NOWHERE, Span, find_spans, joined, marker_spans
from inference.front.templates import Chat, ChatTemplate, TemplateRefused
from inference.front.tokenizer import Tokenizer
from inference.tools.calls import BadCalls, from_json
from inference.types import RAW, Segment

ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True)
class Prompt:
    """`num_fallbacks` counts ledgers that did not fit, and one more where none could be used for the text's sake."""

    text: str
    ids: list[int]
    num_ledger_tokens: int = 0
    num_fallbacks: int = 0


@dataclass(frozen=True, slots=True)
class _Fixed:
    """Ids that are taken as they are, and how they read behind other tokens."""

    ids: tuple[int, ...]
    text: str


@dataclass(slots=True)
class _Draft:
    """Prompt parts in order: fixed ids (control tokens, ledgers), and text still to be encoded.

    Neighbouring texts are joined, so that they are encoded as one, as the model was trained.
    """

    num_ledger_tokens: int = 0
    num_fallbacks: int = 0
    _parts: list[str | _Fixed] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)  # of the last part: there may be thousands

    @property
    def parts(self) -> list[str | _Fixed]:
        if self._texts:
            self._parts.append("".join(self._texts))
            self._texts.clear()
        return self._parts

    @property
    def text(self) -> str:
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    def add_control(self, token: int, text: str) -> None:
        self.parts.append(_Fixed((token,), text))

    def add_ledger(self, ids: tuple[int, ...], text: str, *, hides_blank: bool) -> None:
        """`hides_blank`: the first token begins with a blank that shows only behind other tokens. The template may
        have written it; else it was there when the answer was generated."""
        if hides_blank and self.parts:
            text = f" {text}"
            last = self.parts[-1]
            if isinstance(last, str) and last.endswith(" "):
                self.parts[-1:] = [last[:-1]] if len(last) > 1 else []
        self.parts.append(_Fixed(ids, text))
        self.num_ledger_tokens += len(ids)

    def add_text(self, text: str) -> None:
        if text:
            self._texts.append(text)


class PromptBuilder:
    """Pure: the same history gives the same prompt (apart from what the template takes from the date)."""

    def __init__(self, tokenizer: Tokenizer, template: ChatTemplate) -> None:
        self._tokenizer = tokenizer
        self._template = template

    def build(
        self, segments: Sequence[Segment], *, tools: str = "", add_generation_prompt: bool = True
    ) -> Prompt:
        """Raises InvalidRequest for a history that the template refuses in every form that says the same."""
        check_segments(segments)
        if segments[0].role == RAW:
            return self._raw(segments[0].text)
        chat, text = self._accepted(Chat(segments, tools, add_generation_prompt))
        spans = self._spans(chat, text)
        if spans is None:
            return self._without_spans(chat)
        return self._assemble(text, spans, chat.segments)

    def go_on(
        self, segments: Sequence[Segment], *, tools: str = "", add_generation_prompt: bool = True
    ) -> Prompt:
        """The prompt behind which the last segment, an answer, goes on: as it was asked for, and what there is of it.

        Nothing of the template stands between the two, so where its ids are known the model is where it was.
        """
        check_segments(segments)
        if len(segments) < 2 or segments[-1].role != "assistant" or segments[-1].tool_calls:
            raise InvalidRequest("only an answer in words, behind a question, can go on")
        asked, begun = segments[:-1], segments[-1]
        prompt = self.build(asked, tools=tools, add_generation_prompt=add_generation_prompt)
        draft = _Draft(prompt.num_ledger_tokens, prompt.num_fallbacks)
        draft.parts.append(_Fixed(tuple(prompt.ids), prompt.text))
        self._add_segment(draft, Span(begun.text, 0, 0), begun)
        return Prompt(draft.text, self._encode(draft), draft.num_ledger_tokens, draft.num_fallbacks)

    def _raw(self, text: str) -> Prompt:
        """Who writes a whole prompt writes what a template would: names of control tokens are control tokens. It
        begins with the model's first token where the template's prompts do."""
        bos = self._tokenizer.bos_token
        if bos and not text.startswith(bos) and self.render([Segment("user", "x")]).startswith(bos):
            text = bos + text
        draft = _Draft()
        self._add_template_text(draft, text)
        return Prompt(text, self._encode(draft))

    def _accepted(self, chat: Chat) -> tuple[Chat, str]:
        """The first form of the history that the template takes, and its text. Raises the refusal of the first."""
        refusal: TemplateRefused | None = None
        for form in forms_of(chat.segments):
            try:
                accepted = replace(chat, segments=form)
                return accepted, self._template.render(accepted)
            except TemplateRefused as error:
                refusal = refusal or error
        assert refusal is not None
        raise refusal

    def follows(self, segments: Sequence[Segment]) -> bool:
        """Whether every answer's place in the text is known, so that its ids can stand there. Raises InvalidRequest."""
        spans = self._spans(Chat(segments), self.render(segments)) or []
        answers = {index for index, segment in enumerate(segments) if segment.role == "assistant"}
        return answers <= {span.segment for span in spans}

    def render(self, segments: Sequence[Segment], *, tools: str = "", now: datetime | None = None) -> str:
        """The prompt as text, before equal roles are merged. Raises InvalidRequest."""
        return self._template.render(Chat(segments, tools), now=now)

    def _spans(self, chat: Chat, text: str) -> list[Span] | None:
        """Where each segment stands in `text`; None when the template changes texts in a way we cannot follow.

        A template that only looks for tags of thinking is followed by a second frame, in which they stand.
        """
        spans = self._spans_in_frame(chat, text, show_tags=False)
        if spans is None and any(map(has_tags, chat.segments)):
            spans = self._spans_in_frame(chat, text, show_tags=True)
        return spans

    def _spans_in_frame(self, chat: Chat, text: str, *, show_tags: bool) -> list[Span] | None:
        shown, pieces = frame_of(chat, show_tags=show_tags)
        try:
            frame = self._template.render(shown)
        except TemplateRefused:
            return None
        spans = find_spans(frame, pieces, text)
        return joined(spans, [segment.text for segment in chat.segments]) if spans and show_tags else spans

    def _without_spans(self, chat: Chat) -> Prompt:
        """Plain but safe: control tokens in segments are broken by a mark while the template's are recognised."""
        mark = f"\ue002{secrets.randbelow(10**18)}\ue003"  # no letters: a template may change their case
        pattern = self._tokenizer.control_pattern
        spans = marker_spans(self._template.render(marked_chat(chat, pattern, mark)), pattern, mark)
        text = "".join(span.text for span in spans)
        prompt = self._assemble(text, spans, _without_ledgers(chat.segments))
        return Prompt(text, prompt.ids, 0, max(1, prompt.num_fallbacks))

    def _assemble(self, text: str, spans: list[Span], segments: Sequence[Segment]) -> Prompt:
        draft = self._draft(with_ledgers_of_calls(self._tokenizer, spans, segments), segments)
        ids = self._encode(draft)
        if not draft.num_ledger_tokens or self._spells(ids, draft):
            return Prompt(text, ids, draft.num_ledger_tokens, draft.num_fallbacks)
        plain = self._draft(spans, _without_ledgers(segments))
        return Prompt(text, self._encode(plain), 0, draft.num_fallbacks + 1)

    def _spells(self, ids: list[int], draft: _Draft) -> bool:
        """Whether the ids read as the draft does. Text that the tokenizer itself changes is compared as it reads it."""
        decoded = self._tokenizer.decode(ids)
        return decoded == draft.text or decoded == "".join(
            self._reading(part, is_start=not number) if isinstance(part, str) else part.text
            for number, part in enumerate(draft.parts)
        )

    def _reading(self, text: str, *, is_start: bool) -> str:
        """How the ids of `text` read; behind other tokens some tokenizers show one more blank."""
        ids = self._tokenizer.encode_plain(text, is_start=is_start)
        alone = self._tokenizer.decode(ids)
        return alone if is_start else self._tokenizer.decode(ids * 2)[len(alone) :]

    def _draft(self, spans: list[Span], segments: Sequence[Segment]) -> _Draft:
        draft = _Draft(num_fallbacks=num_unplaced(spans, segments))
        for span in spans:
            if span.segment is None:
                self._add_template_text(draft, span.text)
            elif span.ids:
                draft.add_ledger(span.ids, span.text, hides_blank=self._hides_blank(span.ids[0]))
            elif span.start == NOWHERE or segments[span.segment].tool_calls:
                draft.add_text(span.text)
            else:
                self._add_segment(draft, span, segments[span.segment])
        return draft

    def _add_template_text(self, draft: _Draft, text: str) -> None:
        position = 0
        for match in self._tokenizer.control_pattern.finditer(text):
            draft.add_text(text[position : match.start()])
            token = self._tokenizer.control_id(match.group())
            draft.add_control(token, self._tokenizer.decode([token]))
            position = match.end()
        draft.add_text(text[position:])

    def _add_segment(self, draft: _Draft, span: Span, segment: Segment) -> None:
        run = run_for(self._tokenizer, segment, span.start, span.end)
        if run is None:
            draft.num_fallbacks += bool(segment.token_ids)
            draft.add_text(span.text)
            return
        before, after = segment.text[span.start : run.start], segment.text[run.end : span.end]
        draft.num_fallbacks += bool(before or after)
        draft.add_text(before)
        hides_blank = run.start == 0 and self._hides_blank(run.ids[0])
        draft.add_ledger(run.ids, segment.text[run.start : run.end], hides_blank=hides_blank)
        draft.add_text(after)

    def _hides_blank(self, token: int) -> bool:
        alone = self._tokenizer.decode([token])
        return self._tokenizer.decode([token, token]) == f"{alone} {alone}"

    def _encode(self, draft: _Draft) -> list[int]:
        ids: list[int] = []
        for part in draft.parts:
            ids += self._tokenizer.encode_plain(part, is_start=not ids) if isinstance(part, str) else part.ids
        return ids


def check_segments(segments: Sequence[Segment]) -> None:
    if not segments:
        raise InvalidRequest("the history is empty")
    if len(segments) == 1 and segments[0].role == RAW:
        return
    for segment in segments:
        if segment.role not in ROLES:
            raise InvalidRequest(f"unknown role {segment.role[:40]!r}; there are {', '.join(ROLES)}")
        try:
            from_json(segment.tool_calls)
        except BadCalls as error:
            raise InvalidRequest(str(error)) from error


def _without_ledgers(segments: Sequence[Segment]) -> list[Segment]:
    return [replace(segment, token_ids=()) for segment in segments]
