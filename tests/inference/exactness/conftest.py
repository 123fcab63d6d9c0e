"""The tiny models of the core's tests, for rules that are checked on each family, and the front's side of one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inference.front.model import ServedModel
from inference.front.model_folder import read_model_folder
from inference.models.loader import LoadedModel
from tests.inference.core.conftest import _one_thread, load_tiny, make_driver, real_model_folder

__all__ = ["_one_thread", "load_tiny", "make_driver", "real_model_folder"]


@pytest.fixture(scope="session")
def served(load_tiny: Callable[[str], LoadedModel]) -> ServedModel:
    return read_model_folder(load_tiny("llama").folder, None)
