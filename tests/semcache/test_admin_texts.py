"""Every text of the cache's admin has a Chinese one, and the pages speak it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils.translation import gettext, ngettext, override

from tests.semcache import factories

ROOT = Path(__file__).resolve().parents[2]
MARKS = {"_", "gettext", "gettext_lazy", "ngettext"}


def texts_of_code() -> Iterator[str]:
    for source in sorted((ROOT / "semcache").rglob("*.py")):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MARKS:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value


def texts_of_templates() -> Iterator[str]:
    for page in sorted((ROOT / "templates" / "admin" / "semcache").rglob("*.html")):
        source = page.read_text()
        yield from (found[2] for found in re.finditer(r"\{% translate ([\"'])(.*?)\1 %\}", source))
        for found in re.finditer(
            r"\{% blocktranslate.*?%\}(.*?)\{% endblocktranslate %\}", source, re.DOTALL
        ):
            yield re.sub(r"\{\{ (\w+) \}\}", r"%(\1)s", found[1].split("{% plural %}")[0])


@pytest.mark.parametrize("text", sorted({*texts_of_code(), *texts_of_templates()}))
def test_every_text_has_a_chinese_one(text):
    with override("zh-hans"):
        said = {gettext(text), ngettext(text, text, 2)}
    assert any(re.search("[\u4e00-\u9fff]", one) for one in said)


@pytest.mark.django_db
def test_the_pages_speak_chinese(staff):
    rule = factories.rule(name="Weather")
    factories.row("a" * 64, "b" * 64, rule)
    for name, word in [
        ("semcache_cacherule_changelist", "测试一个问题"),
        ("semcache_cacherule_add", "试运行"),
        ("semcache_cacheentry_changelist", "批量移除"),
        ("semcache_evict_many", "统计数量"),
        ("semcache_try_question", "与此问题比较"),
    ]:
        page = staff.get(reverse(f"admin:{name}"), HTTP_ACCEPT_LANGUAGE="zh-hans").content.decode()
        assert word in page
