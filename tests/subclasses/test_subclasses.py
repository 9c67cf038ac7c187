"""The room's front door: every file is listed, found by name, and says what it teaches and how serious it is."""

from importlib import import_module
from pathlib import Path

import pytest

from redispatch import subclasses


def test_every_file_is_listed():
    files = {path.stem for path in Path(subclasses.__file__).parent.glob("*.py")} - {"__init__"}
    assert files == set(subclasses._PLACES.values())
    assert list(subclasses._PLACES) == subclasses.__all__ == sorted(subclasses.__all__)
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
