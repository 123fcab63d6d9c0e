"""The raw bytes of single tokens, also of those that are no whole characters.

Knows how vocabularies write bytes: byte-level ones as letters of an alphabet of 256, SentencePiece ones as <0xE4> and
with a mark for the blank. Does not know how a row of tokens becomes text (`front.detokenizer`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
# Bytes that GPT-2's alphabet writes as themselves; the others are written as U+0100 and up, in their order.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
BYTE_OF = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + n): byte for n, byte in enumerate(_OTHERS)}


def piece_reader(fields: dict[str, Any]) -> Callable[[str], bytes]:
    """From an entry of the vocabulary to its bytes, as the decoder in tokenizer.json has it."""
    decoders = list(_parts(fields.get("decoder")))
    kinds = {decoder["type"] for decoder in decoders}
    if "ByteLevel" in kinds:
        return _byte_level
    blanks = [mark for decoder in decoders if (mark := _blank_mark(decoder))]

    def read(piece: str) -> bytes:
        found = _BYTE_PIECE.fullmatch(piece) if "ByteFallback" in kinds else None
        if found:
            return bytes([int(found[1], 16)])
        for mark in blanks:
            piece = piece.replace(mark, " ")
        return piece.encode()

    return read


def _byte_level(piece: str) -> bytes:
    """An entry with other letters than the alphabet's is spelled as it is."""
    try:
        return bytes([BYTE_OF[letter] for letter in piece])
    except KeyError:
        return piece.encode()


def _parts(decoder: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    if decoder is not None and decoder["type"] == "Sequence":
        for part in decoder["decoders"]:
            yield from _parts(part)
    elif decoder is not None:
        yield decoder


def _blank_mark(decoder: dict[str, Any]) -> str:
    """What stands for a blank in this vocabulary; empty where this decoder does not say."""
    if decoder["type"] == "Metaspace":
        return str(decoder["replacement"])
    if decoder["type"] == "Replace" and decoder["content"] == " ":
        return str(decoder["pattern"].get("String", ""))
    return ""
