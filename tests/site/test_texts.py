"""English and Chinese are both complete: in the scripts' catalogues and in the server's."""

from __future__ import annotations

import gettext
import re
from pathlib import Path

from django.contrib import admin
from django.utils.translation import override

ROOT = Path(__file__).resolve().parents[2]
CHAT = ROOT / "static" / "chat"
MESSAGES = ROOT / "chatsite" / "locale" / "zh_Hans" / "LC_MESSAGES"
# What people who are not staff can meet; the admin's own pages follow with the admin.
SOURCES = [*(ROOT / "templates").rglob("*.html"), *(ROOT / "chatsite" / "accounts").rglob("[fv]*s.py")]
ENTRY = re.compile(r'^  "([^"]+)": "(.+)",$', re.MULTILINE)
NAMES = re.compile(r"\{(\w+)\}")
# Keys that are put together at run time.
BUILT = (
    "error.",
    "status.",
    "connection.",
    "kept.",
    "line.",
    "phase.",
    "starter.",
    "greeting",
    "truth.",
    "model.",
    "thumb.",
    "rated.",
    "reason.",
    "variant.",
    "variants.",
    "param.",
    "quota.",
    "theme.",
    "text_size.",
    "language.",
)


def catalogue(language: str) -> dict[str, str]:
    texts = "\n".join(path.read_text() for path in sorted((CHAT / "texts" / language).glob("*.js")))
    return dict(ENTRY.findall(texts))


def test_both_catalogues_have_the_same_texts() -> None:
    english, chinese = catalogue("en"), catalogue("zh-hans")
    # Chinese has no form for one.
    assert {key for key in english if not key.endswith(".one")} == set(chinese)


def test_texts_name_the_same_values() -> None:
    english, chinese = catalogue("en"), catalogue("zh-hans")
    for key, text in chinese.items():
        assert set(NAMES.findall(text)) == set(NAMES.findall(english[key])), key


def test_every_text_that_a_script_asks_for_exists_and_every_text_is_used() -> None:
    scripts = [*CHAT.rglob("*.js"), *(ROOT / "static" / "account").glob("*.js")]
    script = "\n".join(path.read_text() for path in scripts if "texts" not in path.parts)
    asked = set(re.findall(r'\bt\("([^"]+)"', script))
    english = catalogue("en")
    assert asked <= set(english)
    quoted = set(re.findall(r'"([a-z_.]+)"', script))
    left = {
        key for key in english if key.removesuffix(".one") not in asked | quoted and not key.startswith(BUILT)
    }
    assert left == set()


def test_every_text_of_the_pages_is_translated() -> None:
    with (MESSAGES / "django.mo").open("rb") as compiled:
        translations = gettext.GNUTranslations(compiled)
    for path in SOURCES:
        if "admin" in path.relative_to(ROOT).parts:
            continue
        for text in texts_of(path):
            assert translations.gettext(text) != text, f"{path.name}: {text}"


def test_every_table_of_the_admin_and_its_group_is_named_in_chinese() -> None:
    ours = [
        model._meta for model in admin.site._registry if model.__module__.startswith(("chatsite", "semcache"))
    ]
    assert len(ours) > 10
    with override("zh-hans"):
        for meta in ours:
            for name in (meta.verbose_name, meta.verbose_name_plural, meta.app_config.verbose_name):
                assert re.search("[\u4e00-\u9fff]", str(name)), f"{meta.label}: {name}"


def test_the_compiled_catalogue_is_made_from_the_readable_one() -> None:
    with (MESSAGES / "django.mo").open("rb") as compiled:
        translations = gettext.GNUTranslations(compiled)
    pairs = re.findall(r'^msgid "(.+)"\nmsgstr "(.+)"$', (MESSAGES / "django.po").read_text(), re.MULTILINE)
    assert pairs
    assert {text: translations.gettext(text) for text, _ in pairs} == dict(pairs)


def texts_of(path: Path) -> list[str]:
    source = path.read_text()
    if path.suffix == ".py":
        return re.findall(r'\b_\(\s*"([^"]+)"', source)
    plain = [
        double or single
        for double, single in re.findall(r"""\{% translate (?:"([^"]+)"|'([^']+)')""", source)
    ]
    blocks = re.findall(r"\{% blocktranslate[^%]*%\}(.*?)\{% endblocktranslate %\}", source, re.DOTALL)
    return plain + [re.sub(r"\{\{ (\w+) \}\}", r"%(\1)s", block) for block in blocks]
