"""Settings are typed, ranged, and fail loudly."""

import argparse
from dataclasses import dataclass

import pytest

from inference.settings import SettingError, add_flags, read, setting


@dataclass(frozen=True, slots=True)
class Sample:
    size: int = setting("SAMPLE_SIZE", 4, "How many.", between=(1, 10))
    mode: str = setting("SAMPLE_MODE", "a", "Which.", choices=("a", "b"))
    is_on: bool = setting("SAMPLE_ON", False, "Whether.")
    share: float = setting("SAMPLE_SHARE", 0.5, "Which part.", between=(0, 1))
    secret: str = setting("SAMPLE_SECRET", "", "Hidden.", is_secret=True)


def test_defaults_hold_when_nothing_is_set():
    assert read(Sample, {}) == Sample(4, "a", False, 0.5, "")


def test_an_empty_variable_counts_as_not_set():
    assert read(Sample, {"SAMPLE_SIZE": ""}).size == 4


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"SAMPLE_SIZE": "ten"}, "SAMPLE_SIZE='ten' is not a valid int"),
        ({"SAMPLE_SIZE": "11"}, "expected 1 … 10"),
        ({"SAMPLE_MODE": "c"}, "expected a | b"),
        ({"SAMPLE_ON": "perhaps"}, "SAMPLE_ON"),
        ({"SAMPLE_SHARE": "nan"}, "expected 0 … 1"),
    ],
)
def test_a_wrong_value_names_the_variable_and_what_is_allowed(environ, says):
    with pytest.raises(SettingError, match=says.replace("|", r"\|")):
        read(Sample, environ)


def test_flags_win_over_the_environment():
    parser = argparse.ArgumentParser()
    add_flags(parser, Sample)
    args = parser.parse_args(["--size", "7", "--is-on", "yes"])
    sample = read(Sample, {"SAMPLE_SIZE": "3"}, **vars(args))
    assert (sample.size, sample.is_on) == (7, True)


def test_an_override_is_checked_like_the_environment():
    with pytest.raises(SettingError, match="expected 1 … 10"):
        read(Sample, {}, size=99)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ({"size": "7"}, "SAMPLE_SIZE='7' is not a valid int"),
        ({"size": 1.5}, "SAMPLE_SIZE=1.5 is not a valid int"),
        ({"size": True}, "SAMPLE_SIZE=True is not a valid int"),
        ({"mode": 5}, "SAMPLE_MODE=5 is not a valid str"),
        ({"is_on": "no"}, "SAMPLE_ON='no' is not a valid bool"),
        ({"secret": 1234}, r"SAMPLE_SECRET=\(hidden\) is not a valid str"),
        ({"share": "1"}, "SAMPLE_SHARE='1' is not a valid float"),
    ],
)
def test_an_override_of_another_type_is_refused(override, says):
    with pytest.raises(SettingError, match=says):
        read(Sample, {}, **override)


def test_a_whole_number_is_a_float_too():
    assert read(Sample, {}, share=1).share == 1
