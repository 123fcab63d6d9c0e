"""What the operator's file declares, and that no user's text is ever part of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inference.__main__ import main
from inference.config import EngineConfig
from inference.core.messages import Admit, Command, CoreReady, DeclaredPrefix, Forget, SharePrefixes
from inference.errors import ModelLoading
from inference.front.engine import Engine
from inference.front.model_folder import read_model_folder
from inference.front.ownership import OwnerKeys
from inference.front.prompts import PromptBuilder
from inference.front.shared_prefixes import SharedPrefixesError, read_shared_prefixes
from inference.front.templates import CHATML, ChatTemplate
from inference.models.tiny import write_tiny_model
from inference.testing.front import scripted_model
from inference.testing.tokenizer import ByteTokenizer
from inference.types import Owner, Segment

NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
# As templates do whose models know no system role: its text goes before the user's.
INTO_USER = (
    "{% set lead = messages[0].content + '\n\n' if messages[0].role == 'system' else '' %}"
    "{% for message in messages if message.role != 'system' %}"
    "{{ '<|im_start|>' + message.role + '\n' + (lead if loop.first else '') + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
)


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> PromptBuilder:
    return read_model_folder(write_tiny_model(tmp_path_factory.mktemp("tiny") / "model"), None).prompts


def declare(tmp_path: Path, content: object, prompts: PromptBuilder) -> list[tuple[str, list[int]]]:
    path = tmp_path / "shared.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return [(prefix.name, prefix.token_ids) for prefix in read_shared_prefixes(str(path), prompts)]


@pytest.mark.parametrize("template", [CHATML, INTO_USER], ids=["chatml", "into-user"])
def test_every_prompt_with_that_system_message_begins_with_the_declared_ids(
    tmp_path: Path, prompts: PromptBuilder, template: str
) -> None:
    tokenizer = prompts._tokenizer
    prompts = PromptBuilder(tokenizer, ChatTemplate(template))
    system = "You are the support desk of a bakery. Answer shortly."
    ((name, ids),) = declare(tmp_path, {"desk": system}, prompts)
    assert name == "desk"
    for text in ("When do you open?", "  spaces", "\u4f60\u597d", "123", "\nline", "<|im_end|>", "end."):
        for later in ([], [Segment("assistant", "At six."), Segment("user", "And on Sundays?")]):
            history = [Segment("system", system), Segment("user", text), *later]
            assert prompts.build(history).ids[: len(ids)] == ids
    rendered = prompts.build([Segment("system", system), Segment("user", "X" * 50)]).text
    spelled = tokenizer.decode(ids)
    assert rendered.startswith(spelled)
    assert system in spelled
    assert "X" not in spelled


def test_another_system_message_does_not_begin_with_them(tmp_path: Path, prompts: PromptBuilder) -> None:
    ((_, ids),) = declare(tmp_path, {"desk": "You are the support desk."}, prompts)
    other = prompts.build([Segment("system", "You are the support desk!"), Segment("user", "Hi")]).ids
    assert other[: len(ids)] != ids


def test_no_file_declares_nothing(prompts: PromptBuilder) -> None:
    assert read_shared_prefixes("", prompts) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "must hold one object"),
        ('{"a": 1}', "must hold one object"),
        ('{"a": "  "}', "must hold one object"),
        ('{"a": "x", "a": "y"}', "stands there twice"),
        ({str(number): "x" for number in range(101)}, "at most"),
    ],
)
def test_a_broken_file_is_one_clear_line(
    tmp_path: Path, prompts: PromptBuilder, content: object, said: str
) -> None:
    with pytest.raises(SharedPrefixesError, match=said) as caught:
        declare(tmp_path, content, prompts)
    assert "ENGINE_SHARED_PREFIXES" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_missing_file_is_named(tmp_path: Path, prompts: PromptBuilder) -> None:
    with pytest.raises(SharedPrefixesError, match=r"none\.json cannot be read"):
        read_shared_prefixes(str(tmp_path / "none.json"), prompts)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path, prompts: PromptBuilder) -> None:
    path = tmp_path / "shared.json"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(SharedPrefixesError):
        read_shared_prefixes(str(path), prompts)


def test_without_a_system_role_the_beginning_of_the_first_question_is_shared(tmp_path: Path) -> None:
    prompts = PromptBuilder(ByteTokenizer(), ChatTemplate(NO_SYSTEM + CHATML))
    ((_, prefix),) = declare(tmp_path, {"desk": "Be kind."}, prompts)
    asked = prompts.build([Segment("system", "Be kind."), Segment("user", "Hello")]).ids
    assert prefix == asked[: len(prefix)]
    assert ByteTokenizer().decode(prefix).endswith("Be kind.\n\n")


def test_a_template_that_refuses_the_prompt_is_named_at_the_start(tmp_path: Path) -> None:
    prompts = PromptBuilder(ByteTokenizer(), ChatTemplate("{{ raise_exception('no chat here') }}"))
    with pytest.raises(SharedPrefixesError, match="no chat here"):
        declare(tmp_path, {"desk": "Be kind."}, prompts)


async def test_every_new_core_hears_of_the_prefixes_before_it_is_probed() -> None:
    config, sent = EngineConfig(), list[Command]()
    declared = [DeclaredPrefix("desk", [1, 2, 3])]

    class Core:
        send = staticmethod(sent.append)

    engine = Engine(config, scripted_model(config), lambda listener: Core(), shared_prefixes=declared)  # type: ignore[arg-type, return-value]
    for _ in range(2):
        engine.on_ready(CoreReady("revision", 100, "fp32", "cpu", 1, 16, 10))
        assert isinstance(sent[-2], SharePrefixes)
        assert sent[-2].prefixes == declared
        assert isinstance(sent[-1], Admit)
        engine.on_lost("killed")


async def test_a_core_hears_of_the_conversations_that_were_forgotten_before_it_came() -> None:
    """Their KV on disk outlives the core that was told, or that should have been."""
    config, sent = EngineConfig(salt_key="secret"), list[Command]()

    class Core:
        send = staticmethod(sent.append)

    engine = Engine(config, scripted_model(config), lambda listener: Core())  # type: ignore[arg-type, return-value]
    owner = Owner("tenant", "user", "talk")
    with pytest.raises(ModelLoading):
        await engine.forget(owner, timeout_s=0)
    engine.on_ready(CoreReady("revision", 100, "fp32", "cpu", 1, 16, 10))
    assert sent[0] == Forget(OwnerKeys("secret").conversation(owner))


def test_an_engine_with_a_broken_file_does_not_start(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write_tiny_model(tmp_path_factory.mktemp("tiny") / "model")
    (tmp_path / "shared.json").write_text("[]")
    flags = ["--model", str(folder), "--embed-model", "", "--front-nice", "0", "--data-dir", str(tmp_path)]
    assert main([*flags, "--shared-prefixes", str(tmp_path / "shared.json")]) == 78
    assert "ENGINE_SHARED_PREFIXES" in capfd.readouterr().err
