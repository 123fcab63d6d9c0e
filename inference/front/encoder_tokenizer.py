"""The tokenizer of an encoder's folder: texts and pairs in the frame of special tokens that it was trained with.

Knows tokenizer.json. A text that names a special token is still only text, so no pair can be cut in two by what one of
its texts says. Does not know the encoder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as FileTokenizer

from inference.front.model_tokenizer import is_control, safe_ids, text_only

EmbedIds = Callable[[Sequence[str], str, int], list[list[int]]]
PairIds = Callable[[Sequence[tuple[str, str]], int], list[list[int]]]


def read_embed_ids(file: Path) -> EmbedIds:
    """How texts become ids for a sentence encoder: in its frame, cut at the longest it takes."""
    return _embed_ids(_EncoderTokenizer(file))


def read_pair_ids(file: Path) -> PairIds:
    """How pairs become ids for a cross-encoder: in its frame; where they are too long, the longer text is cut."""
    tokenizer = _EncoderTokenizer(file)
    return _pair_ids(tokenizer, tokenizer.pair_frame)


def read_shared_ids(file: Path) -> tuple[EmbedIds, PairIds]:
    """Both of a sentence encoder with a verifier's adapters: the second text follows the end of the first."""
    tokenizer = _EncoderTokenizer(file)
    frame = tokenizer.text_frame
    return _embed_ids(tokenizer), _pair_ids(tokenizer, _Frame(frame.before, frame.after, frame.after))


def _embed_ids(tokenizer: _EncoderTokenizer) -> EmbedIds:
    def embed_ids(texts: Sequence[str], prefix: str, max_tokens: int) -> list[list[int]]:
        frame = tokenizer.text_frame
        room = max_tokens - frame.num_tokens
        plain = tokenizer.encode([prefix + text for text in texts])
        return [[*frame.before, *ids[:room], *frame.after] for ids in plain]

    return embed_ids


def _pair_ids(tokenizer: _EncoderTokenizer, frame: _Frame) -> PairIds:
    def pair_ids(pairs: Sequence[tuple[str, str]], max_tokens: int) -> list[list[int]]:
        room = max_tokens - frame.num_tokens
        plain = tokenizer.encode([text for pair in pairs for text in pair])
        fitted = (_fit(plain[i], plain[i + 1], room) for i in range(0, len(plain), 2))
        return [[*frame.before, *first, *frame.between, *second, *frame.after] for first, second in fitted]

    return pair_ids


@dataclass(frozen=True, slots=True)
class _Frame:
    """The special tokens around one text or two."""

    before: list[int]
    between: list[int]
    after: list[int]

    @property
    def num_tokens(self) -> int:
        return len(self.before) + len(self.between) + len(self.after)


class _EncoderTokenizer:
    def __init__(self, file: Path) -> None:
        fields = json.loads(file.read_bytes())
        full = FileTokenizer.from_str(json.dumps(fields | {"truncation": None, "padding": None}))
        self.text_frame = _frame(full.encode("a"))
        self.pair_frame = _frame(full.encode("a", "a"))
        self._plain = text_only(fields)
        control = {token["id"] for token in fields.get("added_tokens", []) if is_control(token)}
        # What the vocabulary does not know is no control token, whoever wrote it.
        self._forbidden = frozenset(control - {_unknown_id(fields["model"], full)})

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of text alone, without the frame."""
        encodings = self._plain.encode_batch(list(texts), add_special_tokens=False)
        return [
            list(encoding.ids)
            if self._forbidden.isdisjoint(encoding.ids)
            else safe_ids(text, self._plain, self._plain, self._forbidden)
            for text, encoding in zip(texts, encodings, strict=True)
        ]


def _frame(encoding: Any) -> _Frame:
    owners: list[int | None] = encoding.sequence_ids
    ids: list[int] = encoding.ids
    num_before = len(list(takewhile(lambda owner: owner is None, owners)))
    num_after = len(list(takewhile(lambda owner: owner is None, reversed(owners))))
    inner = range(num_before, len(ids) - num_after)
    return _Frame(
        before=ids[:num_before],
        between=[ids[place] for place in inner if owners[place] is None],
        after=ids[len(ids) - num_after :],
    )


def _unknown_id(model: dict[str, Any], tokenizer: FileTokenizer) -> int | None:
    """A unigram vocabulary names it by its place, others by its text."""
    if model.get("unk_id") is not None:
        return int(model["unk_id"])
    return tokenizer.token_to_id(model["unk_token"]) if model.get("unk_token") else None


def _fit(first: list[int], second: list[int], room: int) -> tuple[list[int], list[int]]:
    half = room // 2
    if len(first) <= room - half:
        return first, second[: room - len(first)]
    if len(second) <= half:
        return first[: room - len(second)], second
    return first[: room - half], second[:half]
