"""The pure modules stay pure: a fresh interpreter that imports one holds no Django and no engine."""

from __future__ import annotations

import subprocess
import sys

import pytest

PURE = (
    "scope", "decision", "judge", "look", "breaker", "rules.policy", "rules.presets", "imports.cells", "imports.file",
    "text.normalize", "text.wording", "text.numerals", "text.lexicon", "text.spelling", "text.reading", "text.guard",
    "text.agreement", "text.followup", "text.context",
)  # fmt: skip

IMPURE = ("django", "inference", "chatsite", "celery", "torch", "psycopg")


@pytest.mark.parametrize("module", PURE)
def test_a_pure_module_reaches_neither_django_nor_the_engine(module):
    script = f"import sys, semcache.{module}\nprint([name for name in {IMPURE} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
