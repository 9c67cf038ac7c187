"""Declaring an operator: one place for its schema, shape rule, kernel, derivative and autocast policy.

    exp = unary("exp", kernels.exp, "float", core=True, derivative=lambda grad, result: grad * result)

is a pointwise operator in one statement (operator.py). An `Operator` is a schema with kernels written by hand. A
`Structured` one (structured.py) has a `meta`, which says what the result looks like, and a `body`, which fills it; the
in-place and `out=` forms and the meta device come from the same two. A `Planned` one (planned.py) remembers what is to
be done for arguments that look alike. A `Pointwise` one (pointwise.py) needs only what happens to one element.

Note [Facts stand at the operator]
Core ATen, the batching class, the dtypes that are refused, the out= forms that few programs need: each is said where
the operator is declared, and whoever wants the list of all asks `declarations()`.

Note [Kernels are leaves]
A kernel for the CPU or the meta device reads and writes memory, and asks nothing of the dispatch state but whether it
is inference mode. The specialiser relies on it: around a leaf it leaves out what layers set in the state. The few
such kernels that do call operators say so (`dispatches=True`). Kernels for every backend at once, composite ones, are
taken to call operators, unless they carry the mark `@leaf` themselves. `tests/op_db/test_leaves.py` holds all to it.

Read next: operator.py, structured.py, public.py.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from inspect import Parameter, Signature
from types import FrameType, MappingProxyType
from typing import Any

from redispatch.dispatch import (
    NUMBER_FOR_TENSOR,
    OPERATORS,
    FunctionSchema,
    OpOverload,
    Tag,
    call,
    define,
    fallthrough_kernel,
    impl,
    own_namespace,
    place_of,
)
from redispatch.dispatch.autograd import FORWARD, differentiable
from redispatch.dispatch.layers import ad_inplace_or_view, autocast, backend_select
from redispatch.dispatch.rules import is_own
from redispatch.dispatch.schema.text import SchemaText, head
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf

from .relies import Relied, relying

Function = Callable[..., Any]
Dtypes = str | tuple[str, ...]  # their names, in one string or in several
Refusals = Mapping[Any, str | Exception] | Dtypes  # of Dtypes; mypy takes no union for the keys of a dict
LateOut = bool | str | tuple[str, ...] | None
Derivative = Function | Mapping[Any, Function] | bool | None  # by the name of a tensor, or a tuple of names
LEAF_KEYS = ("CPU", "Meta")
DECLARED: dict[OpOverload, Operator] = {}  # who declared a form
REFUSED: dict[str, dict[str, str | Exception]] = {}  # what the first overload of a name refuses

# Words for several dtypes: `refuses="whole complex"`
SEVERAL: dict[str, tuple[str, ...]] = {
    "complex": ("complex32", "complex64", "complex128"),
    "whole": ("bool", "uint8", "int8", "int16", "int32", "int64"),
    "integers": ("uint8", "int8", "int16", "int32", "int64"),
    "halves": ("float16", "bfloat16"),
    "floating": ("float16", "bfloat16", "float32", "float64"),
}

own_namespace("aten")


@frozen
class Operator:
    """An operator of the namespace `aten`, with its in-place and out= forms where it has them.

    schema:  without namespace, of the functional form.
    inplace: whether `name_` exists; its overload name, where that is another one than the functional form's.
    out: the overload name of the out= form, or None.
    out_names: what it calls the tensors that it writes, where they are several and not called as the results are.
    numbers: whether a Python number may stand for a tensor argument.
    scratch: an argument that is written, of which no layer is to hear; see FunctionSchema.with_scratch.
    core: whether PyTorch counts the functional form among Core ATen, into which all others can be decomposed; "out" if
        the out= form, too. The designation is that of PyTorch 2.13 (`torch.Tag.core`).
    autocast: the policy by device type, {"cuda": "fp32"}.
    batching: its class for vmap (kernels/batching), where tags and schema do not tell: "pointwise", "losses".
    by_host: why the CPU computes it for a device, where it does (kernels/cuda/runtime/cpu_kernels.py).
    doc: what it does, in a sentence that begins with a verb (describe.py); by default the docstring of its kernel.
    late_out: whether it has an out= form that no Python function ends in, declared when it is looked for. Most have,
        unless they are written in others; where not, it says so: True or False; or gives the form's overload name where
        that is no usual one, or that and the names of its tensors (kernels/ops/late_out_forms.py).
    refuses: the dtypes that it is not computed in, "bool complex", and PyTorch's reason: the kernel's name in
        `"erf_vml_cpu" not implemented for 'Bool'`, or the exception. Dtypes alone: by the kernel `<name>_cpu`. A
        `Pointwise` operator raises it by itself, unless it is "": then a check does, or what it is written in. Of
        others it is known, and their kernels raise it; and it is the same as that of the first overload of their name,
        where they do not say otherwise.
    derivative: the formula of the gradient of the first tensor, or list of them, or a dict of formulas by names of
        tensors, one or several at once; False where no gradient flows. node, nondifferentiable, for_complex: as in
        `derivative()` below.
    forward: how the tangent follows; see `forward()`.
    understands: lazy bits that its kernels know what to do with, {"Conjugate"}.
    relies: the shapes and dtypes without which its kernels would read what is not theirs (relies.py).

    Fields, of the derivative that was declared: `rules` and `node`, for other operators that have the same. `alias_of`:
    the operator that has another name, too, which is this one's.
    """

    rules: Sequence[tuple[tuple[str, ...], Function]] = ()
    node = ""
    alias_of: Operator | None = None
    promotion: Any = ""
    elementwise = False  # whether each element of the result depends on one element of each argument alone

    def __init__(
        self,
        schema: str,
        *,
        inplace: bool | str = False,
        out: str | None = None,
        out_names: tuple[str, ...] = (),
        numbers: bool = False,
        tags: tuple[str, ...] = (),
        namespace: str = "aten",
        scratch: str = "",
        core: bool | str = False,
        autocast: Mapping[str, str] = MappingProxyType({}),
        batching: str = "",
        by_host: str = "",
        doc: str = "",
        late_out: LateOut = None,
        out_dtype: Function | None = None,
        refuses: Refusals | None = None,
        derivative: Derivative = None,
        node: str | None = None,
        nondifferentiable: tuple[int, ...] = (),
        for_complex: bool = False,
        forward: Any = None,
        understands: Sequence[str] = (),
        relies: str = "",
    ) -> None:
        self.relies = relies
        self.text = text = SchemaText(f"{namespace}::{schema}", scratch)
        self.place = declared_at()
        self.names = text.names
        self.batching, self.by_host, self.doc, self.late_out = batching, by_host, doc, late_out
        self.out_dtype = out_dtype
        if refuses is not None or self.elementwise:
            self.refuses = by_dtype(refuses or (), f"{text.name.rpartition(':')[2]}_cpu")
            REFUSED.setdefault(text.name, self.refuses)
        else:
            self.refuses = REFUSED.setdefault(text.name, {})
        self.functional = self._define(text, numbers, tags)
        other = inplace if isinstance(inplace, str) else None
        self.inplace = self._define(text.inplace(other), numbers, tags) if inplace else None
        self.out = self._define(text.out(out, out_names), numbers, tags) if out else None
        for form in (self.functional, self.out if core == "out" else None) if core else ():
            if form is not None:
                form.tags.append(Tag("core"))
        self.autocast(**autocast)
        self.understands(*understands)
        if derivative is False:
            self.not_differentiable()
        elif derivative is not None:
            first = text.names[next(iter(text.tensor_positions), 0)]  # or a list of tensors, as of `cat`
            by_name = derivative if isinstance(derivative, Mapping) else {first: derivative}
            rules = [((names,) if isinstance(names, str) else names, formula) for names, formula in by_name.items()]
            self.differentiate_by(rules, node, nondifferentiable, for_complex)
        if forward is not None:
            self.forward(forward)

    def _define(self, text: SchemaText, numbers: bool, tags: tuple[str, ...]) -> OpOverload:
        if numbers:
            NUMBER_FOR_TENSOR.add(text.name)
        form = (text.kind,) if text.kind in ("inplace", "out") else ()
        op, _ = define(text, dict.fromkeys((*tags, *form, "pt2_compliant_tag")), self.place)
        if text.shares_memory:
            ad_inplace_or_view.track_aliases(op)
        if text.is_factory:
            backend_select.select_backend(op)
        DECLARED[op] = self
        return op

    @property
    def schema(self) -> FunctionSchema:
        """The schema of the functional form."""
        return self.functional.schema

    @cached_property
    def relied(self) -> Relied:
        """The check of what it relies on."""
        return Relied(self.functional, self.relies)

    @property
    def base_name(self) -> str:
        """'add' for 'aten::add'."""
        return self.functional._opname

    @property
    def forms(self) -> list[OpOverload]:
        """The functional form, and the in-place and out= forms where there are any."""
        return [op for op in (self.functional, self.inplace, self.out) if op is not None]

    # Kernels: a plain function of the schema's arguments, by position --------------------------------------------

    def kernel(self, *keys: str, dispatches: bool = False) -> Callable[[Function], Function]:
        """Registers the decorated function as the kernel at these keys.

        On the CPU and the meta device a kernel calls no operator (Note [Kernels are leaves]), unless it `dispatches`.
        """

        def register(function: Function) -> Function:
            self.doc = self.doc or function.__doc__ or ""
            return _registering(self.functional, keys, dispatches)(relying(self, function))

        return register

    def kernel_inplace(self, *keys: str, dispatches: bool = False) -> Callable[[Function], Function]:
        """Registers the decorated function as the kernel of the in-place form at these keys."""
        assert self.inplace is not None, f"{self.schema} is declared without an in-place form"
        return _registering(self.inplace, keys, dispatches)

    def kernel_out(self, *keys: str, dispatches: bool = False) -> Callable[[Function], Function]:
        """Registers the decorated function as the kernel of the out= form at these keys."""
        assert self.out is not None, f"{self.schema} is declared without an out= form"
        return _registering(self.out, keys, dispatches)

    def explicit(self, function: Function) -> Function:
        """Registers one kernel for every backend, meta included; the derivative is declared apart."""
        return self.kernel("CompositeExplicitAutograd")(function)

    def implicit(self, function: Function) -> Function:
        """Registers a function written in other operators, from which everything, the derivative too, follows."""
        self.leaves_views_to_others()
        return self.kernel("CompositeImplicitAutograd")(function)

    def leaves_views_to_others(self) -> None:
        """Has the operators that it is written in make the result a view, where it is one."""
        if self.text.shares_memory and (self.text.kind == "functional" or Tag("inplace_view") in self.functional.tags):
            impl(self.functional, "ADInplaceOrView", fallthrough_kernel, convention="positional", place=self.place)

    def composite(self, form: OpOverload | None) -> Callable[[Function], Function]:
        """Registers such a function for one of the forms."""
        assert form is not None, f"{self.schema} is declared without that form"
        return _registering(form, ("CompositeImplicitAutograd",), False)

    def understands(self, *keys: str, form: OpOverload | None = None) -> None:
        """Has calls with these lazy bits come through to the kernel, which knows what to do with them: those of all
        forms, or of one."""
        for op in self.forms if form is None else (form,):
            for key in keys:
                impl(op, key, fallthrough_kernel, convention="positional", place=declared_at())

    # Rules for the layers ----------------------------------------------------------------------------------------

    def derivative(
        op,  # `self` is the name of most operators' first argument, so it must be free as a keyword
        /,
        *joint: tuple[tuple[str, ...], Function],
        node: str | None = None,
        nondifferentiable: tuple[int, ...] = (),
        for_complex: bool = False,
        **formulas: Function,
    ) -> None:
        """Declares the gradient of each input: `self=lambda grad, other: grad * other`.

        A formula's parameter names say what it needs and what is therefore saved: `grad`, `result`, any argument,
        `<argument>_shape`; see dispatch/autograd/derivative.py. `joint` formulas, `(("a", "b"), f)`, yield several
        inputs at once. `node` is the name of the node, by default MulBackward0 for mul; `nondifferentiable` outputs get
        none. Formulas are written as for real numbers, and what they give for complex ones follows, unless they are
        `for_complex` ones themselves; see dispatch/autograd/formulas.py.
        """
        rules = [((name,), formula) for name, formula in formulas.items()] + list(joint)
        op.differentiate_by(rules, node, nondifferentiable, for_complex)

    def differentiate_by(
        op,  # as in `derivative`
        rules: Any,
        node: str | None = None,
        nondifferentiable: tuple[int, ...] = (),
        for_complex: bool = False,
    ) -> None:
        """Declares the same by a sequence of (inputs, formula), which is read when the derivative is first needed."""
        op.rules, op.node, op.for_complex = rules, node or node_name(op.base_name), for_complex
        for form in (op.functional, op.inplace):
            if form is not None:
                differentiable(
                    form,
                    op.node,
                    rules,
                    nondifferentiable_outputs=nondifferentiable,
                    for_complex=for_complex,
                    place=declared_at(),
                    later=True,
                    pointwise=op.elementwise,
                )

    def gradient(self, *inputs: str, **how: Any) -> Callable[[Function], Function]:
        """Declares the decorated formula as the gradient of an input, or of several: then it gives as many."""

        def declare(formula: Function) -> Function:
            self.differentiate_by([(inputs, formula)], **how)
            return formula

        return declare

    def not_differentiable(self) -> None:
        """Declares that no gradient flows through: the result is recorded nowhere."""
        for form in (self.functional, self.inplace):
            if form is not None:
                name, place = node_name(form._opname), declared_at()
                differentiable(form, name, [], nondifferentiable_outputs=None, place=place, later=True)

    def forward(self, rule: Any) -> None:
        """Declares the tangent of the result: "linear", "multilinear", or a function of (arguments, tangents, result).

        Needed for speed alone: without it, the tangent follows from the derivative (dispatch/autograd/forward.py).
        """
        for form in (self.functional, self.inplace):
            if form is not None:
                FORWARD.add(form, rule, declared_at())

    def autocast(self, **policies: str) -> None:
        """Puts the functional form on the autocast lists: `autocast(cpu="lower_precision_fp", cuda="fp32")`."""
        for device, policy in policies.items():
            autocast.register_policy(self.functional, device, getattr(autocast, policy))


def declarations() -> Iterator[Operator]:
    """Yields the declaration of each operator of the library, as long as it is there."""
    for op, declared in DECLARED.items():
        if op is declared.functional and OPERATORS.get(op.qualified_name) is op:
            yield declared


def by_dtype(refuses: Refusals, kernel: str) -> dict[str, str | Exception]:
    """The reason for each dtype by its name, of those that are given for several at once, or for none but `kernel`."""
    reasons = refuses if isinstance(refuses, Mapping) else {refuses: kernel}
    return {
        name: reason
        for words, reason in reasons.items()
        for word in (words.split() if isinstance(words, str) else words)
        for name in SEVERAL.get(word, (word,))
    }


def no_formula(name: str) -> Function:
    """The formula of a derivative that nobody has worked out, in PyTorch either: backward says so."""

    def refuse(grad: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return refuse


def added(*gradients: Any) -> Any:
    """Adds those gradients that are there; None where none is."""
    there = [gradient for gradient in gradients if gradient is not None]
    return sum(there[1:], there[0]) if there else None


class Formula:
    """A function as a formula whose parameters have these names: it gets what they mean, by position."""

    def __init__(self, function: Function, parameters: Sequence[str]) -> None:
        self.function = function
        self.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in parameters])

    def __call__(self, *values: Any) -> Any:
        return self.function(*values)


class Through(Formula):
    """A formula that calls an operator, of which nothing is asked before: its file may be one that comes later."""

    def __init__(self, op: Operator, parameters: Sequence[str]) -> None:
        super().__init__(lambda *values: self._found()(*values), parameters)
        self._op = op

    def _found(self) -> Function:
        op = self._op
        self.function = handing_on(op.functional, op.text) if "*" in op.text.arguments else op.functional
        return self.function


def taking(*parameters: str) -> Callable[[Function], Formula]:
    """Makes a formula of the decorated function, which may gather what it hands on: `def gradient(grad, *how)`."""
    return lambda function: Formula(function, parameters)


def through(op: Operator, *parameters: str) -> Formula:
    """The formula that calls an operator with what these parameters mean: `through(op, "grad", "self", "dim")`."""
    return Through(op, parameters)


def handing_on(form: OpOverload, text: SchemaText) -> Function:
    """A function of positions that calls one of an operator's forms, whose schema may want some by their names."""
    arguments, names = text.arguments, text.names
    count = arguments.index("*") if "*" in arguments else len(names)
    if count == len(names):
        return lambda *values: form(*values)
    if count == len(names) - 1:  # as of most: no pairs to zip
        return lambda *values: form(*values[:count], **{names[count]: values[count]})
    return lambda *values: form(*values[:count], **dict(zip(names[count:], values[count:], strict=True)))


