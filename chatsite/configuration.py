"""Writes the tables of docs/configuration.md from the typed settings: `python -m chatsite.configuration`.

Knows how a setting is shown. The settings themselves are in `chatsite.env`, `inference.config` and
`chatsite.launcher.config`.
"""

from __future__ import annotations

from pathlib import Path

from chatsite.env import WebConfig
from chatsite.launcher.config import LauncherConfig
from inference.config import EngineConfig
from inference.settings import SettingInfo, describe

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
SECTIONS: dict[str, type] = {"launcher": LauncherConfig, "web": WebConfig, "engine": EngineConfig}


def table(cls: type) -> str:
    """A Markdown table with one row per setting of `cls`."""
    rows = ["| variable | type | default | allowed | meaning |", "|---|---|---|---|---|"]
    return "\n".join(rows + [_row(info) for info in describe(cls)])


def _row(info: SettingInfo) -> str:
    default = "(empty)" if info.default == "" else f"`{info.default}`"
    allowed = info.allowed.replace("|", "\\|")
    return f"| `{info.env}` | {info.kind} | {default} | {allowed} | {info.help} |"


def render(page: str) -> str:
    """`page` with each section between its markers made anew."""
    for name, cls in SECTIONS.items():
        start, end = f"<!-- {name}: start -->", f"<!-- {name}: end -->"
        head, rest = page.split(start)
        page = head + start + "\n" + table(cls) + "\n" + end + rest.split(end)[1]
    return page


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text()))
