"""Declaring a pointwise operator in one statement, as users declare theirs (`redispatch.library.elementwise`).

    sin = unary("sin", kernels.sin, "float", cost=16, derivative=lambda grad, self: grad * self.cos())

    @operator("bump(Tensor self, Scalar height=1) -> Tensor", inplace=True, out="out", promotion="float")
    def bump(self, height):
        return height / (1 + self * self)

What is computed for one element is a function written in Python, a function of kernels/maths, whose parameters stand
for the schema's arguments in their order, or a dict of functions by the kind of dtype. All else is a fact beside it:

    promotion, refuses, exact_out, keep, cost    what is computed and stored in which dtype     pointwise.py
    inplace, out, late_out, numbers              the forms                                      declare.py
    core, batching, autocast, tags               what is true of the operator                   declare.py
    doc                                          what it does; in a decorated function its docstring
    derivative, node, for_complex                the gradient of each tensor
    function, method, module                     its public faces: `redispatch.sin`, `x.sin()`  public.py

`derivative` is a formula in tensor operators (for several tensors a dict of them by name), False where no gradient
flows, or True: derived from the function. Where PyTorch has an operator that computes the gradient, `backward` declares
that, and with it the derivative of both. A statement gives the public function; its `op` is the `Pointwise` operator,
for those that call it by its forms and for what one statement cannot say: more scalar functions
(`op.scalar(when=...)`), checks of values. Read next: pointwise.py, from_scalar.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redispatch.dispatch import OpOverload, impl

from .declare import Function, Operator, handing_on, through
from .from_scalar import derived
from .pointwise import NOT_FLOATING, Pointwise
from .public import public

Body = Function | Mapping[str, Function]
Derivative = Function | Mapping[str, Function] | bool | None


def flat(grad: Any) -> Any:
    """The formula of a derivative that is 0 nearly everywhere."""
    return grad * 0


def passed_on(grad: Any) -> Any:
    """The formula of a derivative that is 1."""
    return grad


def operator(
    schema: str,
    body: Body | None = None,
    *,
    function: bool = True,
    method: bool = True,
    module: str = "",
    **facts: Any,
) -> Any:
    """Declares a pointwise operator and returns its public function; a decorator, where `body` is not given.

    function, method: whether there is `redispatch.name`, and `Tensor.name`; without either, returns the `Pointwise`
    operator. module: the function's, as in `public`. For the facts see the head of this file.
    """
    if body is None:

        def decorated(given: Function) -> Any:
            said: dict[str, Any] = {"doc": given.__doc__ or ""}
            return operator(schema, given, function=function, method=method, module=module, **(said | facts))

        return decorated
    op = pointwise(schema, body, **facts)
    if not (function or method):
        return op
    return public(op, function=function, method=method, module=module)


def unary(name: str, body: Body | str | None = None, promotion: str = "same", **facts: Any) -> Any:
    """Declares `name(Tensor self) -> Tensor` with its in-place and out= forms; see `operator`."""
    return _with_forms(f"{name}(Tensor self) -> Tensor", body, promotion, facts)


def binary(name: str, body: Body | str | None = None, promotion: str = "same", **facts: Any) -> Any:
    """Declares `name(Tensor self, Tensor other) -> Tensor` with its in-place and out= forms; see `operator`."""
    return _with_forms(f"{name}(Tensor self, Tensor other) -> Tensor", body, promotion, facts)


def _with_forms(schema: str, body: Body | str | None, promotion: str, facts: dict[str, Any]) -> Any:
    all_facts: dict[str, Any] = {"inplace": True, "out": "out", "promotion": promotion} | facts
    if isinstance(body, str):  # a decorator, whose promotion stands where the function would
        return operator(schema, **(all_facts | {"promotion": body}))
    return operator(schema, body, **all_facts)


def pointwise(
    schema: str,
    body: Body | None = None,
    *,
    when: dict[str, Any] | None = None,
    derivative: Derivative = None,
    node: str | None = None,
    for_complex: bool = False,
    **facts: Any,
) -> Pointwise:
    """Declares a pointwise operator without a public face.

    when: the values of arguments for which `body` serves; `op.scalar` adds what serves otherwise.
    """
    op = Pointwise(schema, **facts)
    if isinstance(body, Mapping):
        op.scalar(when=when, **body)
    elif body is not None:
        op.scalar(body, when=when)
    if derivative is True:
        assert callable(body), f"{schema}: a derivative is derived of one scalar function"
        op.differentiate_by(derived(op, body), node)
    elif derivative is False:
        op.not_differentiable()
    elif derivative is not None:
        by_name = derivative if isinstance(derivative, Mapping) else {op.names[op.tensors[0]]: derivative}
        rules = [((name,), formula) for name, formula in by_name.items()]
        op.differentiate_by(rules, node, for_complex=for_complex)
    return op


def backward(
    of: Any,
    schema: str,
    slope: Body | None = None,
    *,
    saves: Sequence[str] = (),
    second: Function | Mapping[str, Function] = flat,
    node: str | None = None,
    nondifferentiable: tuple[int, ...] = (),
    **facts: Any,
) -> Any:
    """Declares PyTorch's operator that computes the gradient of `of`, and with it the derivative of both.

    schema: the incoming gradient is its first argument.
    slope: what is computed for one element; a decorator, where it is not given.
    saves: what `of` hands on, in the order of the schema behind the incoming gradient; by default the same names.
    second: the formula of the slope's own derivative: by the second tensor, or by each but the first with its name.
        The operator is linear in the first, so that its derivative by that is the operator itself.
    node, nondifferentiable: of `of`, as in Operator.derivative.

    Unless facts say otherwise, it is computed in floating dtypes alone and has an out= form `grad_input`.
    """
    if slope is None:
        of_forward: dict[str, Any] = {"saves": saves, "node": node, "nondifferentiable": nondifferentiable}
        return lambda given: backward(of, schema, given, second=second, **of_forward, **facts)
    op = pointwise(schema, slope, **({"late_out": "grad_input", "refuses": NOT_FLOATING} | facts))
    incoming, *rest = op.names
    seconds = second if isinstance(second, Mapping) else {op.names[op.tensors[1]]: second}
    linear = ((incoming,), through(op, "grad", *rest))
    op.derivative(linear, *(((name,), formula) for name, formula in seconds.items()))
    forward: Operator = getattr(of, "op", of)
    gradient = through(op, "grad", *(saves or rest))
    forward.derivative(self=gradient, node=node, nondifferentiable=nondifferentiable)
    return op


def with_number(
    of: Any,
    schema: str,
    *,
    inplace: bool = True,
    derivative: Derivative = None,
    node: str | None = None,
    forward: str = "",
    **facts: Any,
) -> Operator:
    """Declares an overload that has a number in the place of a tensor, and hands it down to the operator `of`.

    Core ATen's programs and backends call them; a Python call ends in the operator for tensors.
    forward: how the tangent follows, where that is worth saying; see Operator.forward.
    """
    of = getattr(of, "op", of)
    op = Operator(schema, inplace=inplace, **({"tags": ("pointwise",), "refuses": of.refuses} | facts))
    for form, target in ((op.functional, of.functional), (op.inplace, of.inplace)):
        if form is not None and target is not None:
            _kernel(op, form, "CompositeExplicitAutograd", handing_on(target, of.text))
    if derivative is False:
        op.not_differentiable()
    elif callable(derivative):
        op.derivative(self=derivative, node=node)
    if forward:
        op.forward(forward)
    return op


def with_arguments(schema: str, of: Any, *given: Any, **facts: Any) -> Operator:
    """Declares an operator that is another one with these arguments behind the first: relu6 is hardtanh(x, 0, 6)."""
    of = getattr(of, "op", of)
    op = Operator(schema, **({"tags": ("pointwise",), "refuses": of.refuses} | facts))
    for form, target in ((op.functional, of.functional), (op.inplace, of.inplace)):
        if form is not None:
            _kernel(op, form, "CompositeImplicitAutograd", lambda self, target=target: target(self, *given))
    if op.out is not None:
        _kernel(op, op.out, "CompositeImplicitAutograd", lambda self, out: of.out(self, *given, out=out))
    return op


def _kernel(op: Operator, form: OpOverload, key: str, function: Function) -> None:
    """Registers a kernel that was made here under the operator's name, at the line that declares it."""
    impl(form, key, function, convention="positional", place=op.place, name=op.base_name)
