"""What memory evicts comes back from disk when that is cheaper, exactly, and never for whom it is not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from inference.core import adoption, second_tier
from inference.core.conversations import Conversations
from inference.core.disk_record import BlockLayout
from inference.core.disk_store import DiskStore
from inference.core.disk_tier import DiskTier, Threads
from inference.core.messages import Admit, DeclaredPrefix, Forget, SharePrefixes
from inference.core.prefix import Salts
from inference.core.second_tier import BlockBytes, SecondTier
from inference.core.sequence import Sequence
from tests.inference.core.conftest import MakeDriver
from tests.inference.core.driver import Driver, admit
from tests.inference.core.executors import Held, Inline
from tests.inference.core.fakes import BLOCK_TOKENS, VOCABULARY, FakeCore, expected, make_fake_core
from tests.patience import PATIENCE_S

LAYOUT = BlockLayout("fake", "int8", (BLOCK_TOKENS,), BLOCK_TOKENS)
TALK, OTHER_TALK = b"talk", b"other talk"
RECOMPUTING_IS_SLOW, RECOMPUTING_IS_FREE = 1e-9, 1e12  # tokens per second


@dataclass
class Setup:
    core: FakeCore
    tier: SecondTier
    reader: Inline | Held
    folder: Path

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.kv"))

    def ask(self, prompt: list[int], *, conversation: bytes = TALK, **fields: object) -> Admit:
        """Asked and answered rightly, whatever was reused."""
        request = admit(prompt, max_tokens=3, conversation=conversation, **fields)
        assert self.core.driver.generate(request) == expected(prompt, 3)
        return request

    def disk_tokens(self, request: Admit) -> int:
        return self.core.driver.end(request).reused_disk_tokens

    def crowd_out(self) -> None:
        """Requests without a conversation fill all of memory."""
        size = self.core.kv.pool.num_blocks * BLOCK_TOKENS
        self.ask(prompt_of(size - 4), conversation=b"", salt=b"somebody")


SOURCE = random.Random()


@pytest.fixture(autouse=True)
def _same_prompts() -> None:
    SOURCE.seed(3)


def prompt_of(length: int) -> list[int]:
    return [SOURCE.randrange(1, VOCABULARY) for _ in range(length)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kv" / "fake"


def start(
    folder: Path,
    *,
    reader: Inline | Held | None = None,
    prefill_rate: float = RECOMPUTING_IS_SLOW,
    layout: BlockLayout = LAYOUT,
    owner: str = "key",
    max_bytes: int = 1024 * 1024,
    **options: object,
) -> Setup:
    core = make_fake_core(**({"num_blocks": 16} | options))  # type: ignore[arg-type]
    reader = reader or Inline()
    store = DiskStore(folder, layout, max_bytes)
    store.open(owner)
    disk = DiskTier(store, Threads(Inline(), reader), lambda: 0.0)
    tier = SecondTier(core.kv, disk, BlockBytes(core.runner.read, core.runner.write), lambda: prefill_rate)
    core.scheduler.second_tier = tier
    return Setup(core, tier, reader, folder)


def test_an_evicted_conversation_comes_back_from_disk(folder: Path) -> None:
    setup = start(folder)
    prompt = prompt_of(24)
    setup.ask(prompt)
    setup.crowd_out()
    again = setup.ask(prompt)
    end = setup.core.driver.end(again)
    assert (end.reused_disk_tokens, end.prefilled_tokens) == (20, 4)
    assert (end.reused_head_tokens, end.reused_prefix_tokens) == (0, 0)
    assert setup.tier.disk.num_restored == 5
    assert setup.core.kv.num_reused["disk"] == 20


def test_what_came_back_counts_as_from_disk_once(folder: Path) -> None:
    setup = start(folder)
    prompt = prompt_of(24)
    setup.ask(prompt)
    setup.crowd_out()
    assert setup.disk_tokens(setup.ask(prompt)) == 20
    again = setup.ask(prompt)
    assert setup.disk_tokens(again) == 0
    assert setup.core.driver.end(again).reused_head_tokens == 23
    by_content = setup.ask(prompt, conversation=b"")
    assert (setup.disk_tokens(by_content), setup.core.driver.end(by_content).reused_prefix_tokens) == (0, 20)


def test_only_what_memory_lacks_is_read(folder: Path) -> None:
    setup = start(folder)
    prompt = prompt_of(24)
    setup.ask(prompt)
    setup.ask(prompt_of(44), conversation=b"", salt=b"somebody")  # evicts the tail only
    again = setup.ask(prompt)
    end = setup.core.driver.end(again)
    assert end.reused_head_tokens > 0
    assert end.reused_disk_tokens > 0
    assert end.reused_head_tokens + end.reused_disk_tokens == 20
    assert setup.tier.disk.num_restored * BLOCK_TOKENS == end.reused_disk_tokens


def test_a_restart_with_the_same_key_is_warm(folder: Path) -> None:
    """Also what was never evicted: it is written when the core closes."""
    prompt = prompt_of(24)
    first = start(folder)
    first.ask(prompt)
    assert first.files == []
    first.tier.close(timeout_s=PATIENCE_S)
    second = start(folder)
    assert second.disk_tokens(second.ask(prompt)) == 20


def test_at_the_end_the_beginnings_are_kept_where_there_is_no_room_for_all(folder: Path) -> None:
    first = start(folder)
    prompt = prompt_of(24)
    first.ask(prompt)
    first.tier.close(timeout_s=PATIENCE_S)
    num_bytes = sum(path.stat().st_size for path in first.files)
    second = start(folder, max_bytes=num_bytes - 1)
    assert len(second.files) == 5
    assert second.disk_tokens(second.ask(prompt)) == 20


def test_below_a_shared_prefix_a_users_own_blocks_come_back(folder: Path) -> None:
    prompt = prompt_of(24)
    declare = SharePrefixes([DeclaredPrefix("system", prompt[:9])])
    first = start(folder, shared_overlap=0.0)
    first.core.driver.run(declare)
    first.ask(prompt)
    first.tier.close(timeout_s=PATIENCE_S)
    assert len(first.files) == 4, "the operator's two blocks are computed anew, they are no user's"
    second = start(folder, shared_overlap=0.0)
    second.core.driver.run(declare)
    end = second.core.driver.end(second.ask(prompt))
    assert (end.reused_shared_tokens, end.reused_disk_tokens, end.prefilled_tokens) == (8, 12, 4)


def test_a_block_names_only_conversations_that_were_not_forgotten() -> None:
    conversations = Conversations(BLOCK_TOKENS)
    talk = conversations.enter(TALK, b"salt", is_closed=False)
    conversations.reach(talk, [1], 0)
    conversations.reach(None, [1], 0)
    assert conversations.reached_by(1) == (TALK,)
    conversations.close(TALK)
    assert conversations.reached_by(1) == ()


@pytest.mark.parametrize("change", ["salt", "key", "fingerprint", "dtype"])
def test_nothing_is_found_under_another(folder: Path, change: str) -> None:
    prompt = prompt_of(24)
    first = start(folder)
    first.ask(prompt)
    first.tier.close(timeout_s=PATIENCE_S)
    layout = BlockLayout("other", "int8", (4,), 4) if change == "fingerprint" else LAYOUT
    layout = BlockLayout("fake", "uint8", (4,), 4) if change == "dtype" else layout
    second = start(folder, layout=layout, owner="other" if change == "key" else "key")
    request = second.ask(prompt, salt=b"other" if change == "salt" else b"salt")
    assert second.disk_tokens(request) == 0
    assert second.core.driver.end(request).prefilled_tokens == 24


def test_a_damaged_block_ends_the_chain_and_the_rest_is_computed(folder: Path) -> None:
    setup = start(folder)
    prompt = prompt_of(24)
    setup.ask(prompt)
    setup.crowd_out()
    missing = setup.core.kv.prefix.identities(Salts(b"salt"), prompt, [], 23)
    (path,) = folder.glob(missing[2].key.hex() + "*")
    raw = bytearray(path.read_bytes())
    raw[-40] ^= 1
    path.write_bytes(bytes(raw))
    again = setup.ask(prompt)
    assert setup.disk_tokens(again) == 8
    assert setup.tier.disk.num_refused == 1


def test_recomputing_is_chosen_when_it_is_cheaper(folder: Path) -> None:
    """Both rates are measured here: the first reading tells the disk's."""
    setup = start(folder)
    first, second = prompt_of(24), prompt_of(24)
    setup.ask(first)
    setup.ask(second, conversation=OTHER_TALK)
    setup.crowd_out()
    assert setup.disk_tokens(setup.ask(first)) == 20
    setup.crowd_out()
    setup.tier._prefill_tokens_per_s = lambda: RECOMPUTING_IS_FREE
    setup.tier.disk.read_rate.measured_at = 1e9  # just now
    assert setup.disk_tokens(setup.ask(second, conversation=OTHER_TALK)) == 0
    setup.crowd_out()
    setup.tier._prefill_tokens_per_s = lambda: RECOMPUTING_IS_SLOW
    assert setup.disk_tokens(setup.ask(second, conversation=OTHER_TALK)) == 20


