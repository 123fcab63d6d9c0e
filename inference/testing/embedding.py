"""Deterministic vectors for the scripted engine: equal texts are equal, texts that share words are near.

Knows words and character triples. Knows no meaning: synonyms are strangers here.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
from array import array

from inference.testing.tokenizer import bytes_of

DIM = 384
TAG = "scripted-hash-384"
PAIR_SEPARATOR = 0  # between the two texts of a pair

_WORD = re.compile(r"[一-鿿぀-ヿ]|\w+")


def embed_text(text: str) -> array[float]:
    """(384,) float32, L2-normalised; the zero text gets a unit vector too."""
    values = [0.0] * DIM
    for feature, weight in _features(text.lower()):
        digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        number = int.from_bytes(digest, "little")
        values[number % DIM] += weight if number >> 63 else -weight
    norm = math.sqrt(sum(value * value for value in values))
    if norm == 0:
        values[0] = norm = 1.0
    return array("f", [value / norm for value in values])


def embed_ids(ids: list[int]) -> bytes:
    """Little-endian float32 of the text that these ids spell."""
    vector = embed_text(_text(ids))
    if sys.byteorder == "big":
        vector.byteswap()
    return vector.tobytes()


def similarity(pair_ids: list[int]) -> float:
    """0 to 1 for two texts joined by PAIR_SEPARATOR."""
    split = pair_ids.index(PAIR_SEPARATOR) if PAIR_SEPARATOR in pair_ids else len(pair_ids)
    first, second = embed_text(_text(pair_ids[:split])), embed_text(_text(pair_ids[split + 1 :]))
    return max(0.0, min(1.0, sum(left * right for left, right in zip(first, second, strict=True))))


def _text(ids: list[int]) -> str:
    return b"".join(map(bytes_of, ids)).decode("utf-8", "replace")


def _features(text: str) -> list[tuple[str, float]]:
    words = _WORD.findall(text)
    features = [(f"word {word}", 1.0) for word in words]
    for word in words:
        padded = f"^{word}$"
        features += [(f"part {padded[at : at + 3]}", 0.3) for at in range(len(padded) - 2)]
    return features