def _registering(op: OpOverload, keys: tuple[str, ...], dispatches: bool) -> Callable[[Function], Function]:
    def register(function: Function) -> Function:
        if not dispatches and not set(keys).isdisjoint(LEAF_KEYS):
            leaf(function)
        for key in keys:
            impl(op, key, function, convention="positional", place=place_of(function))
        return function

    return register


def declared_at() -> str:
    """Returns "file:line" of the statement that led here, past the files that only help to declare.

    Where that is in a function of the library, which makes a family, it is the statement that calls that.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_machinery(frame.f_code.co_filename):
        frame = frame.f_back
    outer: FrameType | None = frame
    while outer is not None and is_own(outer.f_code.co_filename) and outer.f_code.co_name != "<module>":
        outer = outer.f_back
    if outer is not None and is_own(outer.f_code.co_filename):
        frame = outer
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@cache
def _is_machinery(file: str) -> bool:
    return os.path.basename(file) in MACHINERY


MACHINERY = (
    "declare.py",
    "structured.py",
    "planned.py",
    "pointwise.py",
    "from_scalar.py",
    "from_fold.py",
    "operator.py",
)


def node_name(base_name: str) -> str:
    """The name of an operator's node: `MulBackward0`, `Log1PBackward0`, `LogSoftmaxBackward0` for `_log_softmax`."""
    return CAPITALS.sub(lambda found: found[1].upper(), base_name.strip("_")) + "Backward0"


