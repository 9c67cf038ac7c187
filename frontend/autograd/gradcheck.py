"""gradcheck: compares the gradients that backward gives with finite differences.

Both are seen as one real matrix per pair of an input and an output: a row for each real number of the input (a complex
one has two), a column for each real number of the output. The numerical one is found row by row, moving one input
number up and down; the analytical one column by column, sending one unit gradient back. Fast mode looks at one random
number of it, u^T J v: one difference along v, one gradient u sent back.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from redispatch.dispatch import dataclass
from redispatch.dispatch.autograd import forward_ad
from redispatch.dispatch.autograd.api import grad
from redispatch.dispatch.autograd.engine import run_backward
from redispatch.dispatch.autograd.history import gradient_edge
from redispatch.dispatch.autograd.node import BATCHED
from redispatch.dispatch.tensor import Size, Tensor, as_numpy, dtypes, empty, get_default_dtype, shown
from redispatch.dispatch.tensor.printing import format_tensor


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` where a gradient is wrong."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Checks the gradients of `func` with respect to the inputs that require grad. Returns whether they are right.

    inputs: a tensor or a sequence of arguments; the tensors among them that require grad should be float64 or
    complex128. A gradient is right where it is within `atol + rtol * |numerical|` of the difference quotient with
    step `eps`. `check_forward_ad` compares forward mode as well; `check_batched_grad` and
    `check_batched_forward_grad` a batch of gradients, or tangents, with one after the other. `fast_mode` compares one
    random number of each Jacobian.
    Errors: GradcheckError, unless `raise_exception` is False; ValueError where no input requires grad; AssertionError,
    as in PyTorch, for checks that do not go together.

    >>> import redispatch as rd
    >>> rd.autograd.gradcheck(rd.sin, rd.ones(2, dtype=rd.float64, requires_grad=True))
    True
    """
    check_flags(check_forward_ad, check_backward_ad, check_batched_grad, check_batched_forward_grad)
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    check_inputs(arguments)
    near = Nearness(eps, atol, rtol)
    try:
        outputs = differentiable_outputs(func(*arguments))
        if not outputs:
            check_constant(func, arguments, eps)
            return True
        # Where it fails, the whole matrices say where.
        whole = not fast_mode or not agrees_along_random_directions(
            func, arguments, outputs, near, check_forward_ad, check_backward_ad
        )
        if check_backward_ad and not whole:
            check_again(arguments, outputs, nondet_tol)
        if check_backward_ad and whole:
            check_jacobians(func, arguments, outputs, near, nondet_tol, check_grad_dtypes)
        if check_forward_ad:
            if whole:
                check_tangents(func, arguments, near)
            if check_undefined_grad:
                check_undefined_tangents(func, arguments)
            if check_batched_forward_grad:
                check_batches_of_tangents(func, arguments, near)
        if check_backward_ad:
            check_zero_gradients(arguments, outputs)
            if check_batched_grad:
                check_batches(arguments, outputs, near)
            if check_undefined_grad:
                check_undefined_gradients(func, arguments)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


@dataclass(frozen=True, slots=True)
class Nearness:
    """The step of a difference quotient, and how near to it a gradient must be."""

    eps: float
    atol: float
    rtol: float


