"""Entries of the operators `<name>_backward`, which follow from those of the operators whose gradients they compute.

The first argument is the gradient of the forward operator's first result. The others have the names of its arguments,
and those whose names are none of these are its results, in order; next to results, which are no input that one may
choose, no argument has a gradient. The reference is the difference of two values of the forward operator's reference.

Read next: common.py, whose tables ask for these entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from redispatch.dispatch import OPERATORS, OpOverload, bind
from redispatch.dispatch.tensor import Tensor, dtypes

from ..op_info import FLOATS, Maker, OpInfo, SampleInput, Samples

SUFFIXES = ("_backward", "_backward_data")
OTHER_NAMES = {"train": "training", "input": "self"}  # of arguments, where the forward operator has none of the name


def backward_of(info: OpInfo) -> OpInfo | None:
    """The entry of the operator that computes the gradient of this one, if there is one."""
    stem, dot, overload = info.name.partition(".")
    names = (f"{stem.removesuffix('_forward')}{suffix}{dot}{overload}" for suffix in SUFFIXES)
    op = next((OPERATORS[name] for name in names if name in OPERATORS), None)
    if op is None or f"{stem}_forward{dot}{overload}" in OPERATORS:
        return None
    places = tensors_of(info.op)[: len(op.schema.returns)]
    reference = info.reference and gradient_of(info.reference, places, one=len(op.schema.returns) == 1)
    samples = incoming(op, info.op, info.samples)
    return OpInfo(op.qualified_name, samples, reference, FLOATS, tolerance=info.tolerance)


def tensors_of(op: OpOverload) -> list[int]:
    """The places of the tensors among the arguments."""
    kinds = ("Tensor", "Optional[Tensor]")
    return [place for place, argument in enumerate(op.schema.arguments) if str(argument.type) in kinds]


def incoming(op: OpOverload, forward: OpOverload, samples: Samples) -> Samples:
    """Calls of a backward operator, one for each of these calls of the forward one."""
    names = [argument.name for argument in forward.schema.arguments]
    wanted = [(a, a.name if a.name in names else OTHER_NAMES.get(a.name, a.name)) for a in op.schema.arguments[1:]]
    saved = [name for a, name in wanted if "Tensor" in str(a.type) and name not in names]

    def one_back(make: Maker, one: SampleInput, wide: SampleInput) -> SampleInput:
        results = [x.to(make.dtype) if x.dtype.is_floating_point else x for x in results_of(forward, wide)]
        values = bind(forward.schema, one.arguments, dict(one.kwargs))
        values = [x.detach() if saved and isinstance(x, Tensor) else x for x in values]
        given = dict(zip(names, values, strict=True)) | facts(op, forward, values)
        given |= dict(zip(reversed(saved), reversed(results), strict=False))
        args = tuple(given[name] for a, name in wanted if not a.kwarg_only)
        kwargs = {a.name: given[name] for a, name in wanted if a.kwarg_only}
        return SampleInput(make(*results[0].shape), args, kwargs, one.skips, one.map(Tensor.detach))

    def backward(make: Maker) -> Iterator[SampleInput]:
        """The results are those of float64, which every forward operator computes.

        A pointwise operator meets a gradient that lies otherwise in memory, too.
        """
        turns = "pointwise" in op.tags
        for one, twin in zip(samples(make), samples(Maker(dtypes.float64, thorough=make.thorough)), strict=False):
            exact = make.dtype.is_floating_point
            wide = one.map(lambda x: x.double() if x.dtype is make.dtype else x) if exact else twin
            yield (made := one_back(make, one, wide))
            if turns and made.input.dim() > 1:
                turns = False
                yield replace(made, input=make(*made.input.shape[::-1]).permute(*reversed(range(made.input.dim()))))

    return backward


def results_of(op: OpOverload, sample: SampleInput) -> list[Tensor]:
    found = op(*sample.map(Tensor.detach).arguments, **sample.map(Tensor.detach).kwargs)
    return list(found) if isinstance(found, tuple | list) else [found]


def facts(op: OpOverload, forward: OpOverload, values: list[Any]) -> dict[str, Any]:
    """The facts of the forward call: sizes, dtype, which gradients there are, an empty tensor for none."""
    tensors = [(forward.schema.arguments[place].name, values[place]) for place in tensors_of(forward)]
    input = values[tensors_of(forward)[0]]
    found: dict[str, Any] = {f"{name}_sizes": None if x is None else list(x.shape) for name, x in tensors}
    found |= dict.fromkeys(("input_size", "input_sizes", "sizes"), list(input.shape))
    mask = [x is not None for _, x in tensors[: len(op.schema.returns)]]
    found |= {"output_mask": mask, "grad_input_mask": mask, "input_dtype": input.dtype, "self_is_result": False}
    demanded = {a.name for a in op.schema.arguments if str(a.type) == "Tensor"}
    return found | {name: input.new_empty(0) for name, x in tensors if x is None and name in demanded}


def gradient_of(function: Callable[..., Any], places: Sequence[int], one: bool = True) -> Callable[..., Any]:
    """The gradients of a reference in the arguments at these places, as a function of that of its first result.

    one: whether there is but one. The differences are good to ten digits in float64, where no sample lies on a kink.
    """

    def reference(grad: Any, *args: Any, **kwargs: Any) -> Any:
        given = [np.asarray(x, np.float64) if getattr(x, "dtype", np.dtype(int)).kind == "f" else x for x in args]
        given += [None] * (max(places) + 1 - len(given))

        def value(place: int, moved: Any) -> Any:
            found = function(*given[:place], moved, *given[place + 1 : len(args)], **kwargs)
            return found[0] if isinstance(found, tuple | list) else found

        def slopes(place: int) -> Any:
            found, step = np.zeros(given[place].shape), 1e-5
            for element in np.ndindex(found.shape):
                move = np.zeros(found.shape)
                move[element] = step
                change = value(place, given[place] + move) - value(place, given[place] - move)
                found[element] = (grad * change).sum() / (2 * step)
            return found

        found = [None if given[place] is None else slopes(place) for place in places]
        return found[0] if one else found

    return reference
