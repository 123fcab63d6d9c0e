"""The tokenizer of a model folder, twice: one reads text only, one knows the control tokens.

Knows tokenizer.json. Does not know templates, nor what the tokens mean to the model. Needs the `tokenizers` library
and neither torch nor transformers.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as FileTokenizer

NOTHING = re.compile(r"(?!)")


class ModelTokenizer:
    """Satisfies `front.tokenizer.Tokenizer`.

    Control tokens are all added tokens but those that are blanks only (some models keep runs of blanks there).
    """

    def __init__(self, file: Path, *, bos_token: str = "", eos_token: str = "") -> None:
        raw = file.read_bytes()
        fields = json.loads(raw)
        added = [token for token in fields.get("added_tokens", []) if _is_control(token)]
        self.fingerprint = hashlib.sha256(raw).hexdigest()[:16]
        self.bos_token, self.eos_token = bos_token, eos_token
        self.special_ids = frozenset(token["id"] for token in added if token["special"])
        self.control_pattern = _pattern_of(added)
        self._control_ids: dict[str, int] = {token["content"]: token["id"] for token in added}
        self._forbidden = frozenset(self._control_ids.values())
        self._full = FileTokenizer.from_str(json.dumps(fields | {"truncation": None, "padding": None}))
        self._at_start = _text_only(fields)
        self._inside = _text_only(_without_first_blank(fields))

    def knows(self, token: int) -> bool:
        return self._full.id_to_token(token) is not None

    def control_id(self, text: str) -> int:
        """`text` as `control_pattern` matched it: blanks that the token swallows may be around it."""
        return self._control_ids[text] if text in self._control_ids else self._control_ids[text.strip()]

    def encode_plain(self, text: str, *, is_start: bool = False) -> list[int]:
        reader = self._at_start if is_start else self._inside
        return self._safe_ids(text, reader.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._full.decode(list(ids), skip_special_tokens=False))

    def token_bytes(self, token: int) -> bytes:
        return self.decode([token]).encode()

    def _safe_ids(self, text: str, encoding: Any) -> list[int]:
        """The ids, after cutting text that a vocabulary still takes for a control token (rare: names that are
        ordinary entries of it). Cut in two, its halves are read apart."""
        ids: list[int] = list(encoding.ids)
        if self._forbidden.isdisjoint(ids):
            return ids
        number = next(index for index, token in enumerate(ids) if token in self._forbidden)
        start, end = encoding.offsets[number]
        cut = max(start + 1, (start + end) // 2)
        if not 0 < cut < len(text):
            return [token for token in ids if token not in self._forbidden]
        return self.encode_plain(text[:cut]) + self.encode_plain(text[cut:])


def read_embed_ids(file: Path) -> Callable[[Sequence[str], str, int], list[list[int]]]:
    """How texts become ids for a sentence encoder: with its own special tokens, cut at the longest it takes.

    A text that names a control token is still only text.
    """
    tokenizer = FileTokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True

    def embed_ids(texts: Sequence[str], prefix: str, max_tokens: int) -> list[list[int]]:
        tokenizer.enable_truncation(max_tokens)
        return [encoding.ids for encoding in tokenizer.encode_batch([prefix + text for text in texts])]

    return embed_ids


def _is_control(token: dict[str, Any]) -> bool:
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


def _text_only(fields: dict[str, Any]) -> FileTokenizer:
    """The same tokenizer, blind to control tokens, and without ids that it would add by itself."""
    vocabulary = fields["model"]["vocab"]
    known = set(vocabulary if isinstance(vocabulary, dict) else (piece for piece, _ in vocabulary))
    kept = [
        _unreachable(token) if _is_control(token) else token
        for token in fields.get("added_tokens", [])
        if not (_is_control(token) and token["content"] in known)
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
