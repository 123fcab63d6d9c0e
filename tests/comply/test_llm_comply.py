"""The public conformance sets for chat completions and responses. What may miss is named, and nothing else may."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.livesite import LiveSite

# The models we serve read no images and do not reason aloud.
MAY_MISS = {
    "openai-chat": {"chat-image-input", "chat-reasoning-summary"},
    "open-responses": {"image-input", "reasoning-summary"},
}


@pytest.mark.parametrize("form", MAY_MISS)
def test_only_images_and_reasoning_may_miss(
    site: LiveSite, key: str, models: tuple[str, str], form: str
) -> None:
    program = Path(sys.executable).parent / "llm-comply"
    argv = [program, "--format", form, "-u", f"{site.url}/v1", "-k", key, "-m", models[0], "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    results = json.loads(done.stdout)["results"]
    missed = {result["id"]: result.get("errors") for result in results if result["status"] != "passed"}
    assert len(results) >= 9
    assert set(missed) <= MAY_MISS[form], missed
