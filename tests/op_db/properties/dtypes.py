"""Each operator computes each dtype, or says that it does not: never an error from inside, never a crash.

`make test` draws one dtype beside the main one for a third of the operators, since kernels must be compiled for it,
and one that it refuses for each; `make test-all` takes all.
Which it refuses its declaration says, and print_refusals.py prints what is refused in fact. Whether the values are
PyTorch's is compared by `make parity`.
"""

import pytest

from redispatch.testing.op_info import EVERY_DTYPE

from ... import drawing
from ..driver import metadata, on_meta, run
from .table import holds

SHARE = 3


def computed(info):
    return [dtype for dtype in EVERY_DTYPE if dtype.name not in info.refused and dtype.name not in info.not_sampled]


def one_more(info):
    """The dtype that is drawn beside the main one of this operator, if any is; all, where everything is tried."""
    if not drawing.one_in(SHARE, "dtype of", info):
        return []
    return drawing.draw([dtype for dtype in computed(info) if dtype is not info.main_dtype], "dtype", info)


@holds("dtypes", dtypes=one_more, thorough=False, most=1)
def the_dtype_is_computed_and_looks_as_the_meta_device_says(info, sample):
    found = metadata(run(info, sample.copy()))
    if not {"meta"} & {*info.skips, *sample.skips}:
        assert metadata(run(info, on_meta(info, sample))) == found


def refused(info):
    return [dtype for dtype in EVERY_DTYPE if dtype.name in info.refused and dtype.name not in info.not_sampled]


def one_refused(info):
    return drawing.draw(refused(info), "refused", info)


@holds("refusals", of=refused, dtypes=one_refused, thorough=False, most=1)
def other_dtypes_are_refused_with_an_error_for_users(info, sample, dtype):
    with pytest.raises((RuntimeError, IndexError)):  # NotImplementedError is a RuntimeError
        run(info, sample)
