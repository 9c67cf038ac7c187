"""Declaring an operator in one statement, as users declare theirs (`redispatch.library.elementwise`).

    sin = unary("sin", kernels.sin, "float", cost=16, derivative=lambda grad, self: grad * self.cos())

    @operator("bump(Tensor self, Scalar height=1) -> Tensor", inplace=True, out="out", promotion="float")
    def bump(self, height):
        return height / (1 + self * self)

    @composite("outer(Tensor self, Tensor vec2) -> Tensor", out="out")
    def outer(self, vec2):
        return self.unsqueeze(1) * vec2

    unary, binary, operator   pointwise, by what is computed for one element: a function written in Python, one of
                              kernels/maths, whose parameters stand for the schema's arguments in their order, or a dict
                              of functions by the kind of dtype
    composite                 by a function in other operators
    kernel, leaf_kernel       by a kernel for some backends, or for all; by one for the CPU and the meta device
    over_a_copy               by such a kernel that writes into its argument
    structured, planned       by its meta function, which a body or loop below fills (structured.py, planned.py); and
    several, planned_several  the same for several results
    per_element               the first for a result that is computed element by element

All else is a fact beside it:

    promotion, refuses, exact_out, keep, cost    what is computed and stored in which dtype     pointwise.py
    inplace, out, late_out, numbers              the forms                                      declare.py
    core, batching, autocast, tags, understands  what is true of the operator                   declare.py
    derivative, node, for_complex, forward       the gradient of each tensor                    declare.py
    relies                                       the shapes that its kernel trusts               relies.py
    doc                                          what it does; of a decorated function its docstring
    function, method, module                     its public faces: `redispatch.sin`, `x.sin()`  public.py
    also                                         overloads declared before, under the same face

`derivative` is a formula in tensor operators (for several tensors a dict of them by name), False where no gradient
flows, or, of a pointwise operator, True: derived from the function. Where PyTorch has an operator that computes the
gradient, `backward` declares that, and with it the derivative of both. A statement gives the public function; its `op`
is the operator, for those that call it by its forms and for what one statement cannot say: more scalar functions
(`op.scalar(when=...)`), checks of values, kernels of other forms, long formulas (`op.gradient`). Read next:
pointwise.py, from_scalar.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from redispatch.dispatch import OpOverload, impl
from redispatch.dispatch.autograd import pulled_back
from redispatch.dispatch.tensor import Tensor

from .declare import LEAF_KEYS, Derivative, Function, Operator, handing_on, taking, through
from .from_scalar import derived
from .out_forms import copy_into_out, resize_and_copy_into_out
from .planned import Planned, PlannedSeveral
from .pointwise import NOT_FLOATING, Pointwise
from .public import public
from .structured import PerElement, Several, Structured

Body = Function | Mapping[str, Function]
FACE = ("function", "method", "module", "name", "function_like", "method_like", "also")
SEEDED = ("nondeterministic_seeded",)  # the tags of an operator that draws random numbers
LAZY = ("Conjugate", "Negative", "ZeroTensor")  # for `understands`
IMPLICIT, EXPLICIT = "CompositeImplicitAutograd", "CompositeExplicitAutograd"


# Autocast's policies by type of device.
LOWER = {"cpu": "lower_precision_fp", "cuda": "lower_precision_fp"}
CPU_FP32, CUDA_FP32, CUDA_PROMOTE = {"cpu": "fp32"}, {"cuda": "fp32"}, {"cuda": "promote"}
FP32 = CPU_FP32 | CUDA_FP32
CPU_LOWER, CUDA_LOWER = {"cpu": "lower_precision_fp"}, {"cuda": "lower_precision_fp"}
CUDA_SET_DTYPE = {"cuda": "fp32_set_opt_dtype"}


def flat(grad: Any) -> Any:
    """The formula of a derivative that is 0 nearly everywhere."""
    return grad * 0


def passed_on(grad: Any) -> Any:
    """The formula of a derivative that is 1."""
    return grad


def operator(schema: str, body: Body | None = None, **facts: Any) -> Any:
    """Declares a pointwise operator and returns its public function; a decorator, where `body` is not given.

    Facts, here and below, are those of the operator (the head of this file) and of its public function: `function`,
    `method`, `module`, as in `public`. With face=False there is none, and the operator itself is returned; of other
    than pointwise operators only those have one by default whose name has no overload and no underscore in front.
    """
    if body is None:
        return lambda given: operator(schema, given, **({"doc": given.__doc__ or ""} | facts))
    face = _face(facts, True)
    return face(pointwise(schema, body, **facts))


def composite(schema: str, *, out_by: Function | None = resize_and_copy_into_out, **facts: Any) -> Any:
    """A decorator that declares an operator by a function in other operators, from which its derivative follows.

    out_by: what gives the out= form its kernel (out_forms.py), if it is declared with one; None if that stands below.
    """
    return kernel(schema, IMPLICIT, out_by=out_by, **facts)


def kernel(
    schema: str, *keys: str, dispatches: bool = False, out_by: Function | None = copy_into_out, **facts: Any
) -> Any:
    """A decorator that declares an operator by its kernel at these keys; for every backend, where none is named."""
    face = _face(facts, has_face(schema))
    op = Operator(schema, **facts)

    def declare(function: Function) -> Any:
        if keys == (IMPLICIT,):
            op.implicit(function)
        else:
            op.kernel(*(keys or (EXPLICIT,)), dispatches=dispatches)(function)
        if op.out is not None and out_by is not None:
            out_by(op)
        return face(op)

    return declare


def leaf_kernel(schema: str, **facts: Any) -> Any:
    """A decorator that declares an operator by one kernel for the CPU and the meta device, which makes its result."""
    return kernel(schema, *LEAF_KEYS, **facts)


def over_a_copy(schema: str, copy: Callable[..., Tensor], *, dispatches: bool = False, **facts: Any) -> Any:
    """A decorator that declares an operator by its in-place form's kernel; the other writes into `copy(self, ...)`."""
    face = _face(facts, has_face(schema))
    op = Operator(schema, inplace=True, **facts)

    def declare(inplace: Function) -> Any:
        def functional(self: Tensor, *args: Any) -> Tensor:
            return inplace(copy(self, *args), *args)

        functional.__name__, functional.__doc__ = inplace.__name__, inplace.__doc__
        op.kernel_inplace(*LEAF_KEYS, dispatches=dispatches)(inplace)
        op.kernel(*LEAF_KEYS, dispatches=dispatches)(functional)
        return face(op)

    return declare


