"""Tensor-likes: objects that are no Tensor, and whose class says by `__torch_dispatch__` what operators do with them.

PyTorch takes Tensors alone below `__torch_function__`. Here such an object goes down the dispatcher in a `Carrier`, a
tensor with its shape, dtype and device; so overloads are chosen, composites taken apart, autograd and modes at work as
for any tensor. The class is asked at the key Python, for the objects themselves, and its answer may hold some, too.

Read next: dispatch/protocols/override.py, which finds such arguments where a function is called.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import STATE
from redispatch.dispatch.layers.python import no_handler
from redispatch.dispatch.protocols.override import (
    TENSOR_LIKE,
    _disabled_torch_function_impl,
    is_tensor_like,
    one_per_type,
)
from redispatch.dispatch.pytree import tree_leaves, tree_map, tree_map_only

from .tensor import Tensor


class Carrier(Tensor):
    """The tensor in whose form `like` passes the dispatcher."""

    __torch_function__ = _disabled_torch_function_impl  # type: ignore[assignment]  # not a method: called as a function
    like: Any

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Asks the classes of the objects among the arguments in turn, as those of tensors are asked."""
        likes = [one.like for one in tree_leaves((args, kwargs)) if isinstance(one, Carrier)]
        kinds = [type(one) for one in one_per_type(likes)]
        types = (*kinds, *(kind for kind in types if kind is not cls))
        args, kwargs = bare((args, kwargs or {}))
        for kind in kinds:
            result = kind.__torch_dispatch__(func, types, args, kwargs)
            if result is not NotImplemented:
                return carried(result)
        if len(kinds) == len(types):
            raise no_handler(func, STATE.get().modes, types)  # which names them
        return NotImplemented


def carrier_of(like: Any) -> Carrier:
    """The tensor for an object: of its `shape`, `dtype` and `device`, or () and the defaults where it has none.

    `__dispatch_keys__` are keys that it carries beside those of its device.
    """
    known = getattr(like, "__dict__", {}).get("_carrier")
    if known is not None:
        return known
    shape, keys = getattr(like, "shape", ()), getattr(like, "__dispatch_keys__", None)
    made: Carrier = Tensor._make_wrapper_subclass(
        Carrier,
        tuple(shape),
        dtype=getattr(like, "dtype", None),
        device=getattr(like, "device", None),
        _extra_dispatch_keys=None if keys is None else int(keys),
    )
    made.like = like
    return made


def carried(tree: Any) -> Any:
    """The arguments or results with tensor-likes in their carriers."""
    return tree_map(lambda one: carrier_of(one) if is_tensor_like(type(one)) else one, tree)


def taken_out(carrier: Carrier) -> Any:
    """The object in a carrier. One with a history keeps its carrier, so that gradients find their way through it."""
    if carrier.requires_grad:
        carrier.like._carrier = carrier
    return carrier.like


def bare(tree: Any) -> Any:
    """The arguments or results with tensor-likes as they are."""
    return tree_map_only(Carrier, lambda one: one.like, tree)


def call_with_tensor_likes(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`func(*args, **kwargs)`, some of whose arguments are tensor-likes: in the place of their `__torch_function__`."""
    args, kwargs = carried((args, kwargs or {}))
    return tree_map_only(Carrier, taken_out, func(*args, **kwargs))


TENSOR_LIKE.append(call_with_tensor_likes)