CAPITALS = re.compile(r"(?:^|_|(?<=\d))([a-z]?)")  # the first letter of a word, and one behind a digit


def alias(
    name: str,
    of: Any,
    *,
    overload: str | None = None,
    inplace: bool = True,
    out: str | None = None,
    numbers: bool = False,
    tags: tuple[str, ...] = (),
) -> Operator:
    """A second name: the operator `name` with the arguments of another one, and its forms, which it calls.

    of: the other operator, or the public function of one that was declared in one statement.

    overload, out: the overload names, where they are others.
    inplace: whether it has the other one's in-place form, too.
    numbers: whether a Python number may stand for a tensor argument.
    """
    of = getattr(of, "op", of)
    arguments = of.text.text[of.text.text.index("(") :]
    named = head(name, of.text.overload_name if overload is None else overload)
    into = (out or of.out._overloadname) if of.out else None
    written = inplace and of.inplace is not None
    made = Operator(f"{named}{arguments}", inplace=written, out=into, numbers=numbers, tags=tags, refuses=of.refuses)
    made.alias_of = of
    targets = (of.functional, of.inplace if written else None, of.out)
    for form, target in zip((made.functional, made.inplace, made.out), targets, strict=True):
        if form is not None and target is not None:
            made.composite(form)(calling(target))
    return made


def calling(target: OpOverload) -> Function:
    """A kernel that hands its arguments on."""

    @inline
    def handed_on(*args: Any) -> Any:
        return call(target, [*args])

    return handed_on