def check_flags(forward: bool, backward: bool, batched_gradients: bool, batched_tangents: bool) -> None:
    """AssertionError for checks that do not go together."""
    if not (forward or backward):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if batched_gradients and not backward:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if batched_tangents and not forward:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Checks the gradients of the gradients of `func`: `gradcheck` of its backward.

    grad_outputs: where to take the second derivative; random by default. `check_rev_over_rev` differentiates the
    backward pass by another one, `check_fwd_over_rev` by forward mode.
    """
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if grad_outputs is None:
        random = np.random.default_rng(0)
        outputs = differentiable_outputs(func(*arguments))
        grad_outputs = tuple(random_like(output, random, gen_non_contig_grad_outputs) for output in outputs)
    else:
        grad_outputs = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)

    def gradients(*values: Any) -> tuple[Any, ...]:
        inputs, outer = values[: -len(grad_outputs)], values[-len(grad_outputs) :]
        for one, given in zip(inputs, arguments, strict=True):
            if is_checked(given) and not one.requires_grad:  # forward mode leaves that to what is checked
                one.requires_grad_()
        wanted = [value for value in inputs if isinstance(value, Tensor) and value.requires_grad]
        outputs = differentiable_outputs(func(*inputs))
        found = grad(outputs, wanted, outer, create_graph=True, allow_unused=True)
        return tuple(value for value in found if value is not None)

    return gradcheck(
        gradients,
        (*arguments, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


# --- Inputs and outputs -----------------------------------------------------------------------------------------------


def check_inputs(arguments: tuple[Any, ...]) -> None:
    """ValueError where nothing requires grad; RuntimeError where moving one number would move others."""
    if not any(is_checked(value) for value in arguments):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    for index, value in enumerate(arguments):
        if not is_checked(value):
            continue
        if value._dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{index} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if any(step == 0 and size > 1 for size, step in zip(value._shape, value._stride, strict=True)):
            raise RuntimeError(
                f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )


def is_checked(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def differentiable_outputs(result: Any) -> list[Any]:
    """The outputs that require grad."""
    results = result if isinstance(result, tuple | list) else (result,)
    return [value for value in results if is_checked(value)]


def all_outputs(result: Any) -> list[Any]:
    results = result if isinstance(result, tuple | list) else (result,)
    return [value for value in results if isinstance(value, Tensor) and value._dtype.category >= 2]


def numbers(tensor: Any) -> np.ndarray:
    """The real numbers of a tensor, flat, as a copy; a complex one gives its real and its imaginary part."""
    values = np.ascontiguousarray(read(tensor.detach()))
    return values.view(values.real.dtype).reshape(-1).astype(np.float64)


def read(tensor: Any) -> np.ndarray:
    """The elements of a tensor: of a wrapper without memory, as it gives them one by one."""
    if tensor._storage.has_data or not tensor.numel():
        return shown(tensor)
    return np.array([one.item() for one in tensor.reshape(-1)], tensor._dtype.numpy).reshape(tuple(tensor._shape))


def write(tensor: Any, values: np.ndarray) -> None:
    """Gives a tensor these numbers, on whatever device and with whatever lazy bits, unnoticed by the graph."""
    is_here = tensor._device.type == "cpu" and tensor._storage.has_data and not (tensor.is_conj() or tensor.is_neg())
    here = tensor if is_here else empty(tensor._shape, tensor._dtype)
    as_numpy(here)[...] = values
    if not is_here:
        tensor.data.copy_(here)


def steps(tensor: Any) -> Iterator[np.ndarray]:
    """A unit step for each real number of a tensor."""
    for index in np.ndindex(*tensor._shape):
        for one in (1, 1j) if tensor._dtype.is_complex else (1,):
            values = np.zeros(tuple(tensor._shape), type(one))
            values[index] = one
            yield values


def units(tensor: Any) -> Iterator[Any]:
    """One unit gradient for each real number of a tensor."""
    for values in steps(tensor):
        unit = tensor.detach().new_zeros(tensor._shape)
        write(unit, values)
        yield unit


def random_like(output: Any, random: np.random.Generator, strided: bool) -> Any:
    """A tensor that requires grad, of an output's shape and dtype, with values in [-1, 1]."""
    made = output.detach().new_zeros(output._shape)
    values = random.uniform(-1, 1, tuple(output._shape))
    if output._dtype.is_complex:
        values = values + 1j * random.uniform(-1, 1, tuple(output._shape))
    if strided and output._shape:
        made = made.new_zeros((*output._shape[:-1], 2 * output._shape[-1]))[..., ::2]
    write(made, values)
    return made.detach().requires_grad_()


# --- The two matrices -------------------------------------------------------------------------------------------------


def numerical_jacobian(
    func: Callable[..., Any], arguments: tuple[Any, ...], value: Any, eps: float
) -> list[np.ndarray]:
    """For each output, the matrix by which its numbers follow those of the input `value`, by central differences."""
    rows = [difference_along(func, arguments, value, step, eps) for step in steps(value)]
    return [np.array(of_output) for of_output in zip(*rows, strict=True)]


