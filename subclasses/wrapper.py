"""WrapperTensor: the base class to start a wrapper from. It keeps a tensor inside, and what else you give it.

    class Tagged(WrapperTensor):
        kept = ("tag",)                         # attributes, which results inherit

    x = Tagged(rd.ones(2), tag="a")
    (x + 1).exp().tag                           # "a"; so after clone, deepcopy, Parameter, save and load

    @Tagged.implements(rd.ops.aten.mul.Tensor)  # what to do otherwise, operator by operator
    def mul(func, x, y):
        return Tagged(func(unwrapped(x), unwrapped(y)), tag=f"{x.tag} scaled")

What it teaches: how little of a wrapper is its own. Taking apart, putting together, aliasing, flattening, pickling:
these are the same for all, and are here once; what remains is which attributes there are, and the operators that are
special. Three methods can be overridden: `unwrap`, the plain tensor that one stands for; `wrap`, one made of a plain
result; and `combine`, the attributes of a result made of several. How serious it is: to be inherited from. It passes
`testing.check_subclass` as it is, and your class shows by the same what it changed.

Read next: two_tensor.py, the same by hand; trainable.py, where only some results are wrapped; docs/kit.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

Rule = Callable[..., Any]


def face_of(cls: Any, inner: rd.Tensor) -> Any:
    """A wrapper of class `cls` with the face of `inner`, and no data yet."""
    return rd.Tensor._make_wrapper_subclass(
        cls,
        inner.size(),
        strides=inner.stride(),
        storage_offset=inner.storage_offset(),
        dtype=inner.dtype,
        layout=inner.layout,
        device=inner.device,
        requires_grad=inner.requires_grad,
    )


class WrapperTensor(rd.Tensor):
    """A tensor around `held`, with the attributes that `kept` names, given by keyword.

    Shape, strides, dtype and device are those of `held`, and so is whether it requires grad; the graph is then the
    wrapper's, and its gradient is of its class.
    Errors: TypeError for an attribute that `kept` does not name, or that is missing.
    """

    kept: ClassVar[tuple[str, ...]] = ()
    rules: ClassVar[dict[Any, Rule]] = {}
    held: rd.Tensor

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        taken = sorted(name for name in cls.kept if hasattr(rd.Tensor, name) or name == "held")
        if taken:
            raise TypeError(
                f"{cls.__name__}: every tensor has {', '.join(taken)}, and formulas of derivatives use it; call "
                "what is kept something else"
            )
        cls.rules = dict(cls.rules)  # a class's own, which begin as those of the class above

    @staticmethod
    def __new__(cls: Any, inner: rd.Tensor, **attributes: Any) -> Any:
        if attributes.keys() != set(cls.kept):
            raise TypeError(
                f"{cls.__name__}: expected the attributes {list(cls.kept)} by keyword, but got {sorted(attributes)}; "
                "`kept` names those that there are"
            )
        return face_of(cls, inner)

    def __init__(self, inner: rd.Tensor, **attributes: Any) -> None:
        # The wrapper is what autograd records; were `held` recorded, too, there would be two graphs.
        self.held = inner.detach() if inner.requires_grad else inner
        for name, value in attributes.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        said = "".join(f", {name}={value!r}" for name, value in self.attributes().items())
        return f"{type(self).__name__}({self.held!r}{said})"

    # What a class may say otherwise ----------------------------------------------------------------------------------

    def unwrap(self) -> rd.Tensor:
        """The plain tensor that this one stands for, which operators are run on."""
        return self.held

    @classmethod
    def wrap(cls, result: rd.Tensor, attributes: dict[str, Any]) -> Any:
        """One of this class, made of a plain result."""
        return cls(result, **attributes)

    @classmethod
    def combine(cls, sources: Sequence[Any]) -> dict[str, Any]:
        """The attributes of what is made of `sources`, tensors of this class: those of the first."""
        return sources[0].attributes()

    @classmethod
    def implements(cls, *operators: Any) -> Callable[[Rule], Rule]:
        """Enters a rule for operators: `rule(func, *args, **kwargs)`, with the wrappers as they are.

        NotImplemented from a rule means: as any other operator.
        """

        def enter(rule: Rule) -> Rule:
            cls.rules.update(dict.fromkeys(operators, rule))
            return rule

        return enter

    # What all share --------------------------------------------------------------------------------------------------

    def attributes(self) -> dict[str, Any]:
        """The attributes that `kept` names."""
        return {name: getattr(self, name) for name in self.kept}

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The name of the inner tensor, and the attributes."""
        return ["held"], self.attributes()

    @classmethod
    def __tensor_unflatten__(cls, inner: dict[str, rd.Tensor], attributes: Any, size: Any, stride: Any) -> Any:
        """The wrapper around another tensor, with the same attributes."""
        return cls(inner["held"], **attributes)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rule = cls.rules.get(func)
        result = rule(func, *args, **kwargs) if rule is not None else NotImplemented
        if result is NotImplemented:
            sources = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, cls)]
            plain_args, plain_kwargs = unwrapped((args, kwargs))
            result = func(*plain_args, **plain_kwargs)
            attributes = cls.combine(sources)
            result = pytree.tree_map_only(rd.Tensor, lambda x: cls.wrap(x, attributes), result)
        return return_and_correct_aliasing(func, args, kwargs, result)


def unwrapped(tree: Any) -> Any:
    """A tensor, or containers of some, with the plain tensors in the place of wrappers."""
    return pytree.tree_map_only(WrapperTensor, lambda x: x.unwrap(), tree)


NOT_SUPPORTED: dict[str, str] = {}  # but for what no wrapper can, as the table of operators says
