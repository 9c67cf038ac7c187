"""Real tensors beside fakes: each operator runs on both, and what depends on elements has a value of now.

So a program that asks for elements can be looked at once, for those that it has. It is asked for by
`torch._functorch.config.fake_tensor_propagate_real_tensors`. Read next: ../fake_tensor.py.
"""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch.dispatch.symbolic import ShapeEnv, Symbolic, symbols_of
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import _disable_current_modes

from .tensor import FakeTensor, MetadataMismatchError, shown


def keep_real(fake: FakeTensor, tensor: rd.Tensor) -> None:
    """Gives a fake a copy of the tensor that it was made of. AssertionError where that is a fake, too."""
    if isinstance(tensor, FakeTensor):
        raise AssertionError("fake_tensor_propagate_real_tensors: a fake of a fake has no elements to compute with")
    with _disable_current_modes(), rd.no_grad():
        fake.real_tensor = tensor.detach().clone()


def real_call(func: Any, args: Any, kwargs: Any) -> Any:
    """Returns the operator's result on the real tensors beside its fakes; None where one of them has none."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    values = [real_of(one) for one in leaves]
    if any(value is None and leaf is not None for leaf, value in zip(leaves, values, strict=True)):
        return None
    args, kwargs = pytree.tree_unflatten(values, spec)
    with _disable_current_modes():
        return func(*args, **kwargs)


def real_of(value: Any) -> Any:
    if isinstance(value, FakeTensor):
        return value.real_tensor
    if isinstance(value, rd.Tensor):
        return value.detach().clone()  # what is written to the copy does not concern it
    return value.node.hint if isinstance(value, Symbolic) else value


def propagate(func: Any, env: ShapeEnv | None, result: Any, real: Any) -> None:
    """Hands the parts of a real result to the fakes; symbols that elements decide take their values from there.

    Errors: MetadataMismatchError where the two differ in a size that is known.
    """
    for fake, one in zip(pytree.tree_leaves(result), pytree.tree_leaves(real), strict=True):
        if isinstance(fake, FakeTensor):
            if fake.dim() != one.dim() or not all(settled(env, *pair) for pair in zip(fake.shape, one.shape)):  # noqa: B905  # of one length: dim() says so
                raise MetadataMismatchError(
                    f"Real tensor propagation found a metadata mismatch for {func}: {shown(one)} is no {shown(fake)}"
                )
            fake.real_tensor = one
        else:
            settled(env, fake, one)


def settled(env: ShapeEnv | None, symbolic: Any, value: Any) -> bool:
    """Gives the symbol of an unbacked number its value of now; returns whether the number is that value."""
    if not isinstance(symbolic, Symbolic):
        return bool(symbolic == value)
    assert env is not None
    for symbol in symbols_of(symbolic.node.expr) - env.var_to_val.keys():  # a single one, of a number just made
        env.var_to_val[symbol] = int(value) if isinstance(value, bool) else value
    return bool(symbolic.node.hint in (value, None))
