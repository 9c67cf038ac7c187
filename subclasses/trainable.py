"""Trainable: a tensor with attributes of its own, which follow it wherever a parameter goes.

    w = rd.nn.Parameter(Trainable(rd.randn(3, 2), role="embedding", rate=0.1))
    optimizer = rd.optim.SGD([w], lr=1.0)
    copy.deepcopy(w).role       # "embedding"; so after clone, detach, save and load

What it teaches: what it takes for a wrapper to be trained. A parameter is detached, cloned, copied, written in place by
an optimizer, flattened into a file and filled from a state_dict, and each of these is an operator or a protocol at
which attributes can be lost. Here the few operators that make *the same tensor again* hand them on; every other
result is plain, since a product of two weights is no weight; and the flattening carries them through copies and
files. How serious it is: production-like in its shape; put your attributes in the place of these.

Read next: two_tensor.py, for the protocol without the purpose; quantized.py, for a parameter that is not trained.
"""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

from .wrapper import face_of

aten = rd.ops.aten


class Trainable(rd.Tensor):
    """The tensor `data` with `attributes`, read as `x.name` and all together as the dict `x.attributes`.

    Requires grad where `data` does; its gradient is plain. To be loaded by `rd.load`, the class has to be allowed
    (`serialization.add_safe_globals`), and attributes have to be such as it allows: numbers, texts, lists, dicts.
    Errors: ValueError for an attribute with the name of one that every tensor has.
    """

    held: rd.Tensor
    attributes: dict[str, Any]

    @staticmethod
    def __new__(cls: type, data: rd.Tensor, **attributes: Any) -> Any:
        taken = sorted(name for name in attributes if hasattr(rd.Tensor, name) or name in ("held", "attributes"))
        if taken:
            raise ValueError(f"Trainable: every tensor has {', '.join(taken)}; call your attribute something else")
        return face_of(cls, data)

    def __init__(self, data: rd.Tensor, **attributes: Any) -> None:
        self.held, self.attributes = data.detach(), attributes

    def __getattr__(self, name: str) -> Any:
        # Python asks here only for what was not found; `vars`, since before __init__ there is nothing to look in.
        try:
            return vars(self)["attributes"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}") from None

    def __repr__(self) -> str:
        said = "".join(f", {name}={value!r}" for name, value in self.attributes.items())
        return f"{type(self).__name__}({self.held!r}{said})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The name of the inner tensor, and the attributes."""
        return ["held"], self.attributes

    @classmethod
    def __tensor_unflatten__(cls, inner: dict[str, rd.Tensor], attributes: Any, size: Any, stride: Any) -> Any:
        """The wrapper around another tensor, with the same attributes."""
        return cls(inner["held"], **attributes)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        plain_args, plain_kwargs = pytree.tree_map_only(Trainable, lambda x: x.held, (args, kwargs))
        result = func(*plain_args, **plain_kwargs)
        if func in SAME_AGAIN and isinstance(args[0], Trainable):
            result = type(args[0])(result, **args[0].attributes)
        elif not func._schema.is_mutable:
            return result  # plain; where it is a view, it shares the memory of what is held
        return return_and_correct_aliasing(func, args, kwargs, result)


NOT_SUPPORTED: dict[str, str] = {}  # but for what no wrapper can, as the table of operators says

# What makes the same tensor again: as it is, in memory of its own, in another dtype or on another device.
SAME_AGAIN: set[Any] = {
    aten.alias.default,
    aten.clone.default,
    aten.detach.default,
    aten._to_copy.default,
}