def analytical_jacobian(output: Any, value: Any) -> np.ndarray:
    """Returns the Jacobian of one output by backward, column by column."""
    rows = sum(1 for _ in units(value))
    columns = [numbers(g) if (g := vjp(output, value, unit)) is not None else np.zeros(rows) for unit in units(output)]
    return np.array(columns).reshape(len(columns), rows).T


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Any, ...]:
    """The matrix of the first output's differences by each input of `target`. Deprecated, and no longer used."""
    private("get_numerical_jacobian", grad_out)
    targets = inputs if target is None else target
    return tuple(
        as_matrix(numerical_jacobian(lambda *args: fn(args), tuple(inputs), one, eps)[0], one)
        for one in ((targets,) if isinstance(targets, Tensor) else targets)
        if is_checked(one)
    )


def get_analytical_jacobian(
    inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Any, ...], bool, bool, bool]:
    """(the matrix of an output's gradients by each input, whether backward is reentrant, whether gradients have their
    inputs' sizes, whether they have their dtypes). Deprecated, and no longer used."""
    private("get_analytical_jacobian", grad_out)
    checked = [one for one in inputs if is_checked(one)]
    once, again = ([analytical_jacobian(output, one) for one in checked] for _ in range(2))
    reentrant = all(np.all(np.abs(a - b) <= nondet_tol) for a, b in zip(once, again, strict=True))
    found = [(vjp(output, one, ones(output)), one) for one in checked]
    given = [(gradient, one) for gradient, one in found if gradient is not None]
    sizes = all(gradient.shape == one.shape for gradient, one in given)
    kinds = all(gradient.dtype is one.dtype for gradient, one in given)
    return tuple(as_matrix(a, one) for a, one in zip(once, checked, strict=True)), reentrant, sizes, kinds


def private(name: str, grad_out: float) -> None:
    """Warns of a name that is no part of the API. ValueError for another `grad_out` than 1."""
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be "
        "removed in a future version of PyTorch.",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def as_matrix(numbers: np.ndarray, like: Any) -> Any:
    """The matrix as a tensor of float64."""
    made = empty(Size(numbers.shape), dtypes.float64)
    write(made, numbers)
    return made


def vjp(output: Any, value: Any, gradient: Any) -> Any:
    return grad(output, value, gradient, retain_graph=True, allow_unused=True)[0]


# --- One number of the two matrices ---------------------------------------------------------------------------------


def agrees_along_random_directions(
    func: Callable[..., Any],
    arguments: tuple[Any, ...],
    outputs: list[Any],
    near: Nearness,
    check_forward: bool,
    check_backward: bool,
) -> bool:
    """Returns whether u^T J v is the same by differences and by both modes, for a random u and v of each output and
    input."""
    random = np.random.default_rng(0)
    every = all_outputs(func(*arguments))
    differentiable = [place for place, output in enumerate(every) if output.requires_grad]
    for value in filter(is_checked, arguments):
        if not value.numel():
            continue
        v = random_unit(value, random)
        along = tensor_of(v, value)
        differences = difference_along(func, arguments, value, read(along), near.eps)
        rows = [random_unit(output, random) for output in outputs]
        seeds = zip(outputs, rows, strict=True) if check_backward else ()
        sent = [vjp(output, value, tensor_of(u, output)) for output, u in seeds]
        moved = tangents(func, arguments, value, along) if check_forward else []
        for index, (place, u) in enumerate(zip(differentiable, rows, strict=True)):
            found = []
            if check_backward:
                found.append(0.0 if sent[index] is None else numbers(sent[index]) @ v)
            if check_forward:
                found.append(0.0 if moved[place] is None else u @ numbers(moved[place]))
            allowed = near.atol * np.abs(u).sum() * np.abs(v).sum()
            if not np.allclose(found, u @ differences[place], near.rtol, allowed):
                return False
    return True


def random_unit(tensor: Any, random: np.random.Generator) -> np.ndarray:
    """A vector of length 1 with a number for each real number of a tensor."""
    made = random.standard_normal(numbers(tensor).size)
    return made / max(float(np.linalg.norm(made)), 1e-300)


