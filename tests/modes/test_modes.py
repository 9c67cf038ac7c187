"""The room: every mode has a file of its own, is found by its name, and says what it teaches and how serious it is."""

import importlib
from pathlib import Path

import pytest

import redispatch as rd
import redispatch.modes
import redispatch.optim
import redispatch.subclasses
from redispatch.overrides import TorchFunctionMode
from redispatch.utils._python_dispatch import TorchDispatchMode


def test_every_name_is_a_mode():
    modes = [getattr(rd.modes, name) for name in rd.modes.__all__]
    assert modes and all(issubclass(mode, TorchDispatchMode | TorchFunctionMode) for mode in modes)
    assert set(rd.modes.__all__) <= set(dir(rd.modes)) and set(rd.modes.__all__) == set(rd.modes.PLACES)


def test_every_file_with_a_mode_is_listed():
    files = {path.stem for path in Path(rd.modes.__file__).parent.glob("*.py")}
    helpers = {"__init__", "findings", "profiler_events"}
    assert {f".{file}" for file in files - helpers} == set(rd.modes.PLACES.values())


@pytest.mark.parametrize("name", [name for name in rd.modes.PLACES if name != "FunctionalTensorMode"])
def test_a_mode_says_what_it_teaches(name):
    about = " ".join(importlib.import_module(rd.modes.PLACES[name], "redispatch.modes").__doc__.split())
    assert about.startswith(name) and "What it teaches:" in about and "How serious it is:" in about


def test_modes_that_check_and_measure_nest_around_a_training_step():
    rd.manual_seed(0)
    model = rd.nn.Sequential(rd.nn.Linear(3, 4), rd.nn.ReLU(), rd.nn.Linear(4, 1))
    optimizer = rd.optim.SGD(model.parameters(), lr=0.1)
    x = rd.rand(5, 3)
    before = model[0].weight.detach().clone()
    with rd.modes.DeterminismMode(), rd.modes.CrossCheckMode(), rd.modes.NanDetectorMode():
        with rd.modes.MemoryTrackerMode() as memory, rd.modes.ProfilerMode() as profile:
            model(x).square().mean().backward()
            optimizer.step()
    assert not rd.equal(model[0].weight, before)
    assert profile.costs[rd.ops.aten.addmm.default].calls == 2 and memory.peak > before.nbytes


def test_the_gallery_shows_every_mode_and_subclass():
    text = (Path(__file__).parents[2] / "docs" / "gallery.md").read_text()
    headings = " ".join(line for line in text.splitlines() if line.startswith("### "))
    for name in (*rd.modes.__all__, *rd.subclasses.__all__):
        assert name in headings, name