def structured(schema: str, kind: Any = Structured, *, body: Function | None = None, **facts: Any) -> Any:
    """A decorator that declares a structured operator by its meta function; what fills the result follows below, or
    is this `body`."""
    face = _face(facts, has_face(schema))
    op = kind(schema, **facts)

    def declare(meta: Function) -> Any:
        op.meta(meta)
        op.doc = op.doc or meta.__doc__ or ""
        if body is not None:
            op.body(body)
        return face(op)

    return declare


planned = partial(structured, kind=Planned)
several = partial(structured, kind=Several)
planned_several = partial(structured, kind=PlannedSeveral)
per_element = partial(structured, kind=PerElement)


def has_face(schema: str) -> bool:
    """Whether an operator has a public function of its own: not by default, if its name begins with an underscore, or
    if it is an overload, which `public` joins with others."""
    return not schema.startswith("_") and "." not in schema.partition("(")[0]


def _face(facts: dict[str, Any], default: bool) -> Function:
    """Takes out of the facts those of the public function, and returns what makes that of an operator."""
    own = {name: facts.pop(name) for name in FACE if name in facts}
    also = own.pop("also", ())
    wanted = facts.pop("face", default or bool(own or also)) and (own.get("function", True) or own.get("method", True))
    return (lambda op: public(op, *also, **own)) if wanted else lambda op: op


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
    **facts: Any,
) -> Pointwise:
    """Declares a pointwise operator without a public face.

    when: the values of arguments for which `body` serves; `op.scalar` adds what serves otherwise.
    """
    op = Pointwise(schema, derivative=None if derivative is True else derivative, node=node, **facts)
    if isinstance(body, Mapping):
        op.scalar(when=when, **body)
    elif body is not None:
        op.scalar(body, when=when)
    if derivative is True:
        assert callable(body), f"{schema}: a derivative is derived of one scalar function"
        op.differentiate_by(derived(op, body), node)
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


