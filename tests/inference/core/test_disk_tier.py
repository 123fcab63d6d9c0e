"""Blocks on disk: kept whole, believed only byte by byte, never more than allowed, erased when asked."""

from __future__ import annotations

import dataclasses
import errno
import os
import threading
import time
from pathlib import Path

import pytest

from inference.core import disk_store
from inference.core.disk_record import BlockLayout, RecordRefused, pack_record, unpack_record
from inference.core.disk_store import DiskStore
from inference.core.disk_tier import MAX_QUEUED_BYTES, WRITE_PAUSE_S, DiskTier, Threads, open_disk_tier
from inference.core.prefix import BlockIdentity
from tests.inference.core.executors import Held, Inline
from tests.patience import PATIENCE_S

LAYOUT = BlockLayout("model-1", "float32", (2, 2, 1, 4, 2), 128)
TALK = b"talk"
MB = 1024 * 1024


def block(number: int, **changes: object) -> BlockIdentity:
    made = BlockIdentity(bytes([number] * 32), bytes([number + 1] * 32), b"salt", (number, 2, 3, 4))
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def payload(number: int) -> bytes:
    return bytes((number + place) % 256 for place in range(LAYOUT.num_bytes))


@dataclasses.dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def open_store(
    folder: Path, *, layout: BlockLayout = LAYOUT, max_bytes: int = MB, owner: str = "key-1"
) -> DiskStore:
    store = DiskStore(folder, layout, max_bytes)
    store.open(owner)
    return store


def file_of(store: DiskStore, number: int) -> Path:
    (found,) = store.folder.glob(block(number).key.hex() + "-*")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kv" / "model-1"


# --- the record


def test_what_was_packed_comes_back_bit_by_bit() -> None:
    raw = pack_record(LAYOUT, block(1), TALK, payload(7))
    assert unpack_record(LAYOUT, block(1), TALK, raw) == payload(7)


def test_a_flipped_bit_anywhere_is_refused() -> None:
    raw = pack_record(LAYOUT, block(1), TALK, payload(7))
    for place in range(len(raw)):
        broken = bytearray(raw)
        broken[place] ^= 0x10
        with pytest.raises(RecordRefused):
            unpack_record(LAYOUT, block(1), TALK, bytes(broken))


def test_every_shorter_and_longer_file_is_refused() -> None:
    raw = pack_record(LAYOUT, block(1), TALK, payload(7))
    for other in [*(raw[:cut] for cut in range(len(raw))), raw + b"\0", raw + raw]:
        with pytest.raises(RecordRefused):
            unpack_record(LAYOUT, block(1), TALK, other)


@pytest.mark.parametrize(
    "field", ["fingerprint", "dtype", "shape", "key", "parent_key", "salt", "token_ids", "conversation"]
)
def test_a_sound_record_of_something_else_is_refused(field: str) -> None:
    """The checksum is right each time: only the comparison of `field` can refuse it."""
    layout, identity, conversation = LAYOUT, block(1), TALK
    match field:
        case "fingerprint" | "dtype":
            layout = dataclasses.replace(LAYOUT, **{field: "other"})
        case "shape":
            layout = dataclasses.replace(LAYOUT, shape=(2, 2, 4, 1, 2))
        case "conversation":
            conversation = b"other"
        case "token_ids":
            identity = block(1, token_ids=(9, 2, 3, 4))
        case _:
            identity = block(1, **{field: b"other"})
    raw = pack_record(layout, identity, conversation, payload(7))
    with pytest.raises(RecordRefused, match=field):
        unpack_record(LAYOUT, block(1), TALK, raw)


# --- the folder


def test_folder_and_files_are_for_the_owner_only(folder: Path) -> None:
    store = open_store(folder)
    store.put(block(1), TALK, payload(1))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert file_of(store, 1).stat().st_mode & 0o777 == 0o600


def test_a_restart_finds_what_was_kept(folder: Path) -> None:
    first = open_store(folder)
    first.put(block(1), TALK, payload(1))
    first.put(block(5), b"other", payload(5))
    first.close()
    second = open_store(folder)
    assert (len(second), second.num_bytes) == (2, first.num_bytes)
    assert second.get(block(1)) == payload(1)
    assert second.get(block(5)) == payload(5)
    assert second.num_refused == 0


def test_a_half_written_file_of_a_crash_is_gone_after_the_restart(folder: Path) -> None:
    open_store(folder).close()
    (folder / f"{'ab' * 32}-cd.part").write_bytes(b"half")
    assert len(open_store(folder)) == 0
    assert not list(folder.glob("*.part"))


def test_a_write_that_fails_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(folder)

    def fill_up(path: Path, record: bytes) -> None:
        path.write_bytes(record[:50])
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(disk_store, "_write", fill_up)
    with pytest.raises(OSError, match="no space"):
        store.put(block(1), TALK, payload(1))
    assert [path.name for path in folder.iterdir()] == [disk_store.LOCK_NAME]
    assert not store.has(block(1))


