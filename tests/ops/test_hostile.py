"""No operator trusts its caller: wrong calls raise on purpose, and none reads or writes beside its memory.

hostile.py makes the calls. Kernels run as Python there, with fences around their arrays, which takes milliseconds a
call; some run compiled, beside pages that nobody may touch.
"""

import ctypes
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import redispatch as rd
from redispatch.testing.op_db import op_db

from .. import drawing, guarded

NAMES = list(dict.fromkeys(map(str, op_db)))
# What once crashed, hung or read beside its arguments.
ONCE = [
    "multilabel_margin_loss_backward",
    "native_layer_norm_backward",
    "native_group_norm",
    "fractional_max_pool2d",
    "reflection_pad1d_backward",
    "_adaptive_avg_pool2d",
]


def wrong_answers(names, compiled=False, **how):
    """Returns what is wrong with the answers to wrong calls of these operators, which are made in another process."""
    environment = {**os.environ, "REDISPATCH_SPECIALIZE": "0"} | ({} if compiled else {"NUMBA_DISABLE_JIT": "1"})
    told = json.dumps({"names": names, **how})
    command = [sys.executable, "-m", "tests.ops.hostile", told]
    done = subprocess.run(command, cwd=guarded.ROOT, env=environment, capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(one for one in found if isinstance(one, int)) > 20 * len(names) * (not compiled)
    return [one for one in found if not isinstance(one, int)]


def test_wrong_calls_raise_on_purpose_and_stay_inside_their_memory():
    assert not wrong_answers([*ONCE, *drawing.generator("hostile").sample(NAMES, 4)])


def test_compiled_kernels_stay_inside_their_memory():
    assert not wrong_answers([drawing.generator("compiled").choice(ONCE[:3])], compiled=True, every=17)


@pytest.mark.long
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("part", range(40))
def test_wrong_calls_of_all_forms_of_all_operators(part, compiled):
    assert not wrong_answers(NAMES[part::40], compiled, samples=2, forms=True, every=10 if compiled else 1)


# --- what finds it ----------------------------------------------------------------------------------------------------


def fates(*calls):
    """Returns what becomes of calls that are made beside guard pages, those that end well left out."""
    return dict(guarded.isolated(lambda number: calls[number](), len(calls), seconds=1))


def touched(behind):
    """A call that reads a byte so far behind the end of a tensor, or before its beginning."""

    def call():
        guarded.lie_at("end" if behind >= 0 else "start")
        x = guarded.placed(rd.arange(3.0))
        at = x.data_ptr() + (12 + behind if behind >= 0 else behind)
        return str(ctypes.c_uint8.from_address(at).value)

    return call


def endless():
    while True:
        pass


def test_a_byte_beside_a_tensor_ends_the_process_and_the_next_call_is_made_in_another():
    told = fates(
        touched(0), touched(-1), lambda: str(guarded.placed(rd.ones(2, 2).t()).tolist()), endless, lambda: "on"
    )
    assert told == {0: "SIGSEGV", 1: "SIGSEGV", 2: "[[1.0, 1.0], [1.0, 1.0]]", 3: "timeout", 4: "on"}


def test_numpys_own_memory_lies_beside_guard_pages_and_may_be_sorted_and_given_back():
    def call():
        x = np.arange(1000)[::-1] % 7
        return str(np.argsort(x, kind="stable")[:2].tolist()) + str(np.unique(np.append(x, 9)).size)

    assert fates(call) == {0: "[5, 12]8"}


def test_a_fence_refuses_other_places_and_other_dtypes():
    x = np.arange(3).view(guarded.Fenced)
    assert x[2] == 2
    for place in (-1, 3):
        with pytest.raises(guarded.OutsideError):
            x[place]
        with pytest.raises(guarded.OutsideError):
            x[place] = 0