def tensor_of(values: np.ndarray, like: Any) -> Any:
    """The tensor like another one that has these real numbers."""
    made = like.detach().new_zeros(like._shape)
    write(made, (values.view(np.complex128) if like._dtype.is_complex else values).reshape(tuple(like._shape)))
    return made


def difference_along(
    func: Callable[..., Any], arguments: tuple[Any, ...], value: Any, step: np.ndarray, eps: float
) -> list[np.ndarray]:
    """Returns how the numbers of each output follow, by central differences, where the input `value` moves."""
    place, before = value.detach(), np.array(read(value.detach()))
    sides: list[list[np.ndarray]] = []
    unmoved = all_outputs(func(*arguments))
    for sign in (1, -1):
        try:
            write(place, before + (sign * eps * step).astype(before.dtype))
            perturbed = all_outputs(func(*arguments))
            check_like(unmoved, perturbed)
            sides.append([numbers(output) for output in perturbed])
        finally:
            write(place, before)
    return [(above - below) / (2 * eps) for above, below in zip(*sides, strict=True)]


def check_like(outputs: list[Any], perturbed: list[Any]) -> None:
    """AssertionError where outputs look otherwise when the inputs are moved a little."""
    for index, (one, other) in enumerate(zip(outputs, perturbed, strict=True)):
        for what, former, present in (("shape", one.shape, other.shape), ("dtype", one.dtype, other.dtype)):
            if former != present:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed on index "
                    f"{index}, but got:\n {former} and {present}"
                )


# --- The checks -------------------------------------------------------------------------------------------------------


def check_jacobians(
    func: Callable[..., Any],
    arguments: tuple[Any, ...],
    outputs: list[Any],
    near: Nearness,
    nondet_tol: float,
    check_dtypes: bool,
) -> None:
    """Raises GradcheckError where an analytical matrix differs from the numerical one, or from itself run again."""
    every = all_outputs(func(*arguments))
    differentiable = [place for place, output in enumerate(every) if output.requires_grad]
    tensors = [value for value in arguments if is_checked(value)]
    for i, value in enumerate(tensors):
        numerical = numerical_jacobian(func, arguments, value, near.eps)
        for o, (place, output) in enumerate(zip(differentiable, outputs, strict=True)):
            analytical = analytical_jacobian(output, value)
            if not numerical:  # an input without elements
                continue
            again = analytical_jacobian(output, value)
            if not np.all(np.abs(again - analytical) <= nondet_tol):
                raise not_reentrant(nondet_tol)
            if not np.allclose(analytical, numerical[place], near.rtol, near.atol):
                raise mismatch(o, i, numerical[place], analytical, value, output, near)
            if check_dtypes:
                check_gradient_dtype(output, value)


def check_again(arguments: tuple[Any, ...], outputs: list[Any], nondet_tol: float) -> None:
    """Raises GradcheckError where backward gives others when it is run again: for ones, which stand for all."""
    for output in outputs:
        for value in filter(is_checked, arguments):
            once, again = (vjp(output, value, ones(output)) for _ in range(2))
            if once is not None and not np.all(np.abs(numbers(once) - numbers(again)) <= nondet_tol):
                raise not_reentrant(nondet_tol)


def not_reentrant(nondet_tol: float) -> GradcheckError:
    return GradcheckError(
        "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
        "different values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism "
        f"was {nondet_tol}."
    )


