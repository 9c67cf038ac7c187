"""What every test starts from. Fixtures that give a test back the registries and the state it began with stand here.

Run through `make test`, or `pytest` from the root: pyproject.toml says why `--confcutdir` is needed.
"""

import os
import sys
import zlib

os.environ.setdefault("REDISPATCH_QUIET", "1")  # before the import: that kernels are compiled is no news to tests

import pytest
from hypothesis import HealthCheck, settings

from redispatch.dispatch import DEFAULT, STATE
from redispatch.kernels.ops import late_out_forms  # noqa: F401  # before any test, which would be made to forget them

from .registries import Snapshot

# No deadline: the first example of a property may compile a kernel. Derandomised: a failure seen once is seen again;
# `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile("steady")

TESTS = os.path.dirname(os.path.abspath(__file__)) + os.sep

# What these check does not depend on how calls are dispatched, or they choose that themselves, boxed and specialised:
# `make test` runs them in one of its two passes, the specialised one.
ONCE = {
    "array_api",
    "cuda",
    "demo",
    "kernels",
    "kit",
    "nn",
    "op_db/test_dtypes.py",
    "optim",
    "programs",
    "safety",
    "serialization",
    "specialiser",
    "test_bench.py",
    "test_cache_command.py",
    "test_docs.py",
    "test_doctests.py",
    "test_packaging.py",
    "test_pytree.py",
    "test_reference.py",
    "test_stubs.py",
    "utils",
    "viz",
}


# Of the generic tests each takes every operator in the specialised pass, and an eighth of them in the boxed one: which,
# differs from test to test. That both do the same is what tests/specialiser compares, for all operators. Those that try
# what follows from an operator's schema and derivative, more than from its kernel, take every second one and leave the
# others to the long run. See docs/decisions/0008-what-runs-boxed.md.
BOXED_SHARE = 8  # a multiple of SHARE: what runs boxed is a part of what runs at all
SHARE = 2
SHARED = {"op_db/test_forms.py", "op_db/test_forward.py", "op_db/test_layers.py"}


@pytest.hookimpl(tryfirst=True)  # before the items are chosen by their marks
def pytest_collection_modifyitems(items):
    for item in items:
        where = os.path.relpath(item.path, TESTS).replace(os.sep, "/")
        if where in ONCE or where.split("/")[0] in ONCE or is_left_out(item, BOXED_SHARE):
            item.add_marker(pytest.mark.once)
        if where in SHARED and is_left_out(item, SHARE):
            item.add_marker(pytest.mark.long)


def is_left_out(item, share):
    """Whether a generic test is none of the share of its operators, one in so many."""
    info = item.callspec.params.get("info") if hasattr(item, "callspec") else None
    return info is not None and zlib.crc32(f"{item.originalname} {info}".encode()) % share != 0


snapshot = None  # the last one taken; good for the next test, too, where nothing has changed


@pytest.fixture(autouse=True)
def registries_are_given_back():
    """Undoes what the test has registered.

    It undoes nothing if the test was the first to import a module of the library that defines operators: these must
    stay.
    """
    global snapshot
    if snapshot is None or not snapshot.holds():
        snapshot = Snapshot()
    modules = len(sys.modules)
    yield
    if not snapshot.holds():
        imported = any(name.startswith("redispatch.") for name in list(sys.modules)[modules:])
        if not (imported and snapshot.library_has_defined_more()):
            snapshot.restore()
        snapshot = None


@pytest.fixture(autouse=True)
def the_state_is_given_back():
    """Fails a test that leaves a mode, a guard or a setting behind, and clears it away for the tests that follow."""
    yield
    state = STATE.get()
    if state != DEFAULT:
        STATE.set(DEFAULT)
        pytest.fail(f"the test left its dispatch state behind: {state!r}")
