"""OperatorCoverageMode: what was called of a set, what was not, and the set itself."""

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.modes.coverage import OperatorCoverageMode, operators

aten = rd.ops.aten
A, B = rd.ones(2, 3), rd.ones(3, 4)


def test_calls_are_counted_by_member_of_the_set():
    with OperatorCoverageMode([aten.mm.default, aten.add, aten.exp.default]) as coverage:
        x = A @ B
        x + x
        rd.add(x, x, out=x)
        x.relu()
    assert coverage.calls == {aten.mm.default: 1, aten.add: 2}
    assert coverage.others == {aten.relu.default: 1}
    assert coverage.missing() == [aten.exp.default] and coverage.fraction == pytest.approx(2 / 3)


def test_without_a_set_everything_is_counted_and_nothing_is_missing():
    with OperatorCoverageMode() as coverage:
        A.exp().exp()
    assert coverage.calls == {aten.exp.default: 2} and coverage.missing() == [] and coverage.fraction == 1
    assert not coverage.others


def test_backward_counts_and_so_does_a_call_that_raises():
    x = rd.ones(3, requires_grad=True)
    with OperatorCoverageMode([aten.mul.Tensor, aten.mm.default]) as coverage:
        x.sin().sum().backward()
        with pytest.raises(RuntimeError):
            A.mm(A)
    assert coverage.missing() == []


def test_regions_add_up_until_they_are_cleared():
    coverage = OperatorCoverageMode([aten.exp.default])
    for _ in range(2):
        with coverage:
            A.exp().sin()
    assert coverage.calls[aten.exp.default] == coverage.others[aten.sin.default] == 2
    coverage.clear()
    assert coverage.missing() == [aten.exp.default] and coverage.fraction == 0 and not coverage.others


def test_the_set_of_all_operators_with_tags():
    core = operators("aten", rd.Tag.core)
    assert aten.mm.default in core and aten.mm.out not in core and all(rd.Tag.core in op.tags for op in core)
    assert core == sorted(core, key=str) and len(core) == len(set(core)) > 150
    assert set(operators("aten", rd.Tag.core, rd.Tag.pointwise)) < set(core) < set(operators())


def test_the_table():
    with OperatorCoverageMode([aten.mm, aten.exp, aten.sin, aten.cos]) as coverage:
        (A @ B).exp().exp()
    assert_expected_inline(
        coverage.get_table(missing=True),
        """\
operator       calls
--------------------
aten.exp           2
aten.mm            1
aten.sin           0
aten.cos           0
--------------------
2 of 4 called      3""",
    )
    assert "aten.sin" not in str(coverage)