def test_a_rate_that_is_old_is_measured_again(folder: Path) -> None:
    setup = start(folder, prefill_rate=RECOMPUTING_IS_FREE)
    prompt = prompt_of(24)
    setup.ask(prompt)
    setup.crowd_out()
    setup.tier.disk.read_rate.measure(1, 1000.0, now=-second_tier.RETRY_S)  # a disk that was slow
    assert setup.disk_tokens(setup.ask(prompt)) == 20


def test_while_one_waits_for_the_disk_others_pass_it(folder: Path) -> None:
    disk = Held()
    setup = start(folder, reader=disk)
    driver, prompt = setup.core.driver, prompt_of(24)
    setup.ask(prompt)
    setup.crowd_out()
    waits = admit(prompt, max_tokens=3, conversation=TALK)
    driver.step(waits)
    assert setup.core.scheduler.rest_s(0.0) == second_tier.POLL_S
    passes = admit(prompt_of(8), max_tokens=1)
    driver.step(passes)
    assert driver.end(passes).reason == "length"
    assert waits.id not in driver.finished
    disk.run_all()
    driver.run()
    assert driver.ids(waits) == expected(prompt, 3)
    assert setup.disk_tokens(waits) == 20


def test_a_reading_that_takes_too_long_is_given_up_and_the_disk_left_alone(folder: Path) -> None:
    disk = Held()
    setup = start(folder, reader=disk, prefill_rate=100.0)
    prompt = prompt_of(24)
    setup.ask(prompt)
    setup.crowd_out()
    assert setup.disk_tokens(setup.ask(prompt)) == 0
    assert len(disk.jobs) == 1
    setup.crowd_out()
    assert setup.disk_tokens(setup.ask(prompt)) == 0
    assert len(disk.jobs) == 1, "nothing more is asked of it for a while"
    disk.run_all()
    assert setup.tier.disk.num_restored == 0


