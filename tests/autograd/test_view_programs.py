"""Random programs of views, writes and arithmetic against the same programs without views: values and gradients."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd

from .. import drawing
from ..view_programs import KINDS, WithoutViews, WithViews

NUMBERS = st.integers(0, 11)
STEPS = st.tuples(st.sampled_from(KINDS), NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.sampled_from([0.5, 0.9, -1.1, 1.3]))
PROGRAMS = st.lists(STEPS, min_size=3, max_size=14)

# What may be refused: writes to views whose history could not be right, reading them after others were written, and
# writes to memory in which elements coincide.
EXPECTED_ERRORS = (
    "the output of a function that returns multiple views",
    "created in no_grad mode",
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location",
)


def check(steps):
    found = WithViews(rd).run(steps)
    for error in (*found.errors, *found.unreadable.values()):
        assert error in ("", "impossible") or any(part in error for part in EXPECTED_ERRORS)
    expected = WithoutViews(rd).run(steps, found)
    assert len(found.results) == len(expected.results)
    for got, wanted in zip(found.results, expected.results, strict=True):
        assert np.allclose(got, wanted, rtol=1e-7, atol=1e-9)


@drawing.at_length(6000)
@given(PROGRAMS)
def test_views_and_writes_have_the_gradients_of_their_functional_rerun(steps):
    check(steps)
