"""LoggingMode: what its lines say, and that it neither changes what runs nor stays behind."""

from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.modes.logging_mode import LoggingMode, summary


def test_it_records_what_runs_below_autograd():
    """The detach is autograd's: it keeps relu's result for backward."""
    x = rd.ones(2, 3, requires_grad=True)
    with LoggingMode() as log:
        (x * 2).relu().sum(dim=1)
    assert_expected_inline(
        str(log),
        """\
aten.mul.Tensor(f32[2, 3], 2) -> f32[2, 3]
aten.relu.default(f32[2, 3]) -> f32[2, 3]
aten.detach.default(f32[2, 3]) -> f32[2, 3]
aten.sum.dim_IntList(f32[2, 3], [1]) -> f32[2]""",
    )


def test_it_sees_what_backward_runs():
    x = rd.ones(2, requires_grad=True)
    y = x.exp().sum()
    with LoggingMode() as log:
        y.backward()
    assert "aten.mul.Tensor(f32[2], f32[2]) -> f32[2]" in log.lines
    assert x.grad.shape == (2,)


def test_what_it_passes_on_is_the_result_itself():
    x = rd.ones(2)
    with LoggingMode():
        assert x.add_(1) is x
    assert x.tolist() == [2.0, 2.0]


def test_write_gets_each_line_as_it_is_made():
    lines = []
    with LoggingMode(lines.append) as log:
        rd.ones(2).neg()
    assert lines == log.lines and len(lines) == 2


def test_inner_modes_are_asked_first():
    with LoggingMode() as outer, LoggingMode() as inner:
        rd.ones(2)
    assert outer.lines == inner.lines and len(inner.lines) == 1


def test_summaries():
    class Mine(rd.Tensor):
        pass

    x = rd.ones(2, 3)
    assert summary(x) == "f32[2, 3]"
    assert summary(x.to(rd.bfloat16)) == "bf16[2, 3]"
    assert summary(x > 0) == "bool[2, 3]"
    assert summary(rd.empty((), dtype=rd.uint8)) == "u8[]"
    assert summary(rd.empty(0, dtype=rd.int64, device="meta")) == "i64[0] on meta"
    assert summary(x.as_subclass(Mine)) == "Mine(f32[2, 3])"
    assert summary((x, [x, None], 1.5, "mean")) == "(f32[2, 3], [f32[2, 3], None], 1.5, 'mean')"
    assert summary((x,)) == "(f32[2, 3],)"
