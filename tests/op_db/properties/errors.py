"""A call that cannot work raises what it should, and leaves everything as it was."""

import pytest

from redispatch.dispatch import OPERATORS, STATE

from ..driver import close, run
from .table import holds


@holds("errors", of=lambda info: info.errors, make=lambda info, dtype: info.error_inputs(), always=True)
def a_bad_call_raises_the_error_and_changes_nothing(info, sample):
    case = sample
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
