"""What every test starts from. Fixtures that give a test back the registries and the state it began with stand here,
and what is run of all the tests there are: `--all`, `--share`, `--shard`; see drawing.py.
"""

import gc
import itertools
import os
import sys
from collections import Counter

os.environ.setdefault("REDISPATCH_QUIET", "1")  # before the import: that kernels are compiled is no news to tests

import hypothesis.core
import pytest
from hypothesis import HealthCheck, settings

import redispatch
from redispatch.dispatch import DEFAULT, STATE
from redispatch.dispatch.namespaces import define_late
from redispatch.kernels.ops.generators import fork_rng

from . import drawing, swapping
from .registries import Snapshot
from .swapping import pytest_pyfunc_call  # noqa: F401  (a hook)

define_late()  # before any test, which would be made to forget what its listings define

# Asserts in what the tests of operators share speak as clearly as those in tests
pytest.register_assert_rewrite(f"{__package__}.op_db.driver", f"{__package__}.op_db.properties")

# No deadline: the first example of a property may compile a kernel. The seed draws the examples, too, so a failure seen
# once can be seen again.
settings.register_profile(
    "some", deadline=None, max_examples=25, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("everything", settings.get_profile("some"), max_examples=1000)
settings.load_profile("some")
hypothesis.core.global_force_seed = drawing.number("examples")


# Where all tests run, one in so many of those on a simulated GPU is drawn: each takes a second to compile, and nothing
# that is no CUDA depends on it. `make test-cuda` and `make test-all` run all.
CUDA_SHARE = 4

# Which tests run ------------------------------------------------------------------------------------------------------


def pytest_addoption(parser):
    group = parser.getgroup("redispatch", "what is run of all the tests there are")
    group.addoption("--all", action="store_true", help="all that could be drawn, and the tests that take minutes")
    group.addoption("--share", type=int, metavar="N", default=1, help="of all these tests one in N, which are drawn")
    group.addoption("--shard", metavar="I/N", help="of N parts of these tests the I-th, on one of N machines")
    group.addoption("--cpu", action="store_true", help="say how many CPU seconds each folder took, children included")
    swapping.add_option(parser)
    group.addoption("--property", action="append", metavar="NAME", help="of operators, check this property alone")


def pytest_configure(config):
    swapping.configure(config)
    drawing.everything = config.getoption("--all")
    if drawing.everything:
        settings.load_profile("everything")


def shard_of(text):
    """(which part, of how many) for the value of `--shard`. UsageError for any other text."""
    place, _, count = (text or "1/1").partition("/")
    if not (place.isdecimal() and count.isdecimal() and 1 <= int(place) <= int(count)):
        raise pytest.UsageError(f"--shard must be like 2/4, but is {text!r}")
    return int(place) - 1, int(count)


def pytest_report_header(config):
    if drawing.everything:
        return "redispatch: everything is run"
    return f"redispatch: REDISPATCH_SEED={drawing.SEED} draws what is run; --all runs everything"


def pytest_ignore_collect(collection_path, config):
    """Leaves out tests/parity, which needs real torch, unless it is named (`make parity`)."""
    if collection_path.name == "parity" and not any("parity" in argument for argument in config.args):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leaves out what takes minutes, unless it is asked for, and what is not drawn."""
    long_ones = drawing.everything or "long" in config.getoption("markexpr")
    share, chosen = config.getoption("--share"), config.getoption("--property")
    place, parts = shard_of(config.getoption("--shard"))
    cuda = 1 if drawing.everything or any("cuda" in argument for argument in config.args) else CUDA_SHARE

    def is_left(item):
        if chosen and getattr(item, "originalname", None) != "test_operator":
            return True
        if item.get_closest_marker("long") and not long_ones:
            return True
        if parts > 1 and drawing.number("shard", item.nodeid) % parts != place:
            return True
        drawn = share * (cuda if item.nodeid.startswith("tests/cuda/") else 1)
        return drawn > 1 and drawing.number(item.nodeid) % drawn != 0

    left = {item for item in items if is_left(item)}
    if left:
        config.hook.pytest_deselected(items=list(left))
        items[:] = [item for item in items if item not in left]


def pytest_collection_finish():
    """Takes what is there before the first test out of the collector's sight. It never goes; and `resize_`, which looks
    for those who hold a storage, went through all of it, 50 ms each time."""
    gc.collect()
    gc.freeze()


BEGUN = itertools.count(1)


def pytest_runtest_setup():
    """Takes what tests have compiled out of the collector's sight, too: it is as much as there was before the first."""
    if next(BEGUN) % 50 == 0:
        gc.collect()
        gc.freeze()


def cpu_seconds():
    """Of this process and of those that it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    item.user_properties.append(("cpu", cpu_seconds()))  # until the end is known
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "teardown":
        report.user_properties = [
            (name, cpu_seconds() - value if name == "cpu" else value) for name, value in report.user_properties
        ]
    return report


def say_cpu_seconds(terminalreporter):
    """By folder, the most first; with how many tests."""
    spent, count = Counter(), Counter()
    for report in terminalreporter.getreports(""):
        if report.when == "teardown":
            folder = "/".join(report.nodeid.partition("::")[0].split("/")[:2])
            spent[folder] += dict(report.user_properties)["cpu"]
            count[folder] += 1
    for folder, seconds in spent.most_common():
        terminalreporter.line(f"{seconds:8.1f} CPU s  {count[folder]:5} tests  {folder}")
    terminalreporter.line(
        f"{sum(spent.values()):8.1f} CPU s in all tests; what starting and collecting took is not in it"
    )


def pytest_terminal_summary(terminalreporter, config):
    """Prints how much of the operators was checked; which do not apply, `--property NAME -rs` says one by one."""
    if config.getoption("--cpu"):
        say_cpu_seconds(terminalreporter)
    reports = [report for kind in ("passed", "failed", "skipped") for report in terminalreporter.getreports(kind)]
    found = [value for one in reports for name, value in getattr(one, "user_properties", ()) if name == "op_db"]
    if found:
        held, left = (sum(len(one[key]) for one in found) for key in ("held", "left out"))
        terminalreporter.line(f"{len(found)} operators: {held} properties held, {left} could not be checked")


# What they leave behind -----------------------------------------------------------------------------------------------

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


@pytest.fixture
def seeded():
    """Random numbers that are the same each time; afterwards they go on as if none had been drawn."""
    with fork_rng():
        redispatch.manual_seed(0)
        yield


@pytest.fixture(autouse=True)
def the_state_is_given_back():
    """Fails a test that leaves a mode, a guard or a setting behind, and clears it away for the tests that follow."""
    yield
    state = STATE.get()
    if state != DEFAULT or state.swaps:
        STATE.set(DEFAULT)
        pytest.fail(f"the test left its dispatch state behind: {state!r}")
