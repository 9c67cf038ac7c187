"""The room: every mode has a file of its own, is found by its name, and says what it teaches and how serious it is."""

import importlib
from pathlib import Path

import pytest

import redispatch as rd
import redispatch.modes
from redispatch.utils._python_dispatch import TorchDispatchMode


def test_every_name_is_a_mode():
    modes = [getattr(rd.modes, name) for name in rd.modes.__all__]
    assert modes and all(issubclass(mode, TorchDispatchMode) for mode in modes)
    assert set(rd.modes.__all__) <= set(dir(rd.modes)) and rd.modes.__all__ == list(rd.modes._PLACES)


def test_every_file_with_a_mode_is_listed():
    files = {path.stem for path in Path(rd.modes.__file__).parent.glob("*.py")}
    helpers = {"__init__", "text_table", "findings"}
    assert files - helpers == set(rd.modes._PLACES.values())


@pytest.mark.parametrize("name", [name for name in rd.modes._PLACES if name != "FunctionalTensorMode"])
def test_a_mode_says_what_it_teaches(name):
    about = " ".join(importlib.import_module(f"redispatch.modes.{rd.modes._PLACES[name]}").__doc__.split())
    assert about.startswith(name) and "What it teaches:" in about and "How serious it is:" in about


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'redispatch.modes' has no attribute 'NoMode'"):
        _ = rd.modes.NoMode
