"""What a folder with a verifier's adapters says about itself. Knows its config.json; imports no torch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from inference.models.errors import ModelNotUsable

ADAPTER_TYPE = "verifier_adapter"
WEIGHTS_NAME = "adapter.safetensors"


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """Adapters fit the one encoder that they were trained on, and no other."""

    base: str  # its name, for people
    base_digest: str  # of its weights
    separator: int  # the token that ends each of the two texts
    num_layers: int  # the uppermost ones, which are its own
    model_type: str = ADAPTER_TYPE


def is_adapter(folder: Path) -> bool:
    """Other folders hold a whole cross-encoder. A folder that cannot be read is left to who loads it."""
    return _fields(folder).get("model_type") == ADAPTER_TYPE


def read_adapter_config(folder: Path) -> AdapterConfig:
    try:
        config = AdapterConfig(**_fields(folder))
    except TypeError as error:
        raise ModelNotUsable(f"{folder / 'config.json'} is damaged ({error})") from None
    if not all(type(number) is int and number >= 0 for number in (config.num_layers, config.separator)):
        raise ModelNotUsable(f"{folder / 'config.json'} is damaged (num_layers or separator is no number)")
    return config


def write_adapter_config(folder: Path, config: AdapterConfig) -> None:
    (folder / "config.json").write_text(json.dumps(asdict(config), indent=2) + "\n", encoding="utf-8")


def _fields(folder: Path) -> dict[str, Any]:
    try:
        fields = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}
