"""openai-python's own API tests, out of its source distribution, against a live site."""

from __future__ import annotations

import hashlib
import re
import tarfile
from pathlib import Path

from tests.comply.outside.programs import VENV, run
from tests.livesite import LiveSite

NAME = "openai-3.57.0"
SHA256 = "5a0a89d6a542efc85e2a8cec701ca9265b795d578c777828e10fafdf80e333b6"
FILES = (
    "chat/test_completions.py", "test_completions.py", "test_embeddings.py", "test_models.py", "test_responses.py",
)  # fmt: skip
LEAST = 140


def test_their_tests_pass_but_for_those_that_cannot_apply(
    site: LiveSite, key: str, models: tuple[str, str], tmp_path: Path
) -> None:
    archive = VENV / f"{NAME}.tar.gz"
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == SHA256
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    environ = {
        "TEST_API_BASE_URL": f"{site.url}/v1",
        "COMPLY_KEY": key,
        "COMPLY_MODELS": " ".join(models),
        "PYTHONPATH": str(Path(__file__).parent),
    }
    files = [f"tests/api_resources/{file}" for file in FILES]
    # Their own settings ask for eight workers and for an installation of their checkout.
    options = ["-q", "-p", "openai_own", "-o", "addopts=", "-o", "filterwarnings="]
    done = run(["python", "-m", "pytest", *options, *files], cwd=tmp_path / NAME, environ=environ)
    assert done.returncode == 0, done.stdout[-8000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed.group(1)) >= LEAST
    print(done.stdout.splitlines()[-1])
