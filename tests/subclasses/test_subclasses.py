"""The room's front door: every file is listed, found by name, and says what it teaches and how serious it is."""

from importlib import import_module
from pathlib import Path

import pytest

import redispatch as rd
from redispatch import subclasses


def test_every_file_is_listed():
    files = {path.stem for path in Path(subclasses.__file__).parent.glob("*.py")} - {"__init__", "schemas"}
    assert {f".{file}" for file in files} == set(subclasses.PLACES.values())
    assert set(subclasses.PLACES) == set(subclasses.__all__)
    assert set(subclasses.__all__) <= set(dir(subclasses))
    with pytest.raises(AttributeError, match="has no attribute 'Missing'"):
        _ = subclasses.Missing


@pytest.mark.parametrize("name", subclasses.__all__)
def test_each_is_found_and_says_what_it_teaches(name):
    kind = getattr(subclasses, name)
    assert kind.__name__ == name and kind.__doc__
    lesson = " ".join(import_module(kind.__module__).__doc__.split())
    for heading in ("What it teaches:", "How serious it is:", "Read next:"):
        assert heading in lesson


@pytest.mark.parametrize("name", [name for name in subclasses.__all__ if name != "DiagTensor"])
def test_no_attribute_hides_a_method_that_formulas_may_call(name):
    kind = getattr(subclasses, name)
    fields = {field for base in kind.__mro__ for field in base.__dict__.get("__annotations__", {})}
    assert not [field for field in fields if base_has(field)]


def base_has(field):
    return hasattr(rd.Tensor, field) and not field.startswith("_")
