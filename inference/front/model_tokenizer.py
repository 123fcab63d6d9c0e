"""The tokenizer of a model folder, twice: one reads text only, one knows the control tokens.

Knows tokenizer.json. Does not know templates, nor what the tokens mean to the model. Needs the `tokenizers` library
and neither torch nor transformers.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as FileTokenizer

from inference.front.token_bytes import piece_reader

NOTHING = re.compile(r"(?!)")


class ModelTokenizer:
    """Satisfies `front.tokenizer.Tokenizer`.

    Control tokens are all added tokens but those that are blanks only (some models keep runs of blanks there).
    """

    def __init__(self, file: Path, *, bos_token: str = "", eos_token: str = "") -> None:
        raw = file.read_bytes()
        fields = json.loads(raw)
        added = [token for token in fields.get("added_tokens", []) if is_control(token)]
        self.fingerprint = hashlib.sha256(raw).hexdigest()[:16]
        self.bos_token, self.eos_token = bos_token, eos_token
        self.special_ids = frozenset(token["id"] for token in added if token["special"])
        self.control_pattern = _pattern_of(added)
        self._control_ids: dict[str, int] = {token["content"]: token["id"] for token in added}
        self.control_ids = frozenset(self._control_ids.values())
        self._added: dict[int, str] = {
            token["id"]: token["content"] for token in fields.get("added_tokens", [])
        }
        self._read_piece = piece_reader(fields)
        self._full = FileTokenizer.from_str(json.dumps(fields | {"truncation": None, "padding": None}))
        self.num_tokens = max(self._full.get_vocab().values(), default=-1) + 1
        self._at_start = text_only(fields)
        self._inside = text_only(_without_first_blank(fields))

    def knows(self, token: int) -> bool:
        return self._full.id_to_token(token) is not None

    def control_id(self, text: str) -> int:
        """`text` as `control_pattern` matched it: blanks that the token swallows may be around it."""
        return self._control_ids[text] if text in self._control_ids else self._control_ids[text.strip()]

    def encode_plain(self, text: str, *, is_start: bool = False) -> list[int]:
        reader = self._at_start if is_start else self._inside
        return safe_ids(text, reader, self._inside, self.control_ids)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._full.decode(list(ids), skip_special_tokens=False))

    def token_bytes(self, token: int) -> bytes:
        if token in self._added:
            return self._added[token].encode()
        piece = self._full.id_to_token(token)
        return self._read_piece(piece) if piece is not None else b""


def safe_ids(text: str, reader: FileTokenizer, inside: FileTokenizer, forbidden: frozenset[int]) -> list[int]:
    """The ids, after cutting text that a vocabulary still takes for a control token (rare: names that are
    ordinary entries of it). Cut in two, its halves are read apart, by `inside`."""
    encoding = reader.encode(text, add_special_tokens=False)
    ids: list[int] = list(encoding.ids)
    if forbidden.isdisjoint(ids):
        return ids
    places = [place for token, place in zip(ids, encoding.offsets, strict=True) if token in forbidden]
    cuts = sorted({max(start + 1, (start + end) // 2) for start, end in places} - {len(text)})
    if not cuts:
        return [token for token in ids if token not in forbidden]
    parts = [text[start:end] for start, end in pairwise([0, *cuts, len(text)])]
    return [token for part in parts for token in safe_ids(part, inside, inside, forbidden)]


def is_control(token: dict[str, Any]) -> bool:
    return bool(token["special"] or token["content"].strip())


def _pattern_of(added: list[dict[str, Any]]) -> re.Pattern[str]:
    """Longest first, as tokenizers match them; a token may swallow the blanks beside it."""
    longest_first = sorted(added, key=lambda token: -len(token["content"]))
    patterns = [
        (r"\s*" if token.get("lstrip") else "")
        + re.escape(token["content"])
        + (r"\s*" if token.get("rstrip") else "")
        for token in longest_first
    ]
    return re.compile("|".join(patterns)) if patterns else NOTHING


def text_only(fields: dict[str, Any]) -> FileTokenizer:
    """The same tokenizer, blind to control tokens, and without ids that it would add by itself."""
    vocabulary = fields["model"]["vocab"]
    known = set(vocabulary if isinstance(vocabulary, dict) else (piece for piece, _ in vocabulary))
    kept = [
        _unreachable(token) if is_control(token) else token
        for token in fields.get("added_tokens", [])
        if not (is_control(token) and token["content"] in known)
    ]
    off = {"added_tokens": kept, "post_processor": None, "truncation": None, "padding": None}
    return FileTokenizer.from_str(json.dumps(fields | off))


def _unreachable(token: dict[str, Any]) -> dict[str, Any]:
    """The token under a name that nobody can guess: left out, those behind it would get other ids."""
    return token | {"content": f"\ue000{secrets.token_hex(16)}\ue001", "special": True, "normalized": False}


def _without_first_blank(value: Any) -> Any:
    """The fields with every `prepend_scheme: first` off: behind a control token no blank is put before a text."""
    if isinstance(value, dict):
        changed = {key: _without_first_blank(part) for key, part in value.items() if key != "vocab"}
        if changed.get("prepend_scheme") == "first":
            changed["prepend_scheme"] = "never"
        return changed | ({"vocab": value["vocab"]} if "vocab" in value else {})
    if isinstance(value, list) and any(isinstance(part, dict) for part in value[:1]):
        return [_without_first_blank(part) for part in value]
    return value