def test_the_least_recently_used_goes_when_the_folder_is_full_also_over_a_restart(folder: Path) -> None:
    probe = open_store(folder.with_name("probe"))
    probe.put(block(1), TALK, payload(1))
    room_for_three = 3 * probe.num_bytes
    store = open_store(folder, max_bytes=room_for_three)
    for number in (1, 2, 3):
        store.put(block(number), TALK, payload(number))
        os.utime(file_of(store, number), (time.time() - 100 + number,) * 2)
    store.stamp([block(1)])
    store.put(block(4), TALK, payload(4))
    assert [store.has(block(number)) for number in (1, 2, 3, 4)] == [True, False, True, True]
    assert store.num_bytes <= room_for_three
    store.close()
    smaller = open_store(folder, max_bytes=2 * probe.num_bytes)
    assert [smaller.has(block(number)) for number in (1, 3, 4)] == [True, False, True]
    assert len(list(folder.glob("*.kv"))) == 2


def test_of_a_chain_that_was_used_the_end_goes_first_also_over_a_restart(folder: Path) -> None:
    """Without its beginning no chain can be read."""
    tier = make_tier(folder)
    for number in (1, 2, 3):
        offer(tier, number)
    tier.read([block(number) for number in (1, 2, 3)])
    num_bytes = tier.num_bytes
    tier.close(timeout_s=1)
    smaller = open_store(folder, max_bytes=num_bytes - 1)
    assert [smaller.has(block(number)) for number in (1, 2, 3)] == [True, True, False]


def test_what_nobody_used_for_long_goes_also_while_the_engine_is_off(folder: Path) -> None:
    clock = Clock(time.time())
    store = DiskStore(folder, LAYOUT, MB, clock)
    store.open("key")
    store.put(block(1), TALK, payload(1))
    store.put(block(2), TALK, payload(2))
    clock.now += disk_store.MAX_AGE_S - 1
    store.stamp([block(1)])
    clock.now += 2
    store.put(block(3), TALK, payload(3))
    assert [store.has(block(number)) for number in (1, 2, 3)] == [True, False, True]
    store.close()
    clock.now += disk_store.MAX_AGE_S + 1
    later = DiskStore(folder, LAYOUT, MB, clock)
    later.open("key")
    assert len(later) == 0
    assert not list(folder.glob("*.kv"))


def test_a_broken_file_is_refused_counted_and_erased(folder: Path) -> None:
    store = open_store(folder)
    for number, spoil in enumerate([lambda raw: raw[:-1], lambda raw: b"", lambda raw: raw + bytes(MB)]):
        store.put(block(number), TALK, payload(number))
        path = file_of(store, number)
        path.write_bytes(spoil(path.read_bytes()))
        assert store.get(block(number)) is None
        assert not path.exists()
        assert store.num_refused == number + 1
        assert (len(store), store.num_bytes) == (0, 0)


def test_a_block_of_another_name_in_a_files_place_is_refused(folder: Path) -> None:
    store = open_store(folder)
    store.put(block(1), TALK, payload(1))
    store.put(block(3), TALK, payload(3))
    file_of(store, 3).replace(file_of(store, 1))
    assert store.get(block(1)) is None
    assert store.num_refused == 1


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    store = open_store(folder)
    store.put(block(1), TALK, payload(1))
    path = file_of(store, 1)
    elsewhere = tmp_path / "elsewhere"
    path.replace(elsewhere)
    path.symlink_to(elsewhere)
    assert store.get(block(1)) is None
    assert elsewhere.exists()


def test_another_layout_finds_nothing_to_believe(folder: Path) -> None:
    first = open_store(folder)
    first.put(block(1), TALK, payload(1))
    first.close()
    second = open_store(folder, layout=dataclasses.replace(LAYOUT, dtype="bfloat16"))
    assert second.get(block(1)) is None
    assert second.num_refused == 1


def test_what_another_salt_key_named_is_erased_at_the_start(folder: Path) -> None:
    first = open_store(folder, owner="key-1")
    first.put(block(1), TALK, payload(1))
    first.close()
    assert len(open_store(folder, owner="key-2")) == 0
    assert not list(folder.glob("*.kv"))


def test_two_engines_never_use_one_folder(folder: Path) -> None:
    store = open_store(folder)
    assert open_disk_tier(DiskStore(folder, LAYOUT, MB), "key-1") is None
    store.close()


def test_blocks_of_models_that_nobody_serves_now_are_erased(folder: Path) -> None:
    left = open_store(folder.with_name("left"))
    left.put(block(1), TALK, payload(1))
    left.close()
    served = open_store(folder.with_name("served"))
    served.put(block(1), TALK, payload(1))
    foreign = folder.with_name("foreign")
    foreign.mkdir()
    open_store(folder).erase_other_models()
    assert not left.folder.exists()
    assert served.get(block(1)) == payload(1)
    assert foreign.exists(), "it has no lock file, so it is not ours"


