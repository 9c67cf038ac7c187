"""What a kernel relies on is checked before it runs, from what is declared with it (kernels/declare/relies.py)."""

import pytest

import redispatch as rd
from redispatch.kernels.declare.relies import fits, parsed
from redispatch.kernels.declare.structured import Meta

aten = rd.ops.aten


def layer_norm_backward(grad, x, mean, rstd, shape=(3,)):
    return aten.native_layer_norm_backward(grad, x, list(shape), mean, rstd, None, None, [True] * 3)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_gradient_of_an_operator_has_the_shapes_and_the_dtype_of_its_results(device):
    x, one, narrow = (rd.ones(*shape, device=device) for shape in ((2, 3), (2, 1), (2,)))
    assert layer_norm_backward(x, x, one, one)[0].shape == (2, 3)
    for args, name, wanted, got in (
        ((narrow, x, one, one), "grad_out", [2, 3], [2]),
        ((x, x, narrow, one), "mean", [2, 1], [2]),
        ((x, x, one, narrow), "rstd", [2, 1], [2]),
    ):
        with pytest.raises(RuntimeError) as refused:
            layer_norm_backward(*args)
        assert str(refused.value) == (
            f"aten::native_layer_norm_backward: expected {name} of shape {wanted}, but got {got}"
        )
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        layer_norm_backward(x.double(), x, one, one)


def test_it_is_refused_in_the_words_of_the_operator_itself_and_again_after_a_right_call():
    x, one = rd.ones(2, 3), rd.ones(2, 1)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="Expected normalized_shape to be at least 1-dimensional"):
            layer_norm_backward(x, x, one, one, shape=())
        layer_norm_backward(x, x, one, one)


def test_a_list_of_truths_of_a_fixed_length_has_that():
    x, one = rd.ones(2, 3), rd.ones(2, 1)
    for mask in ([], [True], [True] * 4):
        text = f"Tried to convert a List with {len(mask)} elements to a fixed-size array of size 3"
        with pytest.raises(RuntimeError, match=text):
            aten.native_layer_norm_backward(x, x, [3], one, one, None, None, mask)


@pytest.mark.parametrize(
    "text, shapes, right",
    [
        ("a: n c; b: c", {"a": (2, 3), "b": (3,)}, True),
        ("a: n c; b: c", {"a": (2, 3), "b": (2,)}, False),
        ("a, b: *batch _ _", {"a": (5, 2, 3), "b": (5, 3, 2)}, True),
        ("a, b: *batch _ _", {"a": (5, 2, 3), "b": (4, 2, 3)}, False),
        ("a: *batch n", {"a": ()}, False),
        ("a: 1 n", {"a": (1, 7)}, True),
        ("a: 1 n", {"a": (2, 7)}, False),
        ("a: n n", {"a": (2, 3)}, False),
        ("a: n c; b: #n c", {"a": (2, 3), "b": (6, 1)}, True),
        ("a: n c; b: #n c", {"a": (2, 3), "b": (5,)}, False),
    ],
)
def test_shapes_are_declared_by_names_of_their_dimensions(text, shapes, right):
    known = {}
    answers = [fits(shapes[name], wanted, known) for names, wanted in parsed(text) for name in names]
    assert all(answers) is right


def test_an_operator_that_relies_on_shapes_is_checked_in_all_of_its_forms():
    from redispatch.kernels.declare.operator import structured

    @structured("relying(Tensor self, Tensor other, int n) -> Tensor", namespace="lesson", inplace=True, out="out",
                relies="self: n c; other: c", face=False)  # fmt: skip
    def op(self, other, n):
        return Meta(self._shape, self._dtype, self._device)

    @op.body
    def body(out, self, other, n):
        rd.kernels.copy(out._operand, self._operand)

    relying = rd.ops.lesson
    x = rd.ones(2, 3)
    assert relying.relying(x, rd.ones(3), 2).shape == (2, 3)
    for call in (
        lambda: relying.relying(x, rd.ones(2), 2),
        lambda: relying.relying_(x, rd.ones(2), 2),
        lambda: relying.relying.out(x, rd.ones(2), 2, out=rd.empty(2, 3)),
    ):
        with pytest.raises(RuntimeError, match=r"lesson::relying: expected other of shape \[3\], but got \[2\]"):
            call()
    with pytest.raises(RuntimeError, match=r"expected self of shape \[4, c\], but got \[2, 3\]"):
        relying.relying(x, rd.ones(3), 4)