def check_undefined_tangents(func: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Raises GradcheckError where inputs that do not move have outputs move otherwise than those that move by zero."""
    tensors = [value for value in arguments if is_checked(value)]
    for value in tensors:
        by_zero = tangents(func, arguments, value, ones(value))
        if len(tensors) == 1:
            continue
        for one, other in zip(by_zero, tangents(func, arguments, value, ones(value), others=False), strict=True):
            difference = (0 if one is None else numbers(one)) - (0 if other is None else numbers(other))
            if not np.allclose(difference, 0):
                raise GradcheckError("Forward mode treats an undefined tangent otherwise than as zero")


def tangents(
    func: Callable[..., Any], arguments: tuple[Any, ...], value: Any, tangent: Any, others: bool = True
) -> list[Any]:
    """Returns how each output moves where the input `value` moves along `tangent`; None where it does not.

    others: whether other inputs have zeros for tangents, or none.
    """
    with forward_ad.dual_level():
        moved = [
            forward_ad.make_dual(one.detach(), tangent if one is value else zeros_like(one))
            if is_checked(one) and (others or one is value)
            else one.detach()
            if is_checked(one)
            else one
            for one in arguments
        ]
        return [forward_ad.unpack_dual(output).tangent for output in all_outputs(func(*moved))]


def check_tangents(func: Callable[..., Any], arguments: tuple[Any, ...], near: Nearness) -> None:
    """Raises GradcheckError where forward mode, run once per number of each input, differs from the differences."""
    for i, value in enumerate(arguments):
        if not is_checked(value):
            continue
        if not value.numel():
            continue
        numerical = numerical_jacobian(func, arguments, value, near.eps)
        rows = [tangents(func, arguments, value, unit) for unit in units(value)]
        for place, output in enumerate(all_outputs(func(*arguments))):
            zeros = np.zeros(numerical[place].shape[1])
            found = [zeros if row[place] is None else numbers(row[place]) for row in rows]
            analytical = np.array(found).reshape(numerical[place].shape)
            if not np.allclose(analytical, numerical[place], near.rtol, near.atol):
                raise mismatch(place, i, numerical[place], analytical, value, output, near, forward=True)


def check_batches(arguments: tuple[Any, ...], outputs: list[Any], near: Nearness) -> None:
    """Raises GradcheckError where a batch of gradients sent back gives others than one after the other."""
    inputs = [value for value in arguments if is_checked(value)]
    for o, output in enumerate(outputs):
        seeds = list(units(output))[:3]
        if not seeds:
            continue
        options: dict[str, Any] = {"retain_graph": True, "allow_unused": True}
        single = [grad(output, inputs, seed, **options) for seed in seeds]
        batch = grad(output, inputs, stacked(seeds), is_grads_batched=True, **options)
        for i, found in enumerate(batch):
            if found is None:
                continue
            expected = np.concatenate([numbers(one[i]) for one in single])
            if not np.allclose(numbers(found), expected, near.rtol, near.atol):
                raise GradcheckError(
                    f"While computing batched gradients, got values for output {o} and input {i} that are not the same "
                    f"as those computed one after the other: {numbers(found)} and {expected}"
                )


def check_batches_of_tangents(func: Callable[..., Any], arguments: tuple[Any, ...], near: Nearness) -> None:
    """Checks a batch of tangents that goes through the function in one call."""
    for i, value in enumerate(arguments):
        if not is_checked(value):
            continue
        seeds = (list(units(value)) * 2)[:2]
        if not seeds:
            continue

        def moved(tangent: Any, value: Any = value) -> tuple[Any, ...]:
            found = tangents(func, arguments, value, tangent)
            return tuple(one for one in found if one is not None)

        single = [moved(seed) for seed in seeds]
        if not single[0]:
            continue
        for o, batch in enumerate(BATCHED()(moved, (stacked(seeds),))):
            expected = np.concatenate([numbers(one[o]) for one in single])
            if not np.allclose(numbers(batch), expected, near.rtol, near.atol):
                raise GradcheckError(
                    f"While computing batched forward gradients, got values for output {o} and input {i} that are not "
                    f"the same as those computed one after the other: {numbers(batch)} and {expected}"
                )


def stacked(parts: list[Any]) -> Any:
    """The tensors as one, along a new first dimension."""
    made = parts[0].detach().new_zeros((len(parts), *parts[0]._shape))
    write(made, np.stack([read(part.detach()) for part in parts]))
    return made


def mismatch(
    o: int,
    i: int,
    numerical: np.ndarray,
    analytical: np.ndarray,
    value: Any,
    output: Any,
    near: Nearness,
    forward: bool = False,
) -> GradcheckError:
    """The error for two matrices that differ; of complex numbers, which have two rows or columns, it says which."""
    shown = [
        format_tensor(matrix, "float64", shape=matrix.shape, default_dtype_name=get_default_dtype().name)
        for matrix in (numerical, analytical)
    ]
    parts = ""
    side, (one, other) = "outputs", (numerical, analytical)
    if forward:
        side, (one, other) = "inputs", (numerical.T, analytical.T)
    if (value if forward else output)._dtype.is_complex:
        imaginary = not np.allclose(other[:, 1::2], one[:, 1::2], near.rtol, near.atol)
        parts = f"While considering the {'imaginary' if imaginary else 'real'} part of complex {side} only, "
    name = "Jacobian computed with forward mode mismatch" if forward else "Jacobian mismatch"
    return GradcheckError(
        f"{parts}{name} for output {o} with respect to input {i},\nnumerical:{shown[0]}\nanalytical:{shown[1]}\n"
    )


def check_gradient_dtype(output: Any, value: Any) -> None:
    gradient = vjp(output, value, next(units(output)))
    if gradient is not None and gradient._dtype is not value._dtype:
        raise GradcheckError(f"Analytical gradient has dtype {gradient.dtype}, its input {value.dtype}")


def check_constant(func: Callable[..., Any], arguments: tuple[Any, ...], eps: float) -> None:
    """Raises GradcheckError where a function whose outputs do not require grad depends on its inputs all the same."""
    for value in arguments:
        if is_checked(value) and any(np.any(matrix != 0) for matrix in numerical_jacobian(func, arguments, value, eps)):
            raise GradcheckError("Numerical gradient for function expected to be zero")


def check_zero_gradients(arguments: tuple[Any, ...], outputs: list[Any]) -> None:
    """Raises GradcheckError where zero gradients of the outputs give others than zero for the inputs."""
    tensors = [value for value in arguments if is_checked(value)]
    zeros = [output.detach().new_zeros(output._shape) for output in outputs]
    found = grad(outputs, tensors, zeros, retain_graph=True, allow_unused=True)
    for gradient, value in zip(found, tensors, strict=True):
        if gradient is None:
            continue
        if np.any(numbers(gradient) != 0):
            raise GradcheckError("backward not multiplied by grad_output")
        if gradient._dtype is not value._dtype:
            raise GradcheckError("grad is incorrect type")
        if gradient._shape != value._shape:
            raise GradcheckError("grad is incorrect size")


def check_undefined_gradients(func: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Raises GradcheckError where backward cannot do without the gradients of some outputs, or makes them up."""
    tensors = [value for value in arguments if is_checked(value)]
    count = len(differentiable_outputs(func(*arguments)))
    absent = [set(range(count))] + [{place} for place in range(count) if count > 1]
    for missing in absent:
        outputs = differentiable_outputs(func(*arguments))
        seeds = [None if place in missing else ones(output) for place, output in enumerate(outputs)]
        zeros = [zeros_like(o) if place in missing else ones(o) for place, o in enumerate(outputs)]
        try:
            found = engine_gradients(outputs, tensors, seeds)
        except RuntimeError as error:
            warnings.warn(UNDEFINED, stacklevel=3)
            raise GradcheckError(
                "Expected backward function to handle undefined output grads. Please look at 'Notes about undefined "
                f"output gradients' in the documentation of derivatives: {error}"
            ) from error
        expected = engine_gradients(differentiable_outputs(func(*arguments)), tensors, zeros)
        for got, wanted in itertools.zip_longest(found, expected):
            difference = (0 if got is None else numbers(got)) - (0 if wanted is None else numbers(wanted))
            if not np.allclose(difference, 0):
                raise GradcheckError("Backward treats an undefined output gradient otherwise than as zero")


UNDEFINED = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
    "existing callers of this function. If this is true for you, you can call this function with "
    '"check_undefined_grad=False" to disable the feature'
)


def engine_gradients(outputs: list[Any], tensors: list[Any], seeds: list[Any]) -> list[Any]:
    roots = [gradient_edge(output) for output in outputs]
    return run_backward(roots, seeds, targets=[gradient_edge(t) for t in tensors])  # type: ignore[misc, arg-type]  # of the right type, which mypy cannot tell


def ones(tensor: Any) -> Any:
    return zeros_like(tensor) + 1


def zeros_like(tensor: Any) -> Any:
    return tensor.detach().new_zeros(tensor._shape)
