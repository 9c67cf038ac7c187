"""out= forms of operators that compute their results in memory of their own: they are computed, and copied into `out`.

PyTorch generates such forms for operators whose kernel has no better way. `out` must have the result's dtype, and is
given its shape. Read next: kernels/ops/late_out_forms.py, for those that few programs need.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import LATE, OpOverload, call, impl, ops, place_of
from redispatch.dispatch.tensor import Tensor

from .declare import Operator
from .structured import Meta, OutDtype, check_can_cast, check_out_dtype, resize_out, warn_of_resizing

LATE["aten::"] = "redispatch.kernels.ops.late_out_forms"


def copy_into_out(*operators: Operator, casts: bool = False) -> None:
    """Gives operators that are declared with an out= form the kernel of that form.

    casts: whether `out` may have another dtype, to which the result can be cast.
    """
    for op in operators:
        assert op.out is not None, f"{op.schema} is declared without an out= form"
        register_copying(op.out, op.functional, op.names, casts, op.out_dtype)


def cast_into_out(op: Operator) -> None:
    """Copies into `out` where that may have another dtype, to which the result can be cast."""
    copy_into_out(op, casts=True)


def by(kernel: Callable[..., Tensor]) -> Callable[[Operator], Any]:
    """Gives the out= form a kernel for all backends that is written by hand."""
    return lambda op: op.kernel_out("CompositeExplicitAutograd")(kernel)


def register_copying(
    form: OpOverload,
    functional: OpOverload,
    names: Sequence[str],
    casts: bool = False,
    check: OutDtype | None = None,
) -> None:
    """Makes `form` call `functional`, whose arguments have these names, and copy what it gives."""
    kernel = copying(functional, names, casts, check)
    impl(form, "CompositeExplicitAutograd", kernel, convention="positional", place=place_of(copy_into_out))


def copying(
    functional: OpOverload, names: Sequence[str], casts: bool, check: OutDtype | None = None
) -> Callable[..., Any]:
    makes = "pin_memory" in names  # what is asked of a new tensor is not among the out= form's arguments
    taken = [name for name in names if not (makes and name in ("dtype", "layout", "device", "pin_memory"))]

    def into_out(*args: Any) -> Any:
        inputs, outs = list(args[: len(taken)]), args[len(taken) :]
        if makes:
            given = dict(zip(taken, inputs, strict=True)) | {"dtype": outs[0]._dtype, "device": outs[0]._device}
            inputs = [given.get(name) for name in names]
        results = call(functional, inputs)
        if isinstance(outs[0], Sequence):
            return fill_list(functional, outs[0], results)
        if len(outs) == 1:
            return filled(outs[0], results, casts, check)
        each = zip(outs, results, functional.schema.returns, strict=True)
        return tuple(filled(out, result, casts, check, one.name) for out, result, one in each)

    return into_out


def fill_list(functional: OpOverload, out: Sequence[Tensor], results: Sequence[Tensor]) -> None:
    """Writes a list of results into a list of tensors; RuntimeError where there are more, or fewer."""
    if len(out) != len(results):
        name = functional.schema.base_name
        raise RuntimeError(f"{name}_out expected an out= argument of size {len(results)}, got size {len(out)}")
    for target, result in zip(out, results, strict=True):
        filled(target, result)


def filled(
    out: Tensor, result: Tensor | None, casts: bool = False, check: OutDtype | None = None, name: str | None = None
) -> Tensor:
    """`out` with the shape and the values of a result. RuntimeError for a result that `output_mask` did not ask for."""
    if result is None:
        raise RuntimeError(
            f"Expected no out= tensor for a result that output_mask leaves out, but got {out._summary()}"
        )
    check = check or (None if casts else check_out_dtype)
    resize_out(out, Meta(result._shape, result._dtype, result._device, result._stride), check, name or "result")
    return ops.aten.copy_.default(out, result)


def resize_and_copy_into_out(op: Operator) -> None:
    """Gives an operator that is written in others its out= form, which is so written, too: by `resize_` and `copy_`."""
    assert op.out is not None, f"{op.schema} is declared without an out= form"

    def into_out(*args: Any) -> Tensor:
        *inputs, out = args
        result = call(op.functional, inputs)
        if op.out_dtype is not None:
            op.out_dtype(out, result._dtype, "result")
        check_can_cast(result._dtype, out._dtype)
        if out.shape != result.shape and out.numel():
            warn_of_resizing(out.shape, result.shape)
        return out.resize_(result.shape).copy_(result)

    impl(op.out, "CompositeImplicitAutograd", into_out, convention="positional", place=place_of(copy_into_out))
