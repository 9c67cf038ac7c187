"""`check_operator(info)`: the generic tests for one operator, wherever it is declared and without a test framework.

    check_operator(OpInfo("lesson::bump", unary(), lambda self: 1 / (1 + self * self)))

The library's own operators are tested by tests/op_db/, which ask the same in more ways; this is for whoever declares an
operator outside of it, or while a program runs. What an operator cannot do, its OpInfo says under `skips`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.autograd import gradcheck, gradgradcheck
from redispatch.dispatch.tensor import Tensor, can_cast, dtypes
from redispatch.dispatch.transforms.vmap import vmap
from redispatch.func import jvp, vjp
from redispatch.kernels.ops.from_data import tensor
from redispatch.kernels.ops.random import manual_seed
from redispatch.kernels.ops.shape import stack
from redispatch.utils import _pytree as pytree

from .comparison import assert_close
from .op_info import OpInfo, SampleInput


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


def run(info: OpInfo, sample: SampleInput, op: Any = None) -> Any:
    """The operator's result, or that of another form; one that draws numbers draws the same every time."""
    if info.random:
        manual_seed(0)
    return (op or info.op)(*sample.arguments, **sample.kwargs)


# --- the properties: whether there was something to check; AssertionError where it does not hold ----------------------


def values_are_the_references(info: OpInfo, sample: SampleInput) -> bool:
    if info.reference is None:
        return False
    args, kwargs = pytree.tree_map_only(Tensor, Tensor.numpy, (sample.arguments, dict(sample.kwargs)))
    with np.errstate(all="ignore"):
        wanted = info.reference(*args, **kwargs)
    found = run(info, sample.copy())
    for mine, other in zip(each(found), each(wanted), strict=True):
        rtol, atol = info.tolerance.get(mine.dtype.name, (None, None))
        expected = tensor(np.asarray(other)).to(mine.dtype)
        assert_close(mine, expected, rtol=rtol, atol=atol, equal_nan=True)
    return True


def meta_gives_the_same_metadata(info: OpInfo, sample: SampleInput) -> bool:
    found, wanted = run(info, sample.map(lambda x: x.to("meta"))), run(info, sample.copy())
    assert metadata(found) == metadata(wanted), f"on the meta device {metadata(found)}, else {metadata(wanted)}"
    return bool(sample.tensors())


def in_place_writes_the_same(info: OpInfo, sample: SampleInput) -> bool:
    if info.inplace is None:
        return False
    wanted, target = run(info, sample.copy()), sample.copy()
    if wanted.shape != target.input.shape or not can_cast(wanted.dtype, target.input.dtype):
        return False
    assert run(info, target, info.inplace) is target.input, "another tensor than the first argument is returned"
    assert_close(target.input, wanted.to(target.input.dtype), equal_nan=True)
    return True


def out_receives_the_same(info: OpInfo, sample: SampleInput) -> bool:
    if info.out is None:
        return False
    wanted = each(run(info, sample.copy()))
    names = [argument.name for argument in info.out.schema.arguments if argument.is_out]
    targets = [x.new_empty(0) for x in wanted]
    kwargs = {**sample.kwargs, **dict(zip(names, targets, strict=True))}
    run(info, SampleInput(sample.input, sample.args, kwargs), info.out)
    assert_close(targets, wanted, equal_nan=True)
    return True


def layout_does_not_matter(info: OpInfo, sample: SampleInput) -> bool:
    """Each tensor with its last dimension outermost in memory, and twice as far apart."""
    lying = sample.map(lambda x: spread_out(x.detach()))
    assert_close(run(info, lying), run(info, sample.copy()), equal_nan=True, check_stride=False)
    return any(x.dim() for x in sample.tensors())


def gradients_are_those_of_finite_differences(info: OpInfo, sample: SampleInput) -> bool:
    function, tensors = as_function(info, sample)
    return bool(tensors) and gradcheck(function, tensors)


def second_gradients_are_too(info: OpInfo, sample: SampleInput) -> bool:
    function, tensors = as_function(info, sample)
    return bool(tensors) and gradgradcheck(function, tensors)


def tangents_are_those_that_backward_implies(info: OpInfo, sample: SampleInput) -> bool:
    """<u, J t> is <J^T u, t>: J t by forward mode, J^T u by backward."""
    function, tensors = as_function(info, sample)
    if not tensors:
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
    leaves, spec = pytree.tree_flatten((sample.arguments, dict(sample.kwargs)))
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]

    def function(*tensors: Tensor) -> Any:
        filled = list(leaves)
        for place, x in zip(places, tensors, strict=True):
            filled[place] = x
        args, kwargs = pytree.tree_unflatten(filled, spec)
        return info.op(*args, **kwargs)

    pairs = zip(sample.tensors(), other.tensors(), strict=True)
    batches = [stack([x, y]) for x, y in pairs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is called once for each example
        found = each(vmap(function)(*batches))
    for number, example in enumerate((sample, other)):
        assert_close([x[number] for x in found], each(run(info, example)), equal_nan=True, check_stride=False)
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


def each(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def metadata(result: Any) -> list[Any]:
    """Shape, strides and dtype of each tensor in a result; anything else as it is."""
    return [(tuple(x.shape), x.stride(), x.dtype.name) if isinstance(x, Tensor) else x for x in each(result)]


def spread_out(x: Tensor) -> Tensor:
    if not x.dim():
        return x
    room = x.new_zeros((*x.shape[::-1], 2))
    return room.select(-1, 0).permute(*reversed(range(x.dim()))).copy_(x)


def as_function(info: OpInfo, sample: SampleInput) -> tuple[Callable[..., Any], tuple[Tensor, ...]]:
    """A function of the tensors that require grad, which gives the results that have a gradient; these tensors."""
    leaves, spec = pytree.tree_flatten((sample.arguments, dict(sample.kwargs)))
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.requires_grad and x.numel()]
    if not info.gradients:
        places = []

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        filled = list(leaves)
        for place, x in zip(places, tensors, strict=True):
            filled[place] = x.clone() if info.mutates and place == 0 else x
        args, kwargs = pytree.tree_unflatten(filled, spec)
        results = run(info, SampleInput(args[0], tuple(args[1:]), kwargs))
        looked_at = each(info.definite(results) if info.definite else results)
        return tuple(x for x in looked_at if isinstance(x, Tensor) and x._dtype.category >= dtypes.FLOATING)

    return function, tuple(leaves[i] for i in places)
