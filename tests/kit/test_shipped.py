"""Every shipped mode and subclass passes the kit: a slice of the table each time, all of it in the long run."""

import ast
import importlib
import zlib
from pathlib import Path

import pytest

import redispatch as rd
from redispatch import modes, subclasses
from redispatch.modes.functional_tensor import FunctionalTensor
from redispatch.subclasses.jagged import from_values
from redispatch.subclasses.lazy_constant import ZERO_NOT_SUPPORTED
from redispatch.subclasses.logging_tensor import Log
from redispatch.subclasses.masked import masked
from redispatch.testing import check_mode, check_subclass
from redispatch.testing.op_db import op_db

PARTS = 50  # each is tried with one operator in so many, and each with other ones


def drawn(subject):
    return [info for info in op_db if zlib.crc32(f"{subject} {info}".encode()) % PARTS == 0]


# How each is made, and the plain tensor that one stands for --------------------------------------------------------


def jagged_rows(x):
    """Rows of one length, so that the padded tensor is the tensor itself."""
    if x.dim() < 2 or not x.shape[0]:
        return x
    rows, length = x.shape[:2]
    return from_values(x.reshape(rows * length, *x.shape[2:]), rd.arange(rows + 1) * length)


def weight(kind, *options):
    def make(x):
        fits = x.is_floating_point() and x.dim() == 2 and x.shape[1] % 2 == 0
        return kind.from_float(x, *options) if fits else x

    return make


def squares(x):
    return subclasses.DiagTensor(x.diagonal()) if x.dim() == 2 and x.shape[0] == x.shape[1] else x


class Tagged(subclasses.WrapperTensor):
    kept = ("tag",)


SUBCLASSES = {
    "BatchedTensor": (
        lambda x: subclasses.BatchedTensor(x.unsqueeze(0), 1),
        {"plain": lambda x: x.value[0], "strides": False},
    ),
    "CheckedTensor": (subclasses.CheckedTensor, {}),
    "ComplexPair": (
        lambda x: subclasses.ComplexPair.of(x) if x.is_complex() else x,
        {"plain": subclasses.ComplexPair.to_complex, "dtype": rd.complex128, "closed": False},
    ),
    "DiagTensor": (squares, {"plain": subclasses.DiagTensor.to_dense, "closed": False, "strides": False}),
    "Int4Weight": (
        weight(subclasses.Int4Weight, 2),
        {"plain": subclasses.Int4Weight.dequantize, "closed": False, "strides": False},
    ),
    "Int8Weight": (
        weight(subclasses.Int8Weight),
        {"plain": subclasses.Int8Weight.dequantize, "closed": False, "strides": False},
    ),
    "JaggedTensor": (
        jagged_rows,
        {"plain": subclasses.JaggedTensor.to_padded, "closed": False, "strides": False},
    ),
    "LazyConstant": (
        lambda x: subclasses.LazyConstant(x.reshape(-1)[0].clone(), x.shape) if x.numel() else x,
        {"plain": subclasses.LazyConstant.materialize, "closed": False, "strides": False},
    ),
    "LoggingTensor": (lambda x: subclasses.LoggingTensor(x, Log()), {}),
    "MaskedTensor": (
        lambda x: masked(x, rd.ones(x.shape, dtype=rd.bool)),
        {"plain": subclasses.MaskedTensor.to_tensor, "strides": False},
    ),
    "Quantity": (subclasses.Quantity, {"closed": False, "attributes": ["unit"]}),
    "Trainable": (
        lambda x: subclasses.Trainable(x, role="head"),
        {"closed": False, "attributes": ["role", "attributes"]},
    ),
    "TwoTensor": (lambda x: subclasses.TwoTensor(x, x.clone()), {}),
    "WrapperTensor": (subclasses.WrapperTensor, {}),
    "ZeroTensor": (
        lambda x: subclasses.ZeroTensor(x.shape, x.dtype),
        {"plain": subclasses.ZeroTensor.materialize, "closed": False, "strides": False},
    ),
}


def fakes():
    mode = modes.FakeTensorMode()
    metadata = lambda x: rd.empty_strided(x.shape, x.stride(), dtype=x.dtype)
    return mode, {"make": mode.from_tensor, "plain": metadata, "values": False}


def functionals():
    plain = lambda x: x.from_functional() if isinstance(x, FunctionalTensor) else x
    return modes.FunctionalTensorMode(), {"make": FunctionalTensor.to_functional, "plain": plain}


