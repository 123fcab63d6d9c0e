"""What the front reads from a model folder: tokenizer, chat template, sampling defaults, stop tokens.

Knows the files' names and forms. Does not know weights, and imports neither torch nor transformers.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jinja2

from inference.front.encoder_tokenizer import (
    EmbedIds,
    PairIds,
    read_embed_ids,
    read_pair_ids,
    read_shared_ids,
)
from inference.front.model import ServedModel
from inference.front.model_tokenizer import ModelTokenizer
from inference.front.prompts import PromptBuilder
from inference.front.sampling import SamplingDefaults
from inference.front.templates import ChatTemplate
from inference.models.adapter_config import is_adapter


class FolderError(Exception):
    """The folder cannot be served; the text says what is missing."""


def read_model_folder(
    folder: Path,
    embed_folder: Path | None,
    verify_folder: Path | None = None,
    *,
    name: str = "",
    is_trial: bool = False,
) -> ServedModel:
    """Raises FolderError."""
    tokenizer = read_tokenizer(folder)
    bos_token, eos_token = tokenizer.bos_token, tokenizer.eos_token
    source = _template_source(folder, read_json(folder / "tokenizer_config.json"))
    try:
        template = ChatTemplate(source, bos_token=bos_token, eos_token=eos_token)
    except jinja2.TemplateError as error:
        raise FolderError(f"{folder}: the chat template cannot be read: {error}") from error
    embed_ids, pair_ids = _encoders(embed_folder, verify_folder)
    return ServedModel(
        name=name or folder.name,
        tokenizer=tokenizer,
        prompts=PromptBuilder(tokenizer, template),
        stop_ids=_stop_ids(folder, tokenizer),
        template_fingerprint=hashlib.sha256(source.encode()).hexdigest()[:16],
        defaults=_defaults(read_json(folder / "generation_config.json")),
        is_trial=is_trial,
        embed_ids=embed_ids,
        pair_ids=pair_ids,
    )


def _encoders(
    embed_folder: Path | None, verify_folder: Path | None
) -> tuple[EmbedIds | None, PairIds | None]:
    if verify_folder is not None and is_adapter(verify_folder):
        if embed_folder is None:
            raise FolderError(f"{verify_folder} holds adapters of a sentence encoder: set EMBED_MODEL to it")
        return read_shared_ids(_required(embed_folder / "tokenizer.json"))
    embed_ids = read_embed_ids(_required(embed_folder / "tokenizer.json")) if embed_folder else None
    pair_ids = read_pair_ids(_required(verify_folder / "tokenizer.json")) if verify_folder else None
    return embed_ids, pair_ids


def read_tokenizer(folder: Path) -> ModelTokenizer:
    """Raises FolderError."""
    settings = read_json(folder / "tokenizer_config.json")
    bos_token, eos_token = _token_text(settings.get("bos_token")), _token_text(settings.get("eos_token"))
    file = _required(folder / "tokenizer.json")
    try:
        return ModelTokenizer(file, bos_token=bos_token, eos_token=eos_token)
    except Exception as error:  # the library has no class of its own
        raise FolderError(f"{file} is no tokenizer: {error}") from error


def _template_source(folder: Path, settings: dict[str, Any]) -> str:
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    template = settings.get("chat_template")
    if isinstance(template, list):
        named = {entry["name"]: entry["template"] for entry in template}
        template = named.get("default")
    if not isinstance(template, str):
        raise FolderError(f"{folder} has no chat template: a chat needs an instruct model")
    return template


def _stop_ids(folder: Path, tokenizer: ModelTokenizer) -> frozenset[int]:
    """Every token that the folder's files call the end."""
    ids: set[int] = set()
    for file in ("generation_config.json", "config.json"):
        value = read_json(folder / file).get("eos_token_id")
        ids |= set(value) if isinstance(value, list) else {value} if isinstance(value, int) else set()
    if tokenizer.eos_token and tokenizer.control_pattern.fullmatch(tokenizer.eos_token):
        ids.add(tokenizer.control_id(tokenizer.eos_token))
    # Some files name an end that the vocabulary does not have: it never comes, and the core would refuse it.
    ids = {token for token in ids if tokenizer.knows(token)}
    if not ids:
        raise FolderError(f"{folder} names no end-of-sequence token: its answers would never end")
    return frozenset(ids)


def _defaults(fields: dict[str, Any]) -> SamplingDefaults:
    """A greedy model stays greedy; values that are not given are ours."""
    known = {
        name: fields[name] for name in SamplingDefaults.__dataclass_fields__ if fields.get(name) is not None
    }
    if fields.get("do_sample") is False:
        known["temperature"] = 0.0
    return SamplingDefaults(**known)


def _token_text(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("content", ""))
    return value if isinstance(value, str) else ""


def _required(file: Path) -> Path:
    if not file.is_file():
        raise FolderError(f"{file} is missing")
    return file


def read_json(file: Path) -> dict[str, Any]:
    """The fields of a file of the folder; none where there is no such file. Raises FolderError."""
    if not file.is_file():
        return {}
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FolderError(f"{file} is not JSON: {error}") from error
    return fields if isinstance(fields, dict) else {}
