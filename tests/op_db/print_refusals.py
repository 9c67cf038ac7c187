"""Prints which dtypes operators refuse, as their declarations name them: `python print_refusals.py unique einsum`."""

import sys

from redispatch.testing.op_db import op_db
from redispatch.testing.op_info import EVERY_DTYPE


def refuses(info, dtype):
    try:
        sample = info.sample_inputs(dtype, thorough=False)[0]
        info.op(*sample.arguments, **sample.kwargs)
    except (RuntimeError, IndexError):
        return True
    return False


for info in op_db:
    if any(word in str(info) for word in sys.argv[1:]):
        print(str(info), " ".join(dtype.name for dtype in EVERY_DTYPE if refuses(info, dtype)) or "none")