MODES = {
    "CrossCheckMode": lambda: (modes.CrossCheckMode(), {}),
    "DeterminismMode": lambda: (modes.DeterminismMode(), {}),
    "DeviceContext": lambda: (modes.DeviceContext("cpu"), {}),
    "DtypeCheckMode": lambda: (modes.DtypeCheckMode(action="record"), {}),
    "FakeTensorMode": fakes,
    "FlopCounterMode": lambda: (modes.FlopCounterMode(display=False), {}),
    "FunctionalRNGMode": lambda: (modes.FunctionalRNGMode(7), {}),
    "FunctionalTensorMode": functionals,
    "LoggingMode": lambda: (modes.LoggingMode(), {}),
    "MemoryTrackerMode": lambda: (modes.MemoryTrackerMode(), {}),
    "NanDetectorMode": lambda: (modes.NanDetectorMode(action="record"), {}),
    "OperatorCoverageMode": lambda: (modes.OperatorCoverageMode(), {}),
    "ProfilerMode": lambda: (modes.ProfilerMode(paths=True), {}),
    "SchemaCheckMode": lambda: (modes.SchemaCheckMode(), {}),
}


def stated(kind):
    """Reads what the file of a class says that it does not support."""
    return importlib.import_module(kind.__module__).NOT_SUPPORTED


def report_on(name, **options):
    if name in MODES:
        mode, given = MODES[name]()
        place = importlib.import_module(modes.PLACES[name], "redispatch.modes")
        return check_mode(mode, not_supported=place.NOT_SUPPORTED, **given, **options)
    kind, (make, given) = getattr(subclasses, name), SUBCLASSES[name]
    reasons = stated(kind)
    if name == "ZeroTensor":
        kind, reasons = subclasses.LazyConstant, reasons | ZERO_NOT_SUPPORTED  # the class of most results
    return check_subclass(kind, make, not_supported=reasons, **given, **options)


@pytest.mark.parametrize("name", SUBCLASSES)
def test_no_statement_excuses_whatever_is_refused(name):
    assert not [key for key in stated(getattr(subclasses, name)) if "*" in key.split()]


def test_nobody_is_forgotten():
    assert sorted(MODES) == sorted(modes.__all__) and sorted(SUBCLASSES) == sorted(subclasses.__all__)


@pytest.mark.filterwarnings("ignore:Warn from backward")  # of _test_warn_in_autograd, which does nothing else
@pytest.mark.parametrize("name", [*MODES, *SUBCLASSES])
def test_a_slice_of_the_table_passes(name):
    report = report_on(name, ops=drawn(name)).check()
    assert report.findings


@pytest.mark.long
@pytest.mark.parametrize("name", [*MODES, *SUBCLASSES])
def test_the_whole_table_passes(name):
    report = report_on(name).check()
    assert len(report.passed) > 100 or name in ("DiagTensor", "Int4Weight", "Int8Weight")


def test_a_class_made_of_the_base_class_keeps_what_it_says():
    check_subclass(Tagged, lambda x: Tagged(x, tag="a"), attributes=["tag"], ops=["add.Tensor", "mm", "view"]).check()
    whole = check_subclass(Tagged, lambda x: Tagged(x, tag="a"), attributes=["tag"], checks=["attributes"]).check()
    assert {one.op for one in whole.findings} >= {
        "(clone)",
        "(deepcopy)",
        "(Parameter)",
        "(optimizer)",
        "(save and load)",
    }


# Public names only -------------------------------------------------------------------------------------------------

# What PyTorch's users import, too, although a name of it begins with an underscore.
ALLOWED = {
    "redispatch.utils._pytree",
    "redispatch.utils._python_dispatch",
    "redispatch.utils._device",
    "redispatch._ops",
}
INSIDE = ("redispatch.dispatch", "redispatch.tensor", "redispatch.kernels", "redispatch.ops", "redispatch.autograd.")
# How a wrapper comes to look otherwise in place has no public name; nor has it one in PyTorch.
NEEDED = {("fake_tensor", f"redispatch.dispatch.{name}") for name in ("library", "symbolic", "tensor")}


@pytest.mark.parametrize(
    "path",
    sorted(p for room in (modes, subclasses) for p in Path(room.__file__).parent.glob("*.py")),
    ids=lambda p: f"{p.parent.name}/{p.stem}",
)
def test_a_file_uses_public_names_only(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and not node.level and node.module.startswith("redispatch"):
            if (path.stem, node.module) in NEEDED or path.stem == "__init__":
                continue
            assert not node.module.startswith(INSIDE), f"{path.name}: {node.module} is inside of the library"
            parts = node.module.split(".")
            assert node.module in ALLOWED or not any(part.startswith("_") for part in parts), node.module