def test_a_cancelled_sequence_waits_no_more(folder: Path) -> None:
    disk = Held()
    setup = start(folder, reader=disk)
    prompt = prompt_of(24)
    setup.ask(prompt)
    setup.crowd_out()
    waits = admit(prompt, max_tokens=3, conversation=TALK)
    setup.core.driver.step(waits)
    setup.core.driver.cancel(waits)
    setup.core.driver.run()
    disk.run_all()
    assert setup.core.driver.end(waits).reason == "cancelled"
    assert setup.tier._visits == {}


def test_what_was_evicted_meanwhile_is_looked_up_again(folder: Path) -> None:
    """I9: the beginning that the reading goes on from leaves memory while the disk works."""
    disk = Held()
    setup = start(folder, reader=disk)
    driver, prompt = setup.core.driver, prompt_of(24)
    setup.ask(prompt)
    setup.ask(prompt_of(44), conversation=b"", salt=b"somebody")
    waits = admit(prompt, max_tokens=3, conversation=TALK)
    driver.step(waits)
    assert len(disk.jobs) == 1
    fills = admit(prompt_of(60), max_tokens=3, salt=b"somebody else")
    driver.step(fills)
    while fills.id not in driver.finished:
        driver.step()
    disk.run_all()
    driver.run()
    assert driver.ids(waits) == expected(prompt, 3)


def test_the_blocks_of_a_preempted_sequence_come_back_too(folder: Path) -> None:
    setup = start(folder, num_blocks=10, step_tokens=64)
    driver = setup.core.driver
    first = admit(prompt_of(12), max_tokens=14, conversation=TALK)
    second = admit(prompt_of(12), max_tokens=14, conversation=OTHER_TALK)
    driver.run(first, second)
    for request in (first, second):
        assert driver.ids(request) == expected(request.prompt_ids, 14)
    assert driver.loop.stats().preemptions > 0
    assert setup.tier.disk.num_restored > 0


def test_requests_without_a_conversation_leave_nothing_on_disk(folder: Path) -> None:
    setup = start(folder)
    for _ in range(3):
        setup.ask(prompt_of(40), conversation=b"")
    setup.tier.close(timeout_s=PATIENCE_S)
    assert setup.files == []


