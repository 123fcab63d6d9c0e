"""Open data that the verifier learns from: only the halves that are for training, each known by its checksum.

Knows where files may lie (packed or not) and how their rows are written. Does not know what is made of them (`mix`).
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Sequence
from pathlib import Path

from inference.verifier.generate import Pair

OWN_FOLDER = Path(__file__).parent / "data"
# Of the unpacked files. The halves for testing are not here, so they cannot be trained on by mistake.
CHECKSUMS = {
    "fow_pairs_dev.jsonl": "ac6e9c12844d59bfdaca33a9fe73c8c42053ced4b18ebae282ab747080154c0a",
    "pawsx_zh_train.tsv": "34a3b82a970b29b62f3012c6ac60bfd606c02947f124c154f7fae575d1537c5a",
    "banking77_train.tsv": "fdfb7ba369f5ec303a4cb37a0849d63ba1ab51e23304d13a6512748828b7dd46",
    "clinc150_train.tsv": "e611e37a3e5be4fef79dd4fb855d5b8f42fcb11625ea7016b211fc8b3c1f0419",
    "gptcache_mock.jsonl": "ac10259f2838058b728fa7c959961ba7cd9abc4b2cd179b2f7335a678d3b1c5b",
}


class SourceError(Exception):
    """A file is missing or is not the one that is expected; the text says which."""


def read_pairs(name: str, folders: Sequence[Path]) -> list[Pair]:
    """fow, PAWS-X or GPTCache."""
    rows = read_lines(name, folders)
    if name.endswith(".tsv"):
        fields = (row.split("\t") for row in rows)
        return [Pair(first, second, label == "1", "statement", name) for first, second, label in fields]
    parsed = (json.loads(row) for row in rows)
    return [
        Pair(row["a"], row["b"], bool(row.get("same_answer", True)), row.get("category", "paraphrase"), name)
        for row in parsed
    ]


def read_intents(name: str, folders: Sequence[Path]) -> list[tuple[str, str]]:
    """banking77 or CLINC150: texts and their intents."""
    rows = (row.split("\t") for row in read_lines(name, folders))
    return [(text, intent) for text, intent in rows]


def read_lines(name: str, folders: Sequence[Path]) -> list[str]:
    """Raises SourceError."""
    for folder in folders:
        for file in (folder / name, folder / f"{name}.xz"):
            if file.is_file():
                content = lzma.decompress(file.read_bytes()) if file.suffix == ".xz" else file.read_bytes()
                if hashlib.sha256(content).hexdigest() != CHECKSUMS[name]:
                    raise SourceError(f"{file} is not the {name} that the verifier is trained on")
                return content.decode().rstrip("\n").split("\n")
    raise SourceError(f"{name} is in none of the folders {', '.join(map(str, folders))}")
