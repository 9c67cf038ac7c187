"""Decorators of functions that are written as operators: `out`, and operands of one dtype."""

import inspect

import pytest

import redispatch as rd
from redispatch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KIND
from redispatch._prims_common.wrappers import elementwise_type_promotion_wrapper, out_wrapper


@out_wrapper()
def plus(a, b):
    return a + b


@out_wrapper("most", "at")
def extreme(x):
    return x.max(0)


def test_a_result_goes_to_out_which_gets_its_shape():
    out = rd.empty(0)
    assert plus(rd.ones(2), 1, out=out) is out and out.tolist() == [2, 2]
    half = rd.zeros(4)
    plus(rd.ones(2), 1, out=half[::2])
    assert half.tolist() == [2, 0, 2, 0]
    parameter = inspect.signature(plus).parameters["out"]
    assert (parameter.kind, parameter.default, parameter.annotation) == (parameter.KEYWORD_ONLY, None, rd.Tensor)


def test_several_results_have_names_and_go_to_a_tuple():
    x = rd.tensor([[1.0, 4.0], [3.0, 2.0]])
    out = rd.empty(0), rd.empty(0, dtype=rd.int64)
    found = extreme(x, out=out)
    assert found.most is out[0] and found.at is out[1] and type(found) is type(extreme(x))
    assert (out[0].tolist(), out[1].tolist()) == ([3, 4], [1, 0])
    with pytest.raises(AssertionError, match="out must be tuple, got"):
        extreme(x, out=out[0])


def test_out_must_hold_the_dtype_of_the_result():
    assert plus(rd.ones(1), 1, out=rd.empty(1, dtype=rd.float64)).tolist() == [2]
    with pytest.raises(
        RuntimeError, match="Attempting to cast from torch.float32 to out tensor with dtype torch.int32"
    ):
        plus(rd.ones(1), 1, out=rd.empty(1, dtype=rd.int32))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype torch.float32 but got torch.float64"):
        out_wrapper(exact_dtype=True)(lambda x: x)(rd.ones(1), out=rd.empty(1, dtype=rd.float64))


def test_operands_have_one_dtype_and_the_result_its_own():
    @elementwise_type_promotion_wrapper(type_promoting_args=("a", "b"), type_promotion_kind=KIND.DEFAULT)
    def dtypes(a, b=None):
        seen.append(a.dtype)
        return a

    seen = []
    assert dtypes(rd.ones(1, dtype=rd.bfloat16)).dtype is rd.bfloat16
    assert dtypes(rd.ones(1, dtype=rd.int32), 1.5).dtype is rd.float32
    assert seen == [rd.float32, rd.float32]