def test_names_that_cannot_be_listed_in_time_are_erased(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = open_store(folder)
    for number in range(3):
        first.put(block(number), TALK, payload(number))
    first.close()
    monkeypatch.setattr(disk_store, "MAX_SCAN_S", -1.0)
    assert len(open_store(folder)) == 0
    assert not list(folder.glob("*.kv"))


# --- the tier


def make_tier(folder: Path, *, writer: Inline | Held | None = None, clock: Clock | None = None) -> DiskTier:
    threads = Threads(writer or Inline(), Inline())
    return DiskTier(open_store(folder), threads, clock or Clock())


def offer(tier: DiskTier, number: int, conversation: bytes = TALK) -> None:
    tier.offer(block(number), conversation, lambda: payload(number))


def test_a_chain_comes_back_in_order_up_to_its_first_gap(folder: Path) -> None:
    tier = make_tier(folder)
    for number in (1, 2, 4):
        offer(tier, number)
    chain = [block(number) for number in (1, 2, 3, 4)]
    assert tier.num_kept(chain) == 2
    reading = tier.read(chain)
    assert reading.is_done
    assert [bytes(part) for part in reading.payloads] == [payload(1), payload(2)]
    assert tier.read_rate.per_second > 0


def test_a_block_that_is_kept_already_is_not_copied_again(folder: Path) -> None:
    tier = make_tier(folder)
    offer(tier, 1)
    tier.offer(block(1), TALK, lambda: pytest.fail("copied again"))
    assert tier.num_written == 1


def test_a_full_queue_skips_and_counts_and_never_waits(folder: Path) -> None:
    disk = Held()
    tier = make_tier(folder, writer=disk)
    room = MAX_QUEUED_BYTES // LAYOUT.num_bytes
    write = tier._writes
    write.update(object() for _ in range(room - 1))  # type: ignore[misc]
    offer(tier, 1)
    tier.offer(block(2), TALK, lambda: pytest.fail("copied for a full queue"))
    assert (tier.num_skipped, len(disk.jobs)) == (1, 1)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.ENOENT])
def test_a_disk_that_refuses_is_left_alone_for_a_while(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    clock = Clock()
    tier = make_tier(folder, clock=clock)
    asked = []

    def refuse(path: Path, record: bytes) -> None:
        asked.append(path)
        raise OSError(error, os.strerror(error))

    with monkeypatch.context() as patch:
        patch.setattr(disk_store, "_write", refuse)
        offer(tier, 1)
        offer(tier, 2)
    assert (len(asked), tier.num_skipped, tier.num_written) == (1, 1, 0)
    clock.now += WRITE_PAUSE_S
    offer(tier, 2)
    assert tier.num_written == 1


def test_a_folder_that_was_removed_costs_what_was_in_it(folder: Path) -> None:
    tier = make_tier(folder)
    offer(tier, 1)
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    reading = tier.read([block(1)])
    assert (reading.is_done, reading.payloads, tier.num_refused) == (True, [], 0)
    offer(tier, 2)
    assert tier.read([block(2)]).payloads == [payload(2)]


def test_a_place_that_cannot_be_a_folder_means_no_tier(tmp_path: Path) -> None:
    (tmp_path / "kv").write_text("in the way")
    assert open_disk_tier(DiskStore(tmp_path / "kv" / "model-1", LAYOUT, MB), "key-1") is None


def test_forgetting_erases_the_files_of_the_conversation_and_only_them(folder: Path) -> None:
    tier = make_tier(folder)
    offer(tier, 1)
    offer(tier, 2, b"other")
    tier.forget(TALK)
    assert tier.num_kept([block(1)]) == 0
    assert [path.name[65:] for path in folder.glob("*.kv")] == [b"other".hex() + ".kv"]


def test_forgetting_after_a_restart_needs_no_memory_of_who_wrote_what(folder: Path) -> None:
    tier = make_tier(folder)
    offer(tier, 1)
    tier.close(timeout_s=1)
    make_tier(folder).forget(TALK)
    assert not list(folder.glob("*.kv"))


def test_a_block_forgotten_on_its_way_to_the_disk_never_gets_there(folder: Path) -> None:
    disk = Held()
    tier = make_tier(folder, writer=disk)
    offer(tier, 1)
    tier.forget(TALK)
    disk.run_all()
    assert not list(folder.glob("*.kv"))
    assert tier.num_blocks == 0


def test_a_block_forgotten_while_it_is_written_never_gets_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the last byte and the new name is where a check at the start of the write would not look."""
    tier = make_tier(folder)
    really_write = disk_store._write

    def write(path: Path, record: bytes) -> None:
        really_write(path, record)
        tier.forget(TALK)

    monkeypatch.setattr(disk_store, "_write", write)
    offer(tier, 1)
    assert [path.name for path in folder.iterdir()] == [disk_store.LOCK_NAME]


def test_closing_writes_what_waits_with_real_threads(folder: Path) -> None:
    tier = DiskTier(open_store(folder), Threads.start())
    for number in range(20):
        offer(tier, number)
    tier.close(timeout_s=PATIENCE_S)
    assert len(open_store(folder)) == 20


def test_a_disk_that_hangs_does_not_hold_up_the_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs = threading.Event()
    monkeypatch.setattr(disk_store, "_write", lambda path, record: hangs.wait())
    tier = DiskTier(open_store(folder), Threads.start())
    offer(tier, 1)
    tier.close(timeout_s=0.01)
    hangs.set()
