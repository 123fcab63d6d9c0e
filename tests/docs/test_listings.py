"""docs/ lists every route, metric and error code that the code has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from chatsite import metrics
from chatsite.engine_metrics import COUNTERS, GAUGES

ROOT = Path(__file__).resolve().parents[2]
API_PAGE = (ROOT / "docs" / "api.md").read_text()
ERRORS = ROOT / "inference" / "errors.py"
OPERATIONS_PAGE = (ROOT / "docs" / "operations.md").read_text()
# Where an error's code stands among the arguments of the call that makes it.
CODE_ARGUMENT = {
    "ApiError": 1,
    "invalid": 2,
    "ReplyRefused": 0,
    "KeyRefused": 0,
    "Outcome": 2,
    "ErrorFrame": 0,
}


def routes(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[str]:
    for entry in patterns:
        route = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from routes(entry.url_patterns, route)
        else:
            yield "/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route).replace("\\Z", "").lstrip("^")


def documented_routes() -> list[str]:
    """Every route outside the admin, whose pages explain themselves."""
    return sorted({route for route in routes(get_resolver().url_patterns) if not route.startswith("/admin/")})


@pytest.mark.parametrize("route", documented_routes())
def test_every_route_is_listed(route):
    assert f"`{route}`" in API_PAGE


def metric_names() -> list[str]:
    own = [family.name for family in metrics.registry.collect() if family.name.startswith("rill_")]
    engine = [name for name, _text in [*GAUGES.values(), *COUNTERS.values()]]
    labelled = {
        "rill_blocks",
        "rill_kept_blocks",
        "rill_prefix_overlap",
        "rill_queue_held_up",
        "rill_reused_tokens",
    }
    return sorted({*own, *engine, *labelled, "rill_engine_up", "rill_engine_ready"})


@pytest.mark.parametrize("name", metric_names())
def test_every_metric_is_listed(name):
    assert f"`{name}`" in OPERATIONS_PAGE


def error_codes() -> list[str]:
    sources = [*(ROOT / "chatsite").rglob("*.py"), *(ROOT / "inference" / "front").rglob("*.py"), ERRORS]
    sources = [source for source in sources if ROOT / "chatsite" / "launcher" not in source.parents]
    return sorted({code for source in sources for code in _codes_in(ast.parse(source.read_text()))})


def _codes_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and [getattr(t, "id", "") for t in node.targets] == ["code"]:
            yield from _literal(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CODE_ARGUMENT:
            place = CODE_ARGUMENT[node.func.id]
            if place < len(node.args):
                yield from _literal(node.args[place])
            for keyword in node.keywords:
                if keyword.arg in ("code", "error_code"):
                    yield from _literal(keyword.value)


def _literal(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str) and value.value:
        yield value.value


# Bases of the trees; nothing raises them.
@pytest.mark.parametrize(
    "code", [c for c in error_codes() if c not in {"site_error", "engine_error", "refused"}]
)
def test_every_error_code_is_listed(code):
    assert f"`{code}`" in API_PAGE