def test_forgetting_erases_from_disk_what_was_evicted_and_what_would_be(folder: Path) -> None:
    setup = start(folder)
    forgotten, kept = prompt_of(24), prompt_of(24)
    setup.ask(forgotten)
    setup.ask(kept, conversation=OTHER_TALK)
    setup.crowd_out()
    setup.ask(forgotten)  # back in memory, and still on disk
    setup.core.driver.step(Forget(TALK))
    setup.crowd_out()
    setup.tier.close(timeout_s=PATIENCE_S)
    assert setup.files
    assert all(OTHER_TALK.hex() in path.name for path in setup.files)


def test_forgetting_takes_back_from_memory_what_came_from_disk(folder: Path) -> None:
    setup = start(folder)
    prompt = prompt_of(24)
    setup.ask(prompt)
    setup.crowd_out()
    setup.ask(prompt)
    before = setup.core.driver.loop.stats()
    setup.core.driver.step(Forget(TALK))
    after = setup.core.driver.loop.stats()
    assert after.forgotten_blocks == before.blocks_cached - after.blocks_cached == 7


def test_a_chain_whose_beginning_came_back_meanwhile_goes_on_behind_it(folder: Path) -> None:
    setup = start(folder)
    prompt = prompt_of(24)
    setup.ask(prompt)
    setup.crowd_out()
    kv, write = setup.core.kv, setup.core.runner.write
    waits = Sequence(admit(prompt, conversation=TALK), 1, 0.0)
    blocks = adoption.missing(kv, waits)
    payloads = setup.tier.disk.read(blocks).payloads
    assert adoption.adopt(kv, waits, blocks[:2], payloads[:2], write) == 2
    assert adoption.adopt(kv, waits, blocks, payloads, write) == 3
    assert adoption.adopt(kv, waits, blocks, payloads, write) == 0
    assert kv.problems() == []
    assert setup.disk_tokens(setup.ask(prompt)) == 20


def test_a_sequence_that_comes_back_to_the_queue_looks_on_the_disk_again(folder: Path) -> None:
    setup = start(folder)
    prompt = prompt_of(24)
    setup.ask(prompt)
    setup.crowd_out()
    waits = Sequence(admit(prompt, conversation=TALK), 1, 0.0)
    for _ in range(2):
        assert not setup.tier.is_ready(waits, 0.0)
        assert setup.tier.is_ready(waits, 0.0)
        setup.core.kv.clear()
        setup.tier.begin_step([waits])
        assert setup.tier.is_ready(waits, 0.0), "it has waited already"
        setup.tier.begin_step([])


def test_the_operators_blocks_go_to_no_disk(folder: Path) -> None:
    """Also when a user's conversation was the first to compute them."""
    setup = start(folder, shared_overlap=0.0)
    prompt = prompt_of(24)
    request = admit(prompt, max_tokens=3, conversation=TALK)
    setup.core.driver.run(SharePrefixes([DeclaredPrefix("system", prompt[:9])]), request)
    setup.crowd_out()
    assert setup.core.driver.loop.stats().blocks_shared == 0
    assert len(setup.files) == 4


def test_a_conversation_forgotten_while_it_waits_for_the_disk_is_computed(folder: Path) -> None:
    disk = Held()
    setup = start(folder, reader=disk)
    driver, prompt = setup.core.driver, prompt_of(24)
    setup.ask(prompt)
    setup.ask(prompt_of(24), conversation=OTHER_TALK)
    setup.crowd_out()
    waits = admit(prompt, max_tokens=3, conversation=TALK)
    driver.step(waits)
    disk.run_all()  # what was read before is not taken after
    driver.step(Forget(TALK))
    driver.run()
    assert driver.ids(waits) == expected(prompt, 3)
    assert setup.disk_tokens(waits) == 0
    setup.crowd_out()
    disk.run_all()
    assert setup.files
    assert all(OTHER_TALK.hex() in path.name for path in setup.files)


def test_a_forgotten_conversation_that_is_preempted_never_gets_to_the_disk(folder: Path) -> None:
    """Its blocks are evicted while a sequence of it still waits: they belong to nobody who may be kept."""
    setup = start(folder, num_blocks=10, step_tokens=64)
    driver = setup.core.driver
    first = admit(prompt_of(12), max_tokens=14, conversation=TALK)
    second = admit(prompt_of(12), max_tokens=14, conversation=OTHER_TALK)
    driver.step(first, second)
    driver.step(Forget(TALK), Forget(OTHER_TALK))
    driver.run()
    assert driver.loop.stats().preemptions > 0
    setup.tier.close(timeout_s=PATIENCE_S)
    assert setup.files == []


