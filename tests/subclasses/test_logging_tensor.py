"""LoggingTensor: what is written, that it spreads, and that backward is written too."""

from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.subclasses.logging_tensor import Log, LoggingTensor


def logged(x):
    log = Log()
    return LoggingTensor(x, log), log


def test_it_follows_what_comes_of_it_forward_and_backward():
    x, log = logged(rd.ones(2, 3, requires_grad=True))
    (x * rd.ones(3)).sum(dim=1).sum().backward()
    text = str(log).splitlines()
    assert_expected_inline(
        "\n".join(text[:3]),
        """\
$1: f32[2, 3] = aten.mul.Tensor($0, f32[3])
$2: f32[2] = aten.sum.dim_IntList($1, [1])
$3: f32[] = aten.sum.default($2)""",
    )
    assert any("aten.expand.default" in line for line in text[3:])
    assert type(x.grad) is LoggingTensor
    assert x.grad.elem.tolist() == [[1.0] * 3] * 2


def test_what_it_never_meets_is_not_written():
    x, log = logged(rd.ones(2))
    rd.ones(2) + 1
    assert log.lines == []
    rd.ones(2) + x
    assert log.lines == ["$1: f32[2] = aten.add.Tensor(f32[2], $0)"]


def test_in_place_gives_back_the_argument_under_its_label():
    x, log = logged(rd.ones(2))
    assert x.mul_(3) is x
    assert log.lines == ["$0: f32[2] = aten.mul_.Tensor($0, 3)"]
    assert x.elem.tolist() == [3.0, 3.0]


def test_a_plain_tensor_written_in_place_stays_plain():
    x, log = logged(rd.ones(2))
    y = rd.zeros(2)
    assert y.add_(x) is y
    assert log.lines == ["f32[2] = aten.add_.Tensor(f32[2], $0)"]


def test_views_are_views_of_the_wrapper():
    x, log = logged(rd.ones(2, 3))
    view = x.t()
    assert view._base is x and log.lines == ["$1: f32[3, 2] = aten.t.default($0)"]


def test_lists_and_several_results():
    x, log = logged(rd.ones(2))
    rd.cat([x, rd.ones(1)]).split(2)
    assert log.lines == [
        "$1: f32[3] = aten.cat.default([$0, f32[1]])",
        "$2: f32[2], $3: f32[1] = aten.split.Tensor($1, 2)",
    ]


def test_it_shows_its_label():
    x, _ = logged(rd.ones(1))
    assert repr(x) == "LoggingTensor($0, tensor([1.]))"


def test_its_log_does_not_hide_the_method_that_formulas_call():
    x = LoggingTensor(rd.tensor([1.0, 2.0]), Log()).requires_grad_()
    assert x.log().elem.tolist() == rd.tensor([1.0, 2.0]).log().tolist()
    rd.logcumsumexp(x, 0).sum().backward()
    assert type(x.grad) is LoggingTensor


def test_a_new_result_of_an_operator_that_also_writes_is_followed():
    x, log = logged(rd.ones(2))
    noise = LoggingTensor(rd.zeros(2), log)
    result = rd.ops.aten.rrelu_with_noise.default(x, noise, 0.1, 0.3, True)
    assert type(result) is LoggingTensor and result.label == "$2"
    assert x.add_(1) is x and str(log).splitlines()[-1].startswith("$0")


def test_an_operator_that_writes_a_list_and_returns_nothing():
    x, log = logged(rd.ones(2))
    parts = [LoggingTensor(rd.zeros(1), log), LoggingTensor(rd.zeros(1), log)]
    assert rd.ops.aten.split_copy.Tensor_out(x, 1, out=parts) is None
    assert [part.elem.item() for part in parts] == [1.0, 1.0]
