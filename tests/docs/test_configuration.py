"""docs/configuration.md says what the code reads."""

from chatsite.configuration import PAGE, SECTIONS, render
from inference.settings import describe


def test_the_page_shows_every_setting_as_the_code_has_it():
    page = PAGE.read_text()
    assert render(page) == page, "run: python -m chatsite.configuration"


def test_a_variable_read_by_two_processes_is_of_one_type():
    kinds: dict[str, set[str]] = {}
    for cls in SECTIONS.values():
        for info in describe(cls):
            kinds.setdefault(info.env, set()).add(info.kind)
    assert {env: kind for env, kind in kinds.items() if len(kind) > 1} == {}
