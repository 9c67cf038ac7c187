"""Operators of their own that are written in others: a mode, a backend and autograd see one, and yet nothing has to be
said of its derivative, which is that of its parts.

    scaled_op = Operator("scaled(Tensor self, float by) -> Tensor")

    @in_parts(scaled_op, "self")
    def scaled(self, by):
        return self.exp() * by

A composite operator (`Operator.implicit`) is seen by nobody but as its parts. This is for those that PyTorch gives
kernels, because to fuse them is what they are there for. Read next: dispatch/autograd/pullback.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch.autograd import pulled_back

from ..declare.declare import Function, Operator, taking


def in_parts(op: Operator, *inputs: str, nondifferentiable: tuple[int, ...] = ()) -> Callable[[Function], Function]:
    """Makes the decorated function, which calls other operators, the kernel of `op` for every backend.

    inputs: the arguments that have gradients; these come by running the function again, with autograd.
    nondifferentiable: the results through which none flows.
    """
    names = op.names
    places = [names.index(name) for name in inputs]
    several = len(op.schema.returns) > 1

    def register(function: Function) -> Function:
        @taking("grads" if several else "grad", *names, "needs")
        def gradients(given: Any, *arguments_and_needs: Any) -> Sequence[Any]:
            *arguments, needs = arguments_and_needs

            def again(*differentiated: Any) -> list[Any]:
                called = list(arguments)
                for place, value in zip(places, differentiated, strict=True):
                    called[place] = value
                results = function(*called)
                return list(results) if several else [results]

            return pulled_back(again, [arguments[place] for place in places], given if several else [given], needs)

        op.explicit(function)
        op.derivative((inputs, gradients), nondifferentiable=nondifferentiable)
        return function

    return register
