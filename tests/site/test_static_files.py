"""The pages' files are kept for ever under the version that names them, and a page names all it needs at once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx2

from chatsite.static_files import FOR_EVER, modules_of, version
from tests.livesite import LiveSite
from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
NAME = "chat/parts/dom.js"


def test_a_page_names_its_files_by_their_version(site: LiveSite) -> None:
    page = httpx2.get(f"{site.url}/signin", timeout=PATIENCE_S).text
    named = re.findall(r'href="(/static/[^"]+\.css)"', page)
    assert named and all(f"/~{version()}/" in path for path in named)


def test_only_what_carries_the_running_version_is_kept_for_ever(site: LiveSite) -> None:
    def kept(path: str) -> str:
        answer = httpx2.get(f"{site.url}{path}", timeout=PATIENCE_S)
        assert answer.status_code == 200 and answer.text == (ROOT / "static" / NAME).read_text()
        return answer.headers["cache-control"]

    assert kept(f"/static/~{version()}/{NAME}") == FOR_EVER
    # A page from before a restart: its file is there, and may be another one tomorrow.
    assert kept(f"/static/~0123456789ab/{NAME}") != FOR_EVER
    assert kept(f"/static/{NAME}") != FOR_EVER


def test_no_version_reaches_beyond_the_files(site: LiveSite) -> None:
    for path in ("../manage.py", "%2e%2e/manage.py", f"~{version()}/{NAME}", ""):
        assert httpx2.get(f"{site.url}/static/~{version()}/{path}", timeout=PATIENCE_S).status_code == 404, (
            path
        )


def test_the_version_follows_the_contents(tmp_path: Path, settings: Any) -> None:
    settings.STATICFILES_DIRS = [tmp_path]
    seen = set()
    for text in ("one", "two"):
        (tmp_path / "a.js").write_text(text)
        version.cache_clear()
        seen.add(version())
    version.cache_clear()
    assert len(seen) == 2


def test_a_page_names_every_module_that_it_imports_at_once() -> None:
    """Also those that are imported over several lines; a mutant that looks one level deep finds a fraction."""
    named = {url.partition("/chat/")[2] for url in modules_of("chat/main.js") if "/chat/" in url}
    needed = {"main.js"}
    for path in (ROOT / "static" / "chat").rglob("*.js"):
        if path.relative_to(ROOT / "static" / "chat").as_posix() in named:
            for relative in re.findall(r'from\s+"(\.[^"]+)"', path.read_text()):
                file = (path.parent / relative).resolve()
                if file.is_relative_to(ROOT / "static" / "chat"):
                    needed.add(file.relative_to(ROOT / "static" / "chat").as_posix())
    assert needed <= named and len(named) > 40
