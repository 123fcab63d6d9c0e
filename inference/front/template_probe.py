"""What a chat template does to a conversation, found by rendering small ones at start.

Knows what makes kept KV useless at the next turn, and how to say it in one line. Needs no model. What cannot be
found out is reported as the worst case, so that nobody counts on it; a template never stops the engine here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from inference.front.prompts import PromptBuilder
from inference.front.spans import common_beginning
from inference.front.tokenizer import Tokenizer
from inference.tools import calls, functions
from inference.tools.calls import Call
from inference.tools.formats import FORMATS, CallFormat
from inference.tools.functions import Function
from inference.tools.reader import CallReader
from inference.types import Segment, TemplateFindings

logger = logging.getLogger(__name__)

SYSTEM = Segment("system", "Speak like a sailor.")
FIRST, SECOND, THIRD = (Segment("user", f"{word} question?") for word in ("First", "Second", "Third"))
THOUGHT, ANSWER = "Numbers come to mind.", "The answer is four."
# Any two moments whose year, month, day, weekday, hour and minute all differ.
MOMENTS = (datetime(2023, 1, 9, 4, 7, 11), datetime(2031, 11, 26, 22, 58, 45))
FUNCTION = Function(
    "look_up", "Finds a thing.", {"type": "object", "properties": {"thing": {"type": "string"}}}
)
CALL, RESULT = Call("look_up", '{"thing": "a sail"}', "call00001"), "It is white."
WORST_CASE = TemplateFindings(
    is_append_only=False, strips_thinking=True, has_date=True, has_default_system=True, is_followed=False
)


def probe(prompts: PromptBuilder, tokenizer: Tokenizer) -> TemplateFindings:
    """Every finding by itself: a template that refuses one kind of history may be known for the others."""
    return TemplateFindings(
        is_append_only=_found(lambda: _is_append_only(prompts), WORST_CASE.is_append_only),
        strips_thinking=_found(lambda: _strips_thinking(prompts), WORST_CASE.strips_thinking),
        has_date=_found(lambda: _has_date(prompts), WORST_CASE.has_date),
        has_default_system=_found(
            lambda: _has_default_system(prompts, tokenizer), WORST_CASE.has_default_system
        ),
        is_followed=_found(lambda: _is_followed(prompts), WORST_CASE.is_followed),
    )


def tool_format(prompts: PromptBuilder, tokenizer: Tokenizer) -> str:
    """How the template has a model call functions: the name of the format that reads what it writes; empty where it
    does not show functions, calls and results, or where nobody here can read them."""
    try:
        written = _written_call(prompts)
    except Exception as error:  # as above
        logger.info("the chat template writes no calls of functions: %s", error)
        return ""
    return next((form.name for form in FORMATS.values() if _reads(form, written, tokenizer)), "")


def _written_call(prompts: PromptBuilder) -> str:
    """What stands behind a prompt when its answer is a call; empty when something of it stands nowhere."""
    tools = functions.as_json([FUNCTION])
    asked = prompts.render([FIRST], tools=tools)
    call = Segment("assistant", "", tool_calls=calls.as_json([CALL]))
    told = prompts.render([FIRST, call, Segment("tool", RESULT, tool_call_id=CALL.id)], tools=tools)
    if FUNCTION.description not in asked or RESULT not in told:
        return ""
    return told[len(common_beginning(asked, told)) : told.rindex(RESULT)]


def _reads(form: CallFormat, written: str, tokenizer: Tokenizer) -> bool:
    """Up to the first control token that is no mark of the format: that ends the answer."""
    ends = [
        match.start()
        for match in tokenizer.control_pattern.finditer(written)
        if match.group().strip() not in form.marks
    ]
    reader = CallReader(form, [CALL.name])
    parts = [*reader.read(written[: min(ends, default=len(written))]), *reader.end()]
    return [part for part in parts if isinstance(part, Call)] == [Call(CALL.name, CALL.arguments)]


def tell(findings: TemplateFindings) -> None:
    """One line in the log, and one more for what costs the operator something."""
    logger.info("%s", in_words(findings))
    if text := warning(findings):
        logger.warning("%s", text)


def in_words(findings: TemplateFindings) -> str:
    """One line for the log."""
    return "chat template: " + ", ".join(
        [
            "a turn begins with all of the turn before" if findings.is_append_only else "old turns change",
            "thinking of old answers is cut or moved" if findings.strips_thinking else "thinking is kept",
            "the date is in the prompt" if findings.has_date else "no date",
            "a system prompt of its own" if findings.has_default_system else "no system prompt of its own",
            "generated ids are reused" if findings.is_followed else "generated ids cannot be placed",
        ]
    )


def warning(findings: TemplateFindings) -> str:
    """What costs the operator something, with what it costs; empty when nothing does."""
    if findings.has_date:
        return (
            "the chat template writes the date into the prompt: at midnight no kept KV fits any more, and prompts of "
            "two days share nothing. Give the model folder a template with a fixed date."
        )
    return ""


def _found(ask: Callable[[], bool], worst: bool) -> bool:
    try:
        return ask()
    except Exception as error:  # whatever a template does, the engine starts
        logger.info("the chat template did not answer a probe: %s", error)
        return worst


def _is_append_only(prompts: PromptBuilder) -> bool:
    """With blanks around an answer too: models make them, and templates that trim change the old turn by them."""
    answers = (ANSWER, f" {ANSWER}\n", _thinking(prompts))
    return all(_keeps(prompts, answer) for answer in answers)


def _keeps(prompts: PromptBuilder, answer: str) -> bool:
    """Whether each prompt of three turns begins with all of the prompt and the answer before it."""
    return all(
        _begins(prompts, [*system, FIRST], answer, SECOND)
        and _begins(prompts, [*system, FIRST, Segment("assistant", answer), SECOND], answer, THIRD)
        for system in _systems(prompts)
    )


def _begins(prompts: PromptBuilder, history: Sequence[Segment], answer: str, following: Segment) -> bool:
    longer = [*history, Segment("assistant", answer), following]
    return prompts.render(longer).startswith(prompts.render(history) + answer)


def _strips_thinking(prompts: PromptBuilder) -> bool:
    answer = _thinking(prompts)
    return answer not in prompts.render([FIRST, Segment("assistant", answer), SECOND])


def _thinking(prompts: PromptBuilder) -> str:
    """An answer of a model that thinks. Where the prompt opens the thinking, the answer begins inside of it."""
    opened = prompts.render([FIRST]).rstrip().endswith("<think>")
    return f"{THOUGHT}\n</think>\n\n{ANSWER}" if opened else f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"


def _systems(prompts: PromptBuilder) -> list[list[Segment]]:
    """Histories begin with nothing, or with a system prompt where the template takes one."""
    try:
        prompts.render([SYSTEM, FIRST])
    except Exception:
        return [[]]
    return [[], [SYSTEM]]


def _has_date(prompts: PromptBuilder) -> bool:
    first, second = MOMENTS
    return any(
        prompts.render([*system, FIRST], now=first) != prompts.render([*system, FIRST], now=second)
        for system in _systems(prompts)
    )


def _has_default_system(prompts: PromptBuilder, tokenizer: Tokenizer) -> bool:
    """Whether words stand before the first question that do not stand before the second one as well."""
    one = prompts.render([FIRST])
    both = prompts.render([FIRST, Segment("assistant", ANSWER), SECOND])
    before_first = one[: one.index(FIRST.text)]
    before_second = both[both.index(ANSWER) + len(ANSWER) : both.index(SECOND.text, both.index(ANSWER))]
    before_first, before_second = (
        tokenizer.control_pattern.sub("\0", text.removeprefix(tokenizer.bos_token))
        for text in (before_first, before_second)
    )
    header = common_beginning(before_first[::-1], before_second[::-1])
    return any(letter.isalpha() for letter in before_first[: len(before_first) - len(header)])


def _is_followed(prompts: PromptBuilder) -> bool:
    return all(
        prompts.follows([*system, FIRST, Segment("assistant", answer), SECOND])
        for system in _systems(prompts)
        for answer in (ANSWER, f" {ANSWER}\n", _thinking(prompts))
    )
