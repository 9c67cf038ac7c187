"""Declaring an operator on whole tensors in one statement: schema, kernel, derivative and public face.

    @composite("tile(Tensor self, SymInt[] dims) -> Tensor")
    def tile(self, dims):
        return self.repeat([1] * (self.dim() - len(dims)) + list(dims))

`composite` is written in other operators, and everything follows from them; `explicit` has one kernel for every
backend, `native` one for the CPU and the meta device; `structured` and `planned` have a meta function, and a body that
fills what it describes or a loop. All else is a fact beside the function:

    derivative, node, nondifferentiable    the gradient of each argument               Operator.derivative
    forward                                the tangent, where that is faster           Operator.forward
    understands                            the lazy bits that the kernel knows         Operator.understands
    out, casts                             an out= form, into which results are copied out_forms.py
    into                                   what fills `out` instead
    seeded                                 it draws random numbers
    function, method, module, name, also   its public faces                            public.py
    inplace, tags, autocast, batching, ... what is true of the operator                Operator

`derivative` is a formula for the first argument, a dict of formulas by name (or by several names at once), or False
where no gradient flows; without it, nothing is said. A statement gives the public function, whose `op` is the
declaration. Where the function is called `..._op`, there is no face, and it gives the declaration itself.

Read next: operator.py, for pointwise operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from redispatch.dispatch import fallthrough_kernel, impl

from .declare import Function, Operator
from .out_forms import copy_into_out
from .planned import ByLoop, Planned
from .public import public
from .several import Several
from .structured import Structured

Derivative = Function | Mapping[Any, Function] | bool | None
IMPLICIT, EXPLICIT = "CompositeImplicitAutograd", "CompositeExplicitAutograd"
LAZY = ("Conjugate", "Negative", "ZeroTensor")  # for `understands`
FACES = ("function", "method", "module", "name", "function_like", "method_like")


def composite(schema: str, given: Function | None = None, /, **facts: Any) -> Any:
    """Declares an operator that is written in others; a decorator, where that is not given."""
    return statement(schema, given, Operator.implicit, facts)


def explicit(schema: str, given: Function | None = None, /, **facts: Any) -> Any:
    """Declares an operator with one kernel for every backend, meta included."""
    return statement(schema, given, Operator.explicit, facts)


def native(
    schema: str,
    given: Function | None = None,
    /,
    *,
    on: Sequence[str] = ("CPU", "Meta"),
    dispatches: bool = False,
    **facts: Any,
) -> Any:
    """Declares an operator with a kernel for the CPU and the meta device, which calls none, unless it `dispatches`."""
    return statement(schema, given, lambda op, kernel: op.kernel(*on, dispatches=dispatches)(kernel), facts)


def structured(
    schema: str,
    meta: Function,
    given: Function | None = None,
    /,
    *,
    of: type[Structured | Several] = Structured,
    dispatches: bool = False,
    **facts: Any,
) -> Any:
    """Declares a structured operator, or one `of` another such class, by its meta function, which is one of all results
    where these are several, and its body."""

    def register(op: Any, body: Function) -> None:
        (op.metas if isinstance(op, Several) else op.meta)(meta)
        op.body(body, **({"dispatches": True} if dispatches else {}))

    return statement(schema, given, register, {"of": of, **facts})


def planned(
    schema: str, meta: Function, given: Function | None = None, /, *, of: type[ByLoop] = Planned, **facts: Any
) -> Any:
    """Declares a planned operator, in the same way, by its meta function and what returns its loop."""

    def register(op: Any, loop: Function) -> None:
        (op.metas if op.several else op.meta)(meta)
        op.loop(loop)

    return statement(schema, given, register, {"of": of, **facts})


def statement(schema: str, given: Function | None, register: Callable[..., Any], facts: dict[str, Any]) -> Any:
    """Declares an operator whose kernels `register(op, function)` registers, by such facts."""
    if given is None:
        return lambda function: statement(schema, function, register, facts)
    return _declared(schema, given, register, **({"face": not given.__name__.endswith("_op")} | facts))


def _declared(
    schema: str,
    given: Function,
    register: Callable[..., Any],
    *,
    face: bool,
    of: type[Operator] = Operator,
    also: Sequence[Operator] = (),
    seeded: bool = False,
    understands: Sequence[str] = (),
    casts: bool = False,
    into: Function | None = None,
    derivative: Derivative = None,
    node: str | None = None,
    nondifferentiable: tuple[int, ...] = (),
    forward: Any = None,
    **facts: Any,
) -> Any:
    if seeded:
        facts["tags"] = (*facts.get("tags", ()), "nondeterministic_seeded")
    faces = {name: facts.pop(name) for name in FACES if name in facts}
    op = of(schema, **facts)
    register(op, given)
    if into is not None:
        op.kernel_out(IMPLICIT if register is Operator.implicit else EXPLICIT)(into)
    elif op.out is not None and not isinstance(op, Structured | Several):
        copy_into_out(op, casts=casts)
    written = "!" in op.text.text and "inplace_view" not in facts.get("tags", ())
    if register is Operator.implicit and op.text.shares_memory and not written:
        # the operators that it calls make the result a view, where it is one
        impl(op.functional, "ADInplaceOrView", fallthrough_kernel, convention="positional", place=op.place)
    op.understands(*understands)
    differentiate(op, derivative, node, nondifferentiable, forward)
    return public(op, *also, **faces) if face else op


def differentiate(
    op: Operator,
    derivative: Derivative,
    node: str | None = None,
    nondifferentiable: tuple[int, ...] = (),
    forward: Any = None,
) -> None:
    """Declares what a statement says of an operator's derivative."""
    if derivative is False:
        op.not_differentiable()
    elif derivative:
        by_name = derivative if isinstance(derivative, Mapping) else {op.names[0]: derivative}
        rules = [((names,) if isinstance(names, str) else names, formula) for names, formula in by_name.items()]
        op.differentiate_by(rules, node, nondifferentiable)
    if forward is not None:
        op.forward(forward)
