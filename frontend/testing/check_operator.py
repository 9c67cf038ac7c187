"""`check_operator(info)`: the generic tests for one operator, wherever it is declared and without a test framework.

    check_operator(OpInfo("lesson::bump", unary(), lambda self: 1 / (1 + self * self)))

The library's own operators are tested by tests/op_db/, which ask the same in more ways; this is for whoever declares an
operator outside of it, or while a program runs. What an operator cannot do, its OpInfo says under `skips`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from redispatch.autograd import gradcheck, gradgradcheck
from redispatch.dispatch.tensor import Tensor, can_cast
from redispatch.dispatch.transforms.vmap import vmap
from redispatch.func import jvp, vjp
from redispatch.kernels.ops.from_data import tensor
from redispatch.kernels.ops.shape import stack

from .comparison import assert_close
from .op_info import OpInfo, SampleInput, each, metadata


def check_operator(info: OpInfo) -> list[str]:
    """The names of the properties that were checked and hold: "reference", "meta", "gradients" and so on.

    Errors: AssertionError that names the property, the dtype and the call for which it does not hold.
    """
    checked = []
    for name, check in CHECKS.items():
        found = 0
        for dtype in info.dtypes if name == "reference" else [info.main_dtype]:
            for sample in () if name in info.skips else info.sample_inputs(dtype, requires_grad=name in WITH_GRADIENT):
                if name not in sample.skips:
                    found += checked_once(name, check, info, sample)
        if found:
            checked.append(name)
    return checked


def checked_once(name: str, check: Callable[[OpInfo, SampleInput], bool], info: OpInfo, sample: SampleInput) -> bool:
    """Whether there was something to check."""
    try:
        return check(info, sample)
    except Exception as problem:
        raise AssertionError(f"{info}: {name} does not hold for {sample}: {problem}") from problem


# --- the properties: whether there was something to check; AssertionError where it does not hold ----------------------


def values_are_the_references(info: OpInfo, sample: SampleInput) -> bool:
    if info.reference is None:
        return False
    wanted, found = info.expected(sample), info.run(sample.copy())
    for mine, other in zip(each(found), each(wanted), strict=True):
        rtol, atol = info.tolerance.get(mine.dtype.name, (None, None))
        expected = tensor(np.asarray(other)).to(mine.dtype)
        assert_close(mine, expected, rtol=rtol, atol=atol, equal_nan=True)
    return True


def meta_gives_the_same_metadata(info: OpInfo, sample: SampleInput) -> bool:
    found, wanted = info.run(sample.map(lambda x: x.to("meta"))), info.run(sample.copy())
    assert metadata(found) == metadata(wanted), f"on the meta device {metadata(found)}, else {metadata(wanted)}"
    return bool(sample.tensors())


def in_place_writes_the_same(info: OpInfo, sample: SampleInput) -> bool:
    if info.inplace is None:
        return False
    wanted, target = info.run(sample.copy()), sample.copy()
    if wanted.shape != target.input.shape or not can_cast(wanted.dtype, target.input.dtype):
        return False
    assert info.run(target, info.inplace) is target.input, "another tensor than the first argument is returned"
    assert_close(target.input, wanted.to(target.input.dtype), equal_nan=True)
    return True


def out_receives_the_same(info: OpInfo, sample: SampleInput) -> bool:
    if info.out is None:
        return False
    wanted = each(info.run(sample.copy()))
    targets = [x.new_empty(0) for x in wanted]
    info.run(info.writing_to(targets, sample), info.out)
    assert_close(targets, wanted, equal_nan=True)
    return True


def layout_does_not_matter(info: OpInfo, sample: SampleInput) -> bool:
    """Each tensor with its last dimension outermost in memory, and twice as far apart."""
    lying = sample.map(lambda x: spread_out(x.detach()))
    assert_close(info.run(lying), info.run(sample.copy()), equal_nan=True, check_stride=False)
    return any(x.dim() for x in sample.tensors())


def gradients_are_those_of_finite_differences(info: OpInfo, sample: SampleInput) -> bool:
    function, tensors = as_function(info, sample)
    return has_gradient(info, function, tensors) and gradcheck(function, tensors)


def second_gradients_are_too(info: OpInfo, sample: SampleInput) -> bool:
    function, tensors = as_function(info, sample)
    return has_gradient(info, function, tensors) and gradgradcheck(function, tensors)


def tangents_are_those_that_backward_implies(info: OpInfo, sample: SampleInput) -> bool:
    """<u, J t> is <J^T u, t>: J t by forward mode, J^T u by backward."""
    function, tensors = as_function(info, sample)
    if not has_gradient(info, function, tensors):
        return False
    inputs = tuple(x.detach() for x in tensors)
    directions = tuple(x.cos() for x in inputs)
    results, tangents = jvp(function, inputs, directions)
    weights = tuple(x.sin() for x in results)
    _, pull = vjp(function, *inputs)
    assert_close(inner(weights, tangents), inner(pull(weights), directions), rtol=1e-6, atol=1e-8)
    return True


def a_batch_gives_what_its_examples_give(info: OpInfo, sample: SampleInput) -> bool:
    """Two examples: the sample, and the same call on its tensors upside down."""
    if info.random or info.mutates or not sample.tensors():
        return False
    other = sample.map(lambda x: x.flip(0) if x.dim() else x.clone())
    filled, tensors = sample.parted()
    batches = [stack([x, y]) for x, y in zip(tensors, other.tensors(), strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is called once for each example
        found = each(vmap(lambda *xs: info.run(filled(*xs)))(*batches))
    for number, example in enumerate((sample, other)):
        assert_close([x[number] for x in found], each(info.run(example)), equal_nan=True, check_stride=False)
    return True


CHECKS: dict[str, Callable[[OpInfo, SampleInput], bool]] = {
    "reference": values_are_the_references,
    "meta": meta_gives_the_same_metadata,
    "inplace": in_place_writes_the_same,
    "out": out_receives_the_same,
    "layouts": layout_does_not_matter,
    "gradients": gradients_are_those_of_finite_differences,
    "second_gradients": second_gradients_are_too,
    "forward": tangents_are_those_that_backward_implies,
    "vmap": a_batch_gives_what_its_examples_give,
}
WITH_GRADIENT = ("gradients", "second_gradients", "forward")


# --- helpers ----------------------------------------------------------------------------------------------------------


def inner(xs: Any, ys: Any) -> float:
    """The real inner product of two lists of tensors."""
    return sum(float((x.detach().conj() * y.detach()).real.sum()) for x, y in zip(xs, ys, strict=True))


def spread_out(x: Tensor) -> Tensor:
    if not x.dim():
        return x
    room = x.new_zeros((*x.shape[::-1], 2))
    return room.select(-1, 0).permute(*reversed(range(x.dim()))).copy_(x)


def has_gradient(info: OpInfo, function: Callable[..., Any], tensors: tuple[Tensor, ...]) -> bool:
    return info.gradients and any(x.numel() for x in tensors) and bool(function(*tensors))


def as_function(info: OpInfo, sample: SampleInput) -> tuple[Callable[..., tuple[Tensor, ...]], tuple[Tensor, ...]]:
    """(a function of the sample's tensors that require grad, these tensors)

    The function gives those of the results that have a gradient.
    """
    filled, tensors = sample.parted(lambda x: x.requires_grad)
    differentiable: list[int] = []

    def function(*given: Tensor) -> tuple[Tensor, ...]:
        call = filled(*given)
        if info.mutates and isinstance(call.input, Tensor):
            call = replace(call, input=call.input.clone())
        call = info.constrained(call) if info.constrained else call
        results = info.run(call)
        results = [x for x in each(info.definite(results) if info.definite else results) if isinstance(x, Tensor)]
        if not differentiable:  # known from the first call, which is made on the sample's own tensors
            differentiable.extend(i for i, x in enumerate(results) if x.requires_grad)
        return tuple(results[i] for i in differentiable)

    return function, tuple(tensors)
