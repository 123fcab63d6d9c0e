"""What the web process must not load: it holds no model and no tokenizer, and asks other hosts only where told to."""

from __future__ import annotations

import os
import subprocess
import sys

HEAVY = ("torch", "transformers", "tokenizers", "safetensors")


FETCHING = ("authlib", "requests", "urllib3")


def loaded(names: tuple[str, ...]) -> str:
    """Those of `names` that are loaded once the web process knows its routes."""
    script = (
        "import sys, chatsite.asgi\n"
        "from django.urls import get_resolver\n"
        "get_resolver().url_patterns\n"
        f"print([name for name in {names} if name in sys.modules])"
    )
    environ = os.environ | {"DJANGO_SETTINGS_MODULE": "chatsite.settings"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_web_process_loads_no_model_library() -> None:
    assert loaded(HEAVY) == "[]"


def test_what_asks_a_provider_of_identities_is_not_loaded_where_there_is_none() -> None:
    assert loaded(FETCHING) == "[]"
