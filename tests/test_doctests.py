"""Every example in a docstring of the library runs.

Not by pytest's `--doctest-modules`, which would import the root under another name (docs/decisions/0001).
"""

import doctest
import importlib
import pkgutil

import pytest

import redispatch

MODULES = ["redispatch", *(module.name for module in pkgutil.walk_packages(redispatch.__path__, "redispatch."))]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.failed == 0
