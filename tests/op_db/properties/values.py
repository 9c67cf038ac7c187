"""An operator gives what numpy gives, its faces give what it gives, and its arguments are left as they were."""

import numpy as np

import redispatch as rd
from redispatch.dispatch.tensor import Tensor
from redispatch.testing import SampleInput
from redispatch.testing.comparison import default_tolerances

from ..driver import as_list, close, expected, run
from .dtypes import one_more
from .table import holds


def has_reference(info):
    return info.reference is not None


def compared_dtypes(info):
    """The main dtype, and the other one that is drawn, if it is compared with numpy; all, where everything is tried."""
    return [dtype for dtype in info.dtypes if dtype in (info.main_dtype, *one_more(info))]


def as_tensor(value, like):
    """numpy's result as a tensor of the dtype that ours has."""
    if like.dtype.is_floating_point:
        value = value.astype(np.float64)
    return rd.from_numpy(np.array(value)).to(like.dtype)


def compare_with_numpy(info, sample, rtol=None, atol=None):
    wanted, found = as_list(expected(info, sample.copy())), as_list(run(info, sample))
    assert len(found) == len(wanted), f"{found} instead of {wanted}"
    for actual, value in zip(found, wanted, strict=True):
        if value is None:
            continue  # the reference says nothing about this result
        if not isinstance(actual, Tensor):
            assert actual == value, f"{actual} instead of {value}"
            continue
        tolerances = default_tolerances(actual.dtype) if rtol is None else (rtol, atol)
        close(actual, as_tensor(np.asarray(value), actual), sample, rtol=tolerances[0], atol=tolerances[1])


@holds("values", of=has_reference, dtypes=compared_dtypes)
def the_values_are_numpys(info, sample, dtype):
    compare_with_numpy(info, sample, *info.tolerance.get(dtype.name, ()))


@holds(
    "bfloat16",
    of=lambda info: has_reference(info) and rd.float32 in info.dtypes and "bfloat16" not in info.refused,
    dtypes=lambda info: [dtype for dtype in one_more(info) if dtype is rd.bfloat16],
    unless=["bfloat16"],
    most=1,
)
def bfloat16_gives_numpys_values_rounded(info, sample):
    compare_with_numpy(info, sample, *info.tolerance.get("bfloat16", (1.6e-2, 1e-2)))


@holds("face", of=lambda info: info.face or info.method, unless=["reference"])
def the_function_and_the_method_give_what_the_operator_gives(info, sample):
    """The schema decides which overload a face takes, so the same arguments must end in the same place."""
    wanted = run(info, sample.copy())
    for face in (info.face, info.method if isinstance(sample.input, Tensor) else None):
        if face is not None:
            close(run(info, sample.copy(), face), wanted, sample)


@holds("seed", of=lambda info: info.random)
def the_same_seed_gives_the_same_numbers(info, sample):
    close(run(info, sample.copy()), run(info, sample.copy()), sample, rtol=0, atol=0)


@holds("arguments")
def the_arguments_are_left_as_they_were(info, sample):
    """Values and version counters, of all arguments that the schema does not say are written to."""
    written = {i for i, argument in enumerate(info.op.schema.arguments) if argument.is_write}
    only_read = [None if i in written else x for i, x in enumerate(sample.arguments)]
    read = SampleInput(only_read[0], tuple(only_read[1:]), sample.kwargs).tensors()
    before = [x.detach().clone() for x in read]
    versions = [x._version for x in read]
    run(info, sample)
    close(read, before, sample, rtol=0, atol=0)
    assert [x._version for x in read] == versions
