"""What the web process must not load: it holds no model and no tokenizer."""

from __future__ import annotations

import os
import subprocess
import sys

HEAVY = ("torch", "transformers", "tokenizers", "safetensors")


def test_the_web_process_loads_no_model_library() -> None:
    script = (
        "import sys, chatsite.asgi\n"
        "from django.urls import get_resolver\n"
        "get_resolver().url_patterns\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    environ = os.environ | {"DJANGO_SETTINGS_MODULE": "chatsite.settings"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
