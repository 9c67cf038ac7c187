"""Each operator computes each dtype, or says that it does not: never an error from inside, never a crash.

What comes of it has the dtype, shape and strides that the meta device says. By default one dtype of each operator is
computed, another one for each, and all that it refuses are tried; in the long run all are computed. Which ones it
refuses says frontend/testing/refusals.py, and print_refusals.py prints lines for it. Whether the values are PyTorch's
is compared by `make parity`.
"""

import pytest

from redispatch.testing.op_db import op_db
from redispatch.testing.op_info import EVERY_DTYPE

from .driver import looks, on_meta, run


def computed(info):
    return [dtype for dtype in EVERY_DTYPE if dtype.name not in info.refused and dtype.name not in info.not_sampled]


def cases():
    for place, info in enumerate(op_db):
        dtypes = computed(info)
        for dtype in dtypes:
            marks = [] if dtype is dtypes[place % len(dtypes)] else pytest.mark.long
            yield pytest.param(info, dtype, id=f"{info}-{dtype.name}", marks=marks)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("info, dtype", [*cases()])
def test_the_dtype_is_computed_and_looks_as_the_meta_device_says(info, dtype):
    sample = info.sample_inputs(dtype, thorough=False)[0]
    found = looks(run(info, sample.copy()))
    if not {"meta"} & {*info.skips, *sample.skips}:
        assert looks(run(info, on_meta(info, sample))) == found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("info", [info for info in op_db if info.refused], ids=str)
def test_other_dtypes_are_refused_with_an_error_for_users(info):
    for dtype in EVERY_DTYPE:
        if dtype.name in info.refused and dtype.name not in info.not_sampled:
            sample = info.sample_inputs(dtype, thorough=False)[0]
            with pytest.raises((RuntimeError, IndexError)):  # NotImplementedError is a RuntimeError
                run(info, sample)
