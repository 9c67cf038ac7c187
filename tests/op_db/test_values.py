"""Each operator gives what numpy gives, in each of its dtypes, and its faces give what the operator gives."""

import numpy as np
import pytest

import redispatch as rd
from redispatch.dispatch.tensor import Tensor
from redispatch.testing import SampleInput
from redispatch.testing.comparison import default_tolerances
from redispatch.testing.op_db import op_db

from .driver import as_list, close, each, every_dtype, expected, run, skip_where_it_does_not_hold, thinned

WITH_REFERENCE = [info for info in op_db if info.reference is not None]
WITH_FACE = [info for info in op_db if info.face or info.method]


def as_tensor(value, like):
    """numpy's result as a tensor of the dtype that ours has."""
    if like.dtype.is_floating_point:
        value = value.astype(np.float64)
    return rd.from_numpy(np.array(value)).to(like.dtype)


def compare_with_numpy(info, sample, rtol=None, atol=None):
    wanted, found = as_list(expected(info, sample.copy())), as_list(run(info, sample))
    assert len(found) == len(wanted), f"{sample}: {found} instead of {wanted}"
    for actual, value in zip(found, wanted, strict=True):
        if value is None:
            continue  # the reference says nothing about this result
        if not isinstance(actual, Tensor):
            assert actual == value, f"{sample}: {actual} instead of {value}"
            continue
        tolerances = default_tolerances(actual.dtype) if rtol is None else (rtol, atol)
        close(actual, as_tensor(np.asarray(value), actual), sample, rtol=tolerances[0], atol=tolerances[1])


def is_left_to_the_long_run(info, dtype):
    """Whole numbers and bool of pointwise operators that take every dtype, and so treat these like any other."""
    alike = not info.is_cheap and "pointwise" in info.op.tags and rd.bool in info.dtypes and rd.float32 in info.dtypes
    return alike and dtype in (rd.int64, rd.bool)


@each(WITH_REFERENCE, every_dtype, long=is_left_to_the_long_run)
def test_the_values_are_numpys(info, dtype):
    for sample in info.sample_inputs(dtype):
        compare_with_numpy(info, sample, *info.tolerance.get(dtype.name, ()))


@pytest.mark.parametrize(
    "info",
    thinned(
        [info for info in WITH_REFERENCE if rd.float32 in info.dtypes and "bfloat16" not in info.refused],
    ),
)
def test_bfloat16_gives_numpys_values_rounded(info):
    skip_where_it_does_not_hold(info, "bfloat16")
    sample = info.sample_inputs(rd.bfloat16)[0]
    compare_with_numpy(info, sample, *info.tolerance.get("bfloat16", (1.6e-2, 1e-2)))


@each(WITH_FACE)
def test_the_function_and_the_method_give_what_the_operator_gives(info, dtype):
    """The schema decides which overload a face takes, so the same arguments must end in the same place."""
    for sample in info.sample_inputs(dtype):
        wanted = run(info, sample.copy())
        for face in (info.face, info.method if isinstance(sample.input, Tensor) else None):
            if face is not None and "reference" not in info.skips:
                close(run(info, sample.copy(), face), wanted, sample)


@each([info for info in op_db if info.random])
def test_the_same_seed_gives_the_same_numbers(info, dtype):
    for sample in info.sample_inputs(dtype):
        close(run(info, sample.copy()), run(info, sample.copy()), sample, rtol=0, atol=0)


@each(op_db)
def test_the_arguments_are_left_as_they_were(info, dtype):
    """Values and version counters, of all arguments that the schema does not say are written to."""
    written = {i for i, argument in enumerate(info.op.schema.arguments) if argument.is_write}
    for sample in info.sample_inputs(dtype):
        only_read = [None if i in written else x for i, x in enumerate(sample.arguments)]
        read = SampleInput(only_read[0], tuple(only_read[1:]), sample.kwargs).tensors()
        before = [x.detach().clone() for x in read]
        versions = [x._version for x in read]
        run(info, sample)
        close(read, before, sample, rtol=0, atol=0)
        assert [x._version for x in read] == versions, sample
