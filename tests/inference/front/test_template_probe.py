"""The probe tells what templates of every kind do, and never stops a start."""

from __future__ import annotations

import pytest

from inference import settings
from inference.config import EngineConfig
from inference.front.model_folder import read_model_folder
from inference.front.prompts import PromptBuilder
from inference.front.template_probe import WORST_CASE, in_words, probe, tell, tool_format
from inference.front.templates import CHATML_WITH_TOOLS, ChatTemplate
from inference.models.resolve import resolve
from inference.testing.tokenizer import ByteTokenizer
from inference.types import TemplateFindings
from tests.inference.front import families

# append-only, strips thinking, date, default system, followed
KEEPS_ALL = TemplateFindings(True, False, False, False, True)
EXPECTED = {
    "chatml": KEEPS_ALL,
    "default system": TemplateFindings(True, False, False, True, True),
    "trimming": TemplateFindings(False, False, False, False, True),
    "llama with date": TemplateFindings(False, False, True, True, True),
    "qwen thinking": TemplateFindings(False, True, False, False, True),
    "deepseek thinking": TemplateFindings(False, True, False, False, True),
    "rebuilt thinking": KEEPS_ALL,
    "mistral": KEEPS_ALL,
    "mistral moving system": TemplateFindings(False, False, False, False, True),
    "gemma": TemplateFindings(False, False, False, False, True),
    # Where no place is known, nothing can be said about what stands before it.
    "reordering": TemplateFindings(False, False, False, True, True),
    "shouting": TemplateFindings(False, True, False, True, False),
}


def found(source: str) -> TemplateFindings:
    tokenizer = ByteTokenizer()
    return probe(PromptBuilder(tokenizer, ChatTemplate(source)), tokenizer)


@pytest.mark.parametrize("family", families.ALL)
def test_a_template_is_known_for_what_it_does(family: str) -> None:
    assert found(families.ALL[family]) == EXPECTED[family]


@pytest.mark.parametrize(
    "source",
    [
        families.REFUSING,
        "{{ messages[99].content.nothing.here }}",
        "{{ 1 // 0 }}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
        "{{ range(10 ** 9) | list }}",
        "{{ messages.append(1) }}",
    ],
    ids=["refuses", "undefined", "divides by zero", "recurses", "large range", "writes"],
)
def test_what_cannot_be_found_is_the_worst_case_and_never_an_error(source: str) -> None:
    assert found(source) == WORST_CASE


def test_a_template_that_says_nothing_is_not_trusted() -> None:
    findings = found("always the same")
    assert not findings.is_append_only
    assert not findings.is_followed


def test_a_date_is_found_wherever_it_stands() -> None:
    assert found(families.CHATML + "{{ strftime_now('%A') }}").has_date
    assert found("{{ strftime_now('%Y') }}" + families.CHATML).has_date
    assert not found("{{ '26 Jul 2024' }}" + families.CHATML).has_date


@pytest.mark.parametrize("family", families.ALL)
def test_one_line_is_logged_and_a_warning_of_a_date_only(
    family: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    findings = found(families.ALL[family])
    caplog.clear()
    tell(findings)
    levels = [record.levelname for record in caplog.records]
    assert levels == (["INFO", "WARNING"] if family == "llama with date" else ["INFO"])
    assert in_words(findings) in caplog.text


def test_the_line_says_every_finding() -> None:
    best, worst = in_words(KEEPS_ALL).split(", "), in_words(WORST_CASE).split(", ")
    assert len(best) == len(worst) == 5
    assert not set(best[1:]) & set(worst[1:])
    assert "\n" not in in_words(WORST_CASE)


@pytest.mark.model
def test_the_default_model_keeps_old_turns_and_brings_a_system_prompt() -> None:
    folder = resolve(EngineConfig().model, settings.read(EngineConfig).data_dir)
    model = read_model_folder(folder, None)
    assert probe(model.prompts, model.tokenizer) == TemplateFindings(True, False, False, True, True)


def tools_found(source: str) -> str:
    tokenizer = ByteTokenizer()
    return tool_format(PromptBuilder(tokenizer, ChatTemplate(source)), tokenizer)


def test_a_template_is_known_for_the_calls_that_it_writes() -> None:
    """By its own example of a call: one that nobody here can read is none, and so is a template without functions."""
    found = {family: tools_found(source) for family, source in families.WITH_TOOLS.items()}
    assert found == {"hermes": "hermes", "llama_json": "llama_json", "prose": "", "shouting": ""}
    assert not any(map(tools_found, [*families.ALL.values(), families.REFUSING, "always the same"]))
    assert tools_found(CHATML_WITH_TOOLS.replace("tool | tojson", "'?'")) == ""
    assert tools_found(CHATML_WITH_TOOLS.replace("message.content + '\n</tool_response>", "'")) == ""


@pytest.mark.model
def test_the_default_model_has_no_tools() -> None:
    folder = resolve(EngineConfig().model, settings.read(EngineConfig).data_dir)
    model = read_model_folder(folder, None)
    assert tool_format(model.prompts, model.tokenizer) == ""
