"""functionalize: values, layout and aliasing are those of the program, and no operator below writes anything."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch.func import functionalize
from redispatch.utils._python_dispatch import TorchDispatchMode

from .. import drawing
from ..view_programs import START, WRITTEN_KINDS, Program, layout

NUMBERS = st.integers(0, 11)
FACTORS = st.sampled_from([0.5, 0.9, -1.1, 1.3])
STEPS = st.tuples(st.sampled_from(WRITTEN_KINDS), NUMBERS, NUMBERS, NUMBERS, NUMBERS, FACTORS)
PROGRAMS = st.lists(STEPS, min_size=3, max_size=14)


class Watch(TorchDispatchMode):
    """Notes the operators that are called, and refuses those that write while a program runs."""

    def __init__(self):
        self.running = False
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert not (self.running and func._schema.is_mutable), f"{func} writes"
        self.seen.append(func)
        return func(*args, **(kwargs or {}))

    def around(self, function):
        def run(*args):
            self.running = True
            try:
                return function(*args)
            finally:
                self.running = False

        return run


def inputs():
    return rd.tensor(START, dtype=rd.float64), rd.tensor(START[::-1][:6], dtype=rd.float64)


def check(steps, remove="mutations"):
    eager, functional, watch = Program(rd, steps), Program(rd, steps), Watch()
    x, y = inputs()
    wanted = eager(x, y)
    p, q = inputs()
    with watch:
        found = functionalize(watch.around(functional), remove=remove)(p, q)
    assert functional.errors == eager.errors
    for a, b in zip([p, q, *found], [x, y, *wanted], strict=True):
        assert np.allclose(a.tolist(), b.tolist(), rtol=1e-12, atol=0)
    if remove == "mutations":
        assert layout([p, q, *found]) == layout([x, y, *wanted])
    else:
        assert not any(func._schema.is_view for func in watch.seen)


@drawing.at_length(5000)
@given(PROGRAMS)
def test_a_functionalized_program_has_the_values_layout_and_aliasing_of_the_program(steps):
    check(steps)


@given(PROGRAMS)
def test_views_may_be_removed_as_well(steps):
    check(steps, "mutations_and_views")


def test_what_a_compiler_asks_of_wrappers():
    values = rd.zeros(2), rd.ones(2)
    x = rd._to_functional_tensor(values[0])
    with rd._C._ForceDispatchKeyGuard(rd._C._dispatch_tls_local_include_set(), rd._C._dispatch_tls_local_exclude_set()):
        rd._enable_functionalization(reapply_views=True)
        first = x[0]
        assert rd._is_functional_tensor_base(x) and not rd._is_functional_tensor_base(first)
        rd._functionalize_replace(x, values[1])
        assert not rd._functionalize_has_data_mutation(x)
        rd._functionalize_commit_update(x)
        assert rd._functionalize_has_data_mutation(first) and rd._functionalize_mutation_counter(x) == 1
        rd._functionalize_sync(first)
        assert not rd._functionalize_has_metadata_mutation(x)
        x.unsqueeze_(0)
        assert rd._functionalize_has_metadata_mutation(x)
    assert rd._from_functional_tensor(first).item() == 1 and values[0].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="expected a functional tensor, got Tensor"):
        rd._functionalize_mutation_counter(values[0])
