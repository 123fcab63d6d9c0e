from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.core.prefix import PrefixCache, Salts, sha256

SIZE = 2
small_ids = st.lists(st.integers(0, 2), max_size=10)


def publish_all(cache: PrefixCache, salt: bytes, ids: list[int], first_block: int) -> list[int]:
    """Publish every full block of `ids`; gives the blocks that hold them."""
    chain: list[int] = []
    for index in range(len(ids) // SIZE):
        chunk = tuple(ids[index * SIZE : (index + 1) * SIZE])
        holder = cache.publish(salt, chain[-1] if chain else None, chunk, first_block + index)
        if holder is None:
            break
        chain.append(holder)
    return chain


@pytest.mark.parametrize("digest", [sha256, lambda payload: b"constant"], ids=["sha256", "constant"])
@given(
    texts=st.lists(st.tuples(st.sampled_from([b"a", b"b"]), small_ids), max_size=6),
    salt=st.just(b"a"),
    ids=small_ids,
)
def test_a_match_is_always_a_published_beginning_of_the_same_salt(digest, texts, salt, ids) -> None:
    cache = PrefixCache(b"model", SIZE, digest)
    content: dict[int, tuple[bytes, list[int]]] = {}
    for number, (owner, text) in enumerate(texts):
        for index, block in enumerate(publish_all(cache, owner, text, first_block=number * 100)):
            content.setdefault(block, (owner, text[: (index + 1) * SIZE]))
    found = cache.match(Salts(salt), ids, [], len(ids))
    for index, block in enumerate(found):
        assert content[block] == (salt, ids[: (index + 1) * SIZE])
    if digest is sha256:
        known = [text for owner, text in texts if owner == salt]
        longest = max([_common_blocks(text, ids) for text in known], default=0)
        assert len(found) == longest


def _common_blocks(first: list[int], second: list[int]) -> int:
    count = 0
    while (count + 1) * SIZE <= min(len(first), len(second)) and first[: (count + 1) * SIZE] == second[
        : (count + 1) * SIZE
    ]:
        count += 1
    return count


def test_equal_content_stays_with_the_older_block() -> None:
    cache = PrefixCache(b"model", SIZE)
    assert cache.publish(b"s", None, (1, 2), 7) == 7
    assert cache.publish(b"s", None, (1, 2), 8) == 7


def test_another_fingerprint_makes_other_keys() -> None:
    first, second = PrefixCache(b"model-a", SIZE), PrefixCache(b"model-b", SIZE)
    assert first._key(b"s", None, (1, 2)) != second._key(b"s", None, (1, 2))


def test_fingerprint_and_salt_are_kept_apart() -> None:
    first, second = PrefixCache(b"ab", SIZE), PrefixCache(b"a", SIZE)
    assert first._key(b"c", None, (1, 2)) != second._key(b"bc", None, (1, 2))


def test_a_child_is_not_found_under_a_new_parent_in_the_same_block() -> None:
    cache = PrefixCache(
        b"model", SIZE, digest=lambda payload: payload[-8:]
    )  # the parent's key does not matter
    cache.publish(b"s", None, (1, 2), 0)
    cache.publish(b"s", 0, (3, 4), 1)
    cache.forget(0)
    cache.publish(b"s", None, (5, 6), 0)
    assert cache.match(Salts(b"s"), [5, 6, 3, 4], [], 4) == [0]


def test_a_limit_cuts_the_match_to_whole_blocks() -> None:
    cache = PrefixCache(b"model", SIZE)
    publish_all(cache, b"s", [1, 2, 3, 4], 0)
    assert cache.match(Salts(b"s"), [1, 2, 3, 4], [], 3) == [0]