def test_a_sequence_that_does_not_fit_now_restores_nothing_yet(folder: Path) -> None:
    setup = start(folder)
    driver, prompt = setup.core.driver, prompt_of(24)
    setup.ask(prompt)
    setup.crowd_out()
    runs = admit(prompt_of(40), max_tokens=8)
    driver.step(runs)
    waits = admit(prompt, max_tokens=3, conversation=TALK)
    driver.step(waits)
    assert setup.tier.disk.num_restored == 0
    driver.run()
    assert driver.ids(waits) == expected(prompt, 3)
    assert setup.disk_tokens(waits) == 20


@pytest.mark.parametrize("seed", range(5))
def test_random_conversations_under_pressure_stay_exact(folder: Path, seed: int) -> None:
    source = random.Random(seed)
    setup = start(folder, num_blocks=24)
    histories = {bytes([number]): prompt_of(source.randrange(4, 20)) for number in range(6)}
    for _ in range(40):
        key = source.choice(list(histories))
        if source.random() < 0.1:
            setup.core.driver.step(Forget(key))
        request = admit(histories[key], max_tokens=3, conversation=key, salt=key[:1])
        assert setup.core.driver.generate(request) == expected(histories[key], 3)
        if len(histories[key]) < 60:
            histories[key] += [*setup.core.driver.ids(request), *prompt_of(source.randrange(1, 9))]
    assert setup.tier.disk.num_restored > 0


# --- the real forward


@pytest.fixture
def keep_on_disk(make_driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeDriver]:
    """Cores over a tiny model whose memory holds few blocks; they keep the rest below `tmp_path`, with real threads."""
    monkeypatch.setattr(second_tier, "MIN_PATIENCE_S", 60.0)
    monkeypatch.setattr(second_tier, "FIRST_PATIENCE_S", 60.0)
    made: list[Driver] = []

    def make(family: str = "llama") -> Driver:
        options = {"num_blocks": 8, "data_dir": str(tmp_path), "kv_disk_mb": 16, "salt_id": "key"}
        made.append(make_driver(family, **options))
        return made[-1]

    yield make
    for driver in made:
        driver.loop.close(timeout_s=PATIENCE_S)


def contents(driver: Driver) -> dict[bytes, bytes]:
    """The numbers of every cached full block, by key."""
    read = driver.loop._scheduler.second_tier._block_bytes.read
    return {content.identity.key: read(content.block) for content in driver.loop._kv.kept.contents()}


def run_settled(driver: Driver, *commands: Admit) -> None:
    driver.run(*commands)
    driver.loop._scheduler.second_tier.disk.settle()


@pytest.mark.parametrize("family", ["llama", "qwen2", "gemma3_text"])
def test_kv_from_disk_is_bit_identical_and_answers_as_a_cold_run(
    make_driver, keep_on_disk, random_prompt, family: str
) -> None:
    prompt, crowd = random_prompt(70), random_prompt(120)
    cold = make_driver(family).generate(admit(prompt))
    driver = keep_on_disk(family)
    first = admit(prompt, conversation=TALK)
    run_settled(driver, first)
    before = contents(driver)
    run_settled(driver, admit(crowd, max_tokens=2))
    again = admit(prompt, conversation=TALK)
    run_settled(driver, again)
    assert driver.ids(first) == driver.ids(again) == cold
    assert driver.end(again).reused_disk_tokens == 64
    after = contents(driver)
    assert len(before) == 4
    assert {key: after[key] for key in before} == before


def test_another_start_over_the_same_folder_is_warm_and_exact(keep_on_disk, random_prompt) -> None:
    prompt = random_prompt(70)
    first = keep_on_disk()
    answer = first.generate(admit(prompt, conversation=TALK))
    first.loop.close(timeout_s=PATIENCE_S)
    second = keep_on_disk()
    request = admit(prompt, conversation=TALK)
    assert second.generate(request) == answer
    assert second.end(request).reused_disk_tokens == 64
    stats = second.loop.stats()
    assert (stats.disk_blocks, stats.disk_restored_blocks, stats.disk_refused_blocks) == (4, 4, 0)
    assert stats.restore_bytes_per_s > 0


def test_without_a_usable_folder_the_engine_serves_all_the_same(
    make_driver, keep_on_disk, random_prompt, tmp_path: Path
) -> None:
    (tmp_path / "kv").write_text("in the way")
    prompt = random_prompt(70)
    driver = keep_on_disk()
    assert driver.generate(admit(prompt)) == make_driver().generate(admit(prompt))
