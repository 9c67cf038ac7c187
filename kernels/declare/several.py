"""Structured operators with several results: `metas` says what they look like, `body` fills them.

The same as structured.py for operators such as `linalg_svd`, which have no in-place form: the functional form
allocates what `metas` says, `out=` is resized to it, the meta device fills nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import impl
from redispatch.dispatch.specialiser.annotations import leaf
from redispatch.dispatch.tensor import META, Tensor

from .declare import Function, Operator
from .structured import Meta, apart, check_no_internal_overlap, check_out_dtype, resize_out


class Several(Operator):
    """An operator with several tensor results, made from what they look like and a body."""

    metas_function: Callable[..., tuple[Meta, ...]]
    body_function: Function

    def metas(self, function: Callable[..., tuple[Meta, ...]]) -> Callable[..., tuple[Meta, ...]]:
        """Registers what says the results' metadata, and with it the kernels of the meta device. It calls no operator."""
        self.metas_function = function
        self._register("Meta", "meta", self._meta_functional, self._meta_out)
        return function

    def body(self, function: Function) -> Function:
        """Registers what fills the results, given as a tuple before the arguments, and with it the CPU kernels."""
        self.body_function = function
        self._register("CPU", "structured", self.run_functional, self.run_out)
        return function

    def _register(self, key: str, kind: str, functional: Function, out: Function) -> None:
        for op, kernel in ((self.functional, functional), (self.out, out)):
            if op is not None:
                impl(op, key, kernel, convention="positional", place=self.place, name=f"{kind} {self.base_name}")

    @leaf
    def run_functional(self, *args: Any) -> tuple[Tensor, ...]:
        results = tuple(meta.allocate() for meta in self.metas_function(*args))
        self.body_function(results, *args)
        return results

    @leaf
    def run_out(self, *args: Any) -> tuple[Tensor, ...]:
        inputs, outs = self._resized(args)
        for out in outs:
            check_no_internal_overlap(out)
            inputs = tuple(apart(value, out, elementwise=False) for value in inputs)
        self.body_function(outs, *inputs)
        return outs

    @leaf
    def _meta_functional(self, *args: Any) -> tuple[Tensor, ...]:
        return tuple(meta.allocate(META) for meta in self.metas_function(*args))

    @leaf
    def _meta_out(self, *args: Any) -> tuple[Tensor, ...]:
        return self._resized(args)[1]

    def _resized(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Tensor, ...]]:
        """The inputs, and the tensors to write, which have the results' shapes then."""
        count = len(self.functional.schema.returns)
        inputs, outs = args[:-count], args[-count:]
        for out, meta in zip(outs, self.metas_function(*inputs), strict=True):
            check_out_dtype(out, meta.dtype)
            resize_out(out, meta)
        return inputs, outs