def with_number(of: Any, schema: str, *, inplace: bool = True, **facts: Any) -> Operator:
    """Declares an overload that has a number in the place of a tensor, and hands it down to the operator `of`.

    Core ATen's programs and backends call them; a Python call ends in the operator for tensors.
    """
    of = getattr(of, "op", of)
    op = Operator(schema, inplace=inplace, **({"tags": ("pointwise",), "refuses": of.refuses} | facts))
    for form, target in ((op.functional, of.functional), (op.inplace, of.inplace)):
        if form is not None and target is not None:
            _kernel(op, form, EXPLICIT, handing_on(target, of.text))
    return op


def with_arguments(schema: str, of: Any, *given: Any, **facts: Any) -> Operator:
    """Declares an operator that is another one with these arguments behind the first: relu6 is hardtanh(x, 0, 6)."""
    of = getattr(of, "op", of)
    op = Operator(schema, **({"tags": ("pointwise",), "refuses": of.refuses} | facts))
    for form, target in ((op.functional, of.functional), (op.inplace, of.inplace)):
        if form is not None:
            _kernel(op, form, IMPLICIT, lambda self, target=target: target(self, *given))
    if op.out is not None:
        _kernel(op, op.out, IMPLICIT, lambda self, out: of.out(self, *given, out=out))
    return op


def same_as(schema: str, of: Any, order: Sequence[int] = (), **facts: Any) -> Any:
    """Declares an operator that is another one under a second name; it, and its out= form, call that with its own
    arguments, in this order, and returns its public function."""
    of, face = getattr(of, "op", of), _face(facts, has_face(schema))
    op = Operator(schema, **({"refuses": of.refuses, "doc": of.doc} | facts))
    op.leaves_views_to_others()
    count = of.text.arguments.index("*") if "*" in of.text.arguments else len(of.names)

    def handed(form: Any, args: Sequence[Any], **out: Any) -> Any:
        given = [args[i] for i in order] if order else args
        return form(*given[:count], **dict(zip(of.names[count:], given[count:], strict=False)), **out)

    if order or count < len(of.names):
        _kernel(op, op.functional, IMPLICIT, lambda *args: handed(of.functional, args))
    else:  # as of most: the specialiser reads it
        _kernel(op, op.functional, IMPLICIT, lambda *args: of.functional(*args))
    if op.out is not None:
        _kernel(op, op.out, IMPLICIT, lambda *args: handed(of.out, args[:-1], out=args[-1]))
    return face(op)


def _kernel(op: Operator, form: OpOverload, key: str, function: Function) -> None:
    """Registers a kernel that was made here under the operator's name, at the line that declares it."""
    impl(form, key, function, convention="positional", place=op.place, name=op.base_name)


def in_parts(op: Operator, *inputs: str, nondifferentiable: tuple[int, ...] = ()) -> Callable[[Function], Function]:
    """Makes the decorated function, which calls other operators, the kernel of `op` for every backend: a mode and
    autograd see one operator, whose derivative is that of its parts (dispatch/autograd/grad_level.py).

    A composite operator is seen by nobody but as its parts. This is for those that PyTorch gives kernels, because to
    fuse them is what they are there for.

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

            found = pulled_back(again, [arguments[place] for place in places], given if several else [given], needs)
            return found if len(places) > 1 else found[0]

        op.explicit(function)
        op.derivative((inputs, gradients), nondifferentiable=nondifferentiable)
        return function

    return register
