"""One KV block as bytes on disk, and every reason not to believe them.

A record is: magic, length of the header, header (msgpack), the block's numbers as they lay in memory, SHA-256 over
all that. The header says whose block it is and what it holds; nothing in it is trusted before it was compared with what
the reader expects. Knows bytes only: no files, no tensors.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

import msgspec

from inference.core.prefix import BlockIdentity

MAGIC = b"RILLKV\x00\x01"
VERSION = 1
HEADER_LENGTH = struct.Struct("<I")
DIGEST_BYTES = 32
# Ids, keys and names of one block; a longer header is no header.
MAX_HEADER_BYTES = 64 * 1024


class RecordRefused(Exception):
    """These bytes are not the block that was asked for; the text says why."""


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """How one block's numbers lie in memory. Blocks of two layouts are never exchanged."""

    fingerprint: str  # of model and precision
    dtype: str
    shape: tuple[int, ...]
    num_bytes: int


class _Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    fingerprint: str
    dtype: str
    shape: tuple[int, ...]
    key: bytes
    parent_key: bytes
    salt: bytes
    token_ids: tuple[int, ...]
    conversation: bytes
    payload_bytes: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Header)


def pack_record(layout: BlockLayout, block: BlockIdentity, conversation: bytes, payload: bytes) -> bytes:
    assert len(payload) == layout.num_bytes, f"{len(payload)} bytes are no block of {layout.num_bytes}"
    header = _encoder.encode(_header(layout, block, conversation))
    body = b"".join([MAGIC, HEADER_LENGTH.pack(len(header)), header, payload])
    return body + hashlib.sha256(body).digest()


def unpack_record(layout: BlockLayout, block: BlockIdentity, conversation: bytes, raw: bytes) -> memoryview:
    """The payload, when every byte is as it was written and the block is the expected one. Raises RecordRefused."""
    view = memoryview(raw)
    body, digest = view[:-DIGEST_BYTES], view[-DIGEST_BYTES:]
    start = len(MAGIC) + HEADER_LENGTH.size
    if len(body) < start or body[: len(MAGIC)] != MAGIC:
        raise RecordRefused("it is no record of ours")
    if hashlib.sha256(body).digest() != digest:
        raise RecordRefused("its checksum is wrong")
    (header_bytes,) = HEADER_LENGTH.unpack_from(body, len(MAGIC))
    payload = body[start + header_bytes :]
    try:
        header = _decoder.decode(body[start : start + header_bytes])
    except msgspec.DecodeError as error:
        raise RecordRefused(f"its header cannot be read: {error}") from error
    expected = _header(layout, block, conversation)
    if header != expected:
        raise RecordRefused(f"it holds another block: {_differences(header, expected)}")
    if len(payload) != layout.num_bytes:
        raise RecordRefused(f"it holds {len(payload)} bytes, not {layout.num_bytes}")
    return payload


def max_record_bytes(layout: BlockLayout) -> int:
    """No record of this layout is longer."""
    return len(MAGIC) + HEADER_LENGTH.size + MAX_HEADER_BYTES + layout.num_bytes + DIGEST_BYTES


def _header(layout: BlockLayout, block: BlockIdentity, conversation: bytes) -> _Header:
    return _Header(
        version=VERSION,
        fingerprint=layout.fingerprint,
        dtype=layout.dtype,
        shape=layout.shape,
        key=block.key,
        parent_key=block.parent_key,
        salt=block.salt,
        token_ids=block.token_ids,
        conversation=conversation,
        payload_bytes=layout.num_bytes,
    )


def _differences(header: _Header, expected: _Header) -> str:
    """Names only: ids and salts belong in no log."""
    names = [n for n in header.__struct_fields__ if getattr(header, n) != getattr(expected, n)]
    return ", ".join(names)
