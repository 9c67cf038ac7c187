"""A new pointwise operator touches one file: a module in the library's style is all that there is to write."""

import importlib.util
import sys

import pytest

import redispatch as rd
from redispatch.dispatch import OPERATORS
from redispatch.kernels.batching import shape_class
from redispatch.kernels.declare.declare import DECLARED, declarations
from redispatch.kernels.declare.pointwise import DECLARED as POINTWISE
from redispatch.kernels.declare.public import FUNCTIONS
from redispatch.testing import OpInfo, check_operator
from redispatch.testing.op_db.common import unary

FAMILY = '''
"""Hills."""

from redispatch import kernels

from redispatch.kernels.declare.operator import operator, unary
from redispatch.kernels.declare.pointwise import COMPLEX


FACTS = {"core": True, "late_out": ("into", "into"), "autocast": {"cpu": "fp32"}, "refuses": COMPLEX}


@unary("test_hill", "float", derivative=True, **FACTS)
def test_hill(self):
    """A smooth hill of height 1 at zero."""
    return kernels.exp(-self * self)


test_sine = unary("test_sine", kernels.sin, "float", derivative=True)
'''
OPTIONS = {"dtypes": (rd.float32, rd.float64)}


@pytest.fixture
def family(tmp_path):
    """The module, as if it stood among the others; all that it declares is taken away again."""
    before, methods = len(POINTWISE), {name for name in vars(rd.Tensor)}
    file = tmp_path / "hills.py"
    file.write_text(FAMILY)
    spec = importlib.util.spec_from_file_location("hills_of_a_test", file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name], POINTWISE[before:]
    for name in ("test_hill", "test_sine"):
        FUNCTIONS[""].pop(name)
        for form in (name, f"{name}_"):
            assert form not in methods
            delattr(rd.Tensor, form)
    for op in [op for op, declared in DECLARED.items() if "test_" in declared.base_name]:
        del DECLARED[op]


def test_function_method_and_forms_are_there(family):
    x = rd.tensor([-1.0, 0.0, 2.0])
    expected = (-x * x).exp()
    assert FUNCTIONS[""]["test_hill"] is family.test_hill
    assert rd.equal(family.test_hill(x), expected) and rd.equal(x.test_hill(), expected)
    assert rd.equal(x.clone().test_hill_(), expected)
    assert rd.equal(family.test_hill(x, out=rd.empty(3)), expected)
    assert family.test_hill(rd.tensor([1, 2])).dtype is rd.float32
    assert family.test_hill(rd.empty(2, 3, device="meta")).shape == (2, 3)


def test_facts_are_found_by_those_who_ask(family):
    op = rd.ops.aten.test_hill.default
    assert "core" in {tag.name for tag in op.tags} and shape_class(op) == "pointwise"
    assert OpInfo(op.name(), unary()).refused == {"complex32", "complex64", "complex128"}
    assert family.test_hill.op in set(declarations()) and family.test_hill.op.late_out == ("into", "into")
    assert op.place.endswith("hills.py:13")
    with rd.autocast("cpu"):
        assert family.test_hill(rd.ones(2, dtype=rd.bfloat16)).dtype is rd.float32
    with pytest.raises(NotImplementedError, match="\"test_hill_cpu\" not implemented for 'ComplexFloat'"):
        family.test_hill(rd.ones(2, dtype=rd.complex64))


def test_the_derivative_follows_from_the_function(family):
    x = rd.tensor([-1.5, 0.0, 2.0], dtype=rd.float64, requires_grad=True)
    for function in (family.test_hill, family.test_sine):
        assert rd.autograd.gradcheck(function, x) and rd.autograd.gradgradcheck(function, x)
    (slope,) = rd.autograd.grad(family.test_sine(x).sum(), x)
    assert rd.equal(slope, x.cos())
    assert "aten::test_sine_backward" in OPERATORS


def test_the_generic_checks_hold(family):
    checked = check_operator(
        OpInfo("test_hill", unary(), lambda self: rd.tensor(-self * self).exp().numpy(), **OPTIONS)
    )
    wanted = {"reference", "meta", "inplace", "out", "layouts", "gradients", "second_gradients", "forward", "vmap"}
    assert wanted <= {*checked}
