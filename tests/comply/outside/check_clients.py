"""Clients of others, unmodified: LangChain, and `llm` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.comply.outside.programs import run
from tests.livesite import LiveSite


def test_langchain_asks_streams_and_embeds(site: LiveSite, key: str, models: tuple[str, str]) -> None:
    script = Path(__file__).parent / "langchain_client.py"
    environ = {"COMPLY_URL": f"{site.url}/v1", "COMPLY_KEY": key, "COMPLY_MODELS": " ".join(models)}
    done = run(["python", script], environ=environ)
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert got["whole"] == "You said: Good morning (2 words)"
    assert got["streamed"] == "You said: Good evening (2 words)"
    assert got["finish_reason"] == "stop" and got["tokens"] > 0 and got["num_pieces"] > 2
    assert got["dimensions"][0] == got["dimensions"][1] > 0


@pytest.mark.parametrize("how", [[], ["--no-stream"], ["-o", "max_tokens", "3"]], ids=" ".join)
def test_llm_answers_on_the_command_line(
    site: LiveSite, key: str, models: tuple[str, str], tmp_path: Path, how: list[str]
) -> None:
    (tmp_path / "extra-openai-models.yaml").write_text(
        f"- model_id: rill\n  model_name: {models[0]}\n  api_base: {site.url}/v1\n  api_key_name: rill\n"
    )
    (tmp_path / "keys.json").write_text(json.dumps({"rill": key}))
    done = run(
        ["llm", "-m", "rill", "--usage", *how, "Hello there"], environ={"LLM_USER_PATH": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr
    whole = "You said: Hello there (2 words)"
    said = done.stdout.strip()
    assert said == whole if "-o" not in how else whole.startswith(said)
    assert "Token usage" in done.stderr and "input" in done.stderr
