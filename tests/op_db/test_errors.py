"""A call that cannot work raises what it should, and leaves everything as it was."""

import pytest

from redispatch.dispatch import OPERATORS, STATE
from redispatch.testing.op_db import op_db

from .driver import close, run

CASES = [(info, i) for info in op_db if info.errors for i in range(len(info.error_inputs()))]


@pytest.mark.parametrize("info, number", CASES, ids=[f"{info}-{number}" for info, number in CASES])
def test_a_bad_call_raises_the_error_and_changes_nothing(info, number):
    case = info.error_inputs()[number]
    before = case.sample.copy().tensors()
    versions = [x._version for x in case.sample.tensors()]
    state, operators = STATE.get(), {op: len(op.registrations) for op in OPERATORS.values()}

    with pytest.raises(case.error) as raised:
        run(info, case.sample, info.inplace if case.form == "inplace" else None)
    assert case.text in str(raised.value)

    assert STATE.get() is state
    assert {op: len(op.registrations) for op in OPERATORS.values()} == operators
    assert [x._version for x in case.sample.tensors()] == versions
    close(case.sample.tensors(), before, case.sample, rtol=0, atol=0)
