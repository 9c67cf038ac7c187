"""FunctionalTensorMode: functionalization as a mode, for programs that trace or compile others.

    with FunctionalTensorMode():
        x = FunctionalTensor.to_functional(t)
        x.add_(1)                                   # below: add
        value = from_functional(x)

A FunctionalTensor is a subclass whose `elem` is a wrapper of the layer Functionalize. The mode takes each operator on
such tensors, and calls it on their wrappers with that layer included; what comes back is dressed again.

What it teaches: a mode that does its work by a layer of the dispatcher. It stands in the slot FUNCTIONAL, below the
modes of users and above that which traces. Operators with effects besides writing their arguments are not ordered by
it.

Source: PyTorch's torch._subclasses.functional_tensor. Read next: dispatch/layers/functionalize.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import redispatch as rd
from redispatch._ops import HigherOrderOperator
from redispatch.func import FunctionalizeAPI
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing


class FunctionalTensor(rd.Tensor):
    """A tensor that may be written, where nothing below is. elem: the wrapper, of the layer Functionalize."""

    elem: rd.Tensor

    @staticmethod
    def __new__(cls, elem: rd.Tensor) -> FunctionalTensor:
        if not rd._is_functional_tensor(elem):
            raise AssertionError("FunctionalTensor expects what _to_functional_tensor gives")
        made = rd.Tensor._make_wrapper_subclass(
            cls, elem.shape, elem.stride(), elem.storage_offset(), dtype=elem.dtype, device=elem.device
        )
        made.elem = elem
        return made

    @staticmethod
    def to_functional(x: Any) -> Any:
        """A tensor as a FunctionalTensor with memory of its own."""
        made = FunctionalTensor(rd._to_functional_tensor(x.detach() if x.requires_grad else x))
        return made.requires_grad_(x.requires_grad)

    def from_functional(self) -> Any:
        """The value that the tensor shows now."""
        return rd._from_functional_tensor(self.elem)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not all(issubclass(kind, FunctionalTensor) for kind in types):
            return NotImplemented
        with FunctionalTensorMode():
            return func(*args, **(kwargs or {}))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"FunctionalTensor({self.elem!r})"


class FunctionalTensorMode(TorchDispatchMode):
    """The mode. New tensors are functional while it is active."""

    _mode_key = rd._C._TorchDispatchModeKey.FUNCTIONAL
    supports_higher_order_operators = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, HigherOrderOperator):
            rule = func.functionalization
            return NotImplemented if rule is None else rule(ModeAPI(), *args, **kwargs)
        if any(not issubclass(kind, FunctionalTensor) for kind in types):
            return NotImplemented  # another subclass stands outside, and is to be unwrapped first
        if rd.is_inference_mode_enabled():  # where composites come as they are: `contiguous` says that it gives a view
            with self:
                made = func.decompose(*args, **kwargs)
            if made is not NotImplemented:
                return made
        inner, inner_kwargs = pytree.tree_map_only(FunctionalTensor, lambda x: x.elem, (args, kwargs))
        with functionalizing():
            result = func(*inner, **inner_kwargs)
        if func._schema.is_mutable and func.namespace != "aten":  # copies were written, so nobody has counted it
            for one in written_by(func, args, kwargs):
                rd.autograd.graph.increment_version(one)
        dressed = pytree.tree_map_only(rd.Tensor, dress, result)
        return return_and_correct_aliasing(func, args, kwargs, dressed)


def written_by(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """Returns the functional tensors among the arguments that an operator writes."""
    given = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)} | kwargs
    values = [given.get(one.name) for one in func._schema.arguments if one.is_write]
    return [one for one in pytree.tree_leaves(values) if isinstance(one, FunctionalTensor)]


class ModeAPI(FunctionalizeAPI):
    """The functions that rules of higher-order operators call under the mode."""

    def wrap_tensors(self, args: Any) -> Any:
        return pytree.tree_map_only(rd.Tensor, FunctionalTensor.to_functional, args)

    def unwrap_tensors(self, args: Any) -> Any:
        return pytree.tree_map_only(FunctionalTensor, FunctionalTensor.from_functional, args)

    def redispatch_to_next(self) -> AbstractContextManager[Any]:
        return nullcontext()  # the mode is popped while it answers

    def replace(self, input_tensor: Any, output_tensor: Any) -> None:
        super().replace(input_tensor.elem, output_tensor)

    def sync(self, tensor: Any) -> None:
        tensor.from_functional()


@contextmanager
def functionalizing() -> Iterator[None]:
    """A region in which the layer Functionalize takes every call, and outside of which things are as before."""
    with rd._C._ForceDispatchKeyGuard(rd._C._dispatch_tls_local_include_set(), rd._C._dispatch_tls_local_exclude_set()):
        rd._enable_functionalization(reapply_views=True)
        yield


def dispatch_functionalize(func: Callable[..., Any], mode: Any = None) -> Callable[..., Any]:
    """A function in which writes are no writes: its tensors are functional, its results plain ones.

    Unlike `func.functionalize`, it leaves the arguments as they are.
    """

    def functionalized(*args: Any, **kwargs: Any) -> Any:
        above = rd._C.DispatchKeySet(rd.DispatchKey.Functionalize)
        with rd._C._ExcludeDispatchKeyGuard(above), mode or FunctionalTensorMode():
            given, named = pytree.tree_map_only(rd.Tensor, FunctionalTensor.to_functional, (args, kwargs))
            result = func(*given, **named)
            return pytree.tree_map_only(FunctionalTensor, lambda x: x.from_functional(), result)

    return functionalized


def dress(value: rd.Tensor) -> Any:
    return FunctionalTensor(value) if rd._is_functional_tensor(value) else value


NOT_SUPPORTED = {
    "log_sigmoid/out": "its buffer is a plain tensor, which is written along",
    "*/pickle": "a functional tensor lives as long as its function is traced",
}
