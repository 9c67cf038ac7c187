"""Operators from plain scalar functions: `redispatch.library.elementwise`.

    @elementwise("mylib::bump(Tensor x) -> Tensor")
    def bump(x):
        return 1 / (1 + x * x)

It is a `Pointwise` operator like the library's own. Its backward is one, too, `mylib::bump_backward(Tensor grad,
Tensor x) -> Tensor`: the gradient times the slope, in one compiled loop. The slope is given as a scalar function, or
follows from the function itself (scalar_functions.py); and so do the slope's own slopes, so that backward can be
differentiated as often as one likes. Each such operator is made when it is first needed. Read next:
scalar_functions.py, kernels/ops/from_fold.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from redispatch.dispatch import FunctionSchema, HasEntryPoint, Library, OpOverload, define, impl, place_of
from redispatch.dispatch.autograd import differentiable
from redispatch.dispatch.layers import ad_inplace_or_view, autocast
from redispatch.dispatch.schema.parser import parse_schema
from redispatch.dispatch.schema.text import SchemaText
from redispatch.dispatch.specialiser.annotations import frozen

from .custom_op import parse_name, same_definition
from .declare import Formula, Operator, node_name
from .pointwise import COMPLEX, Pointwise
from .public import public
from .scalar_functions import (
    Function,
    ScalarFunction,
    ScalarFunctionError,
    compiled,
    cost_of,
    function_of,
    is_ours,
    slope,
)
from .structured import Structured

NUMBERS = {"float": "float", "int": "int", "bool": "bool", "number": "Scalar"}  # how schemas write types of numbers
POLICIES = ("lower_precision_fp", "fp32", "promote")
PROMOTIONS = ("same", "float", "compare")
NAMES_TAKEN = ("grad", "result", "needs", "out")  # which mean something in formulas and schemas

Rule = tuple[tuple[str, ...], Function]  # the tensors, and the formula that gives their gradients
Derivative = Function | Mapping[str, Function | None] | Sequence[Function | None] | bool | None
DEFINED: dict[str, FromScalar] = {}  # by qualified name


def elementwise(
    schema: str,
    function: Function | None = None,
    /,
    *,
    derivative: Derivative = None,
    promotion: str = "float",
    autocast: str | Mapping[str, str] | None = None,
    cost: int | None = None,
    lib: Library | None = None,
) -> Any:
    """Makes an operator of a function of one element; a decorator where `function` is not given.

    schema: "mylib::bump(Tensor x, float height=1.0) -> Tensor". Tensors are broadcast against each other and come as
        their elements; float, int and bool arguments come as they are. The function has the same parameters.
    derivative: None has it derived from the function. Otherwise for each tensor, by its name or in their order (or
        alone, for the only one): a scalar function of arguments and, if it likes, of `result`, that gives the slope; or
        a formula in tensor operators, whose first parameter is `grad`; or None. A tensor that is left out may not
        require grad. False: no gradient flows through.
    promotion: "float" computes integers in the default float dtype, "same" in their own (so that a number of 2.5 is
        refused beside them), "compare" stores bools.
    autocast: a policy ("fp32", "lower_precision_fp", "promote"), for all devices or by device type.
    cost: of one element, where 1 is x + y and 8 exp(x): decides from which size on several threads are worth it. None
        has it estimated from the function's text, as that of slopes always is.
    lib: the library whose end is also the operator's end. Without one it lasts until `.remove()`.

    Nothing is compiled before the operator is first called. Complex numbers are refused.
    Errors: TypeError for a schema that is not elementwise, options of other types, parameters that do not match, and
    (ScalarFunctionError, with the line) Python that has no meaning for one element; RegistrationError where the name is
    taken.

    >>> import redispatch as rd
    >>> from redispatch.library import elementwise
    >>> @elementwise("doc::hill(Tensor x) -> Tensor")
    ... def hill(x):
    ...     return 1 / (1 + x * x)
    >>> hill(rd.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5000])
    """

    check_text("elementwise", schema, "mylib::bump(Tensor x) -> Tensor")

    def make(function: Function) -> FromScalar:
        parsed = checked_schema(schema)
        read = ScalarFunction(function)
        check_parameters(read, parsed)
        check_cost(cost)
        check_word("promotion", promotion, PROMOTIONS)
        slopes = slopes_of(function, parsed, derivative if promotion != "compare" else derivative or False)
        op = FromScalar(parsed, function, lib)
        try:
            options: dict[str, Any] = {"inplace": True, "out": "out", "promotion": promotion}
            options["cost"] = cost or cost_of(function)
            return op.finish(Elementwise(op.library, parsed, function, slopes, **options), autocast, slopes is not None)
        except BaseException:
            op.remove()
            raise

    return make if function is None else make(function)


class FromScalar(HasEntryPoint):
    """An operator made from scalar functions: call it.

    Fields: `function`, as it was written; `op`, `inplace` and `out`, the dispatcher's operators (None where it has no
    such form); `qualname`, "mylib::bump"; `differentiable`; `fold`, what a reduction makes of numbers.
    """

    fold: Callable[[Sequence[float]], float] | None = None

    def __init__(self, schema: FunctionSchema, function: Function, lib: Library | None) -> None:
        self.function, self.qualname = function, schema.name
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__
        former = DEFINED.get(self.qualname)
        if former is not None and same_definition(former.function, function):
            former.remove()  # a notebook's cell that is run again
        self.library = Library(parse_name(schema.name)[0], "FRAGMENT")
        if lib is not None:
            lib.undo_with(self.remove)

    def finish(self, operator: Operator, policies: str | Mapping[str, str] | None, differentiable: bool) -> FromScalar:
        """Gives the handle its operator, the public function and the autocast policies."""
        self.op, self.inplace, self.out = operator.functional, operator.inplace, operator.out
        self.differentiable = differentiable
        self.__call__ = public(operator, method=False)
        for device, policy in policies_by_device(policies).items():
            check_word("autocast", policy, POLICIES)
            self.library.undo_with(autocast.register_policy(self.op, device, getattr(autocast, policy)))
        DEFINED[self.qualname] = self
        return self

    def remove(self) -> None:
        """Removes the operator with all that belongs to it; its name is free again."""
        self.library._destroy()
        if DEFINED.get(self.qualname) is self:
            del DEFINED[self.qualname]

    def __reduce__(self) -> tuple[Any, ...]:
        return defined, (self.qualname, self.__module__)  # an operator is pickled by its name

    def __repr__(self) -> str:
        return f"<operator {self.qualname} from {self.function.__qualname__}, {place_of(self.function)}>"


def defined(qualname: str, module: str) -> FromScalar:
    """The operator of this name. RuntimeError where none was made, although the module it came from is imported."""
    if qualname not in DEFINED and module != "__main__":
        import_module(module)
    if qualname not in DEFINED:
        raise RuntimeError(
            f"there is no operator {qualname} in this process: run what declares it in {module}, then load"
        )
    return DEFINED[qualname]


# --- the operators ----------------------------------------------------------------------------------------------------


class Removable(Structured):
    """A structured operator of a library: whatever it registers ends with that."""

    def __init__(self, library: Library, schema: str, **options: Any) -> None:
        self.library = library
        namespace, _, rest = schema.partition("::")
        super().__init__(rest, namespace=namespace, **options)

    def _define(self, text: SchemaText, numbers: bool, tags: tuple[str, ...]) -> OpOverload:
        form = (text.kind,) if text.kind in ("inplace", "out") else ()
        op, undo = define(text, dict.fromkeys((*tags, *form)), self.place)
        self.library.undo_with(undo)
        if text.shares_memory:
            self.library.undo_with(ad_inplace_or_view.track_aliases(op))
        return op

    def _register(self, key: str, kind: str, *kernels: Function, dispatches: bool = False) -> None:
        for op, kernel in zip((self.functional, self.inplace, self.out), kernels, strict=True):
            if op is not None:
                name = f"{kind} {self.base_name}"
                undo = impl(op, key, kernel, convention="positional", place=self.place, name=name)
                self.library.undo_with(undo)

    def differentiate(self, rules: Iterable[Rule] | None) -> None:
        """Declares the derivative; `rules` are asked for when it is first needed. None: there is none."""
        for form in (self.functional, self.inplace):
            if form is not None:
                undo = differentiable(
                    form,
                    node_name(form._opname),
                    [] if rules is None else rules,
                    nondifferentiable_outputs=None if rules is None else (),
                    place=self.place,
                    later=True,
                    pointwise=self.elementwise,
                )
                self.library.undo_with(undo)


@frozen
class Elementwise(Removable, Pointwise):
    """A pointwise operator of a scalar function.

    slopes: for each tensor that has a gradient, by its name, a scalar function, a formula of `grad`, or None: derived.
    linear: whether it is linear in its first argument, as a backward is: then its slope by that needs no operator.
    """

    def __init__(
        self,
        library: Library,
        schema: FunctionSchema,
        function: Function,
        slopes: Mapping[str, Function | None] | None,
        *,
        linear: bool = False,
        **options: Any,
    ) -> None:
        name = schema.name.partition("::")[2]
        super().__init__(library, str(schema), refuses={COMPLEX: name}, **options)
        self.function, self.slopes, self.parsed, self.linear = function, slopes, schema, linear
        self.number_places = [
            i for i, one in enumerate(schema.arguments) if NUMBERS.get(str(one.type)) in ("float", "Scalar")
        ]
        if self.promotion == "compare":
            self._operands = sorted({*self._operands, *self.number_places})  # 2 < 2.5 is no question of whole numbers
        self.scalar(compiled(function))
        if not linear and any(
            self.promotion == "same" or str(schema.arguments[i].type) == "number" for i in self.number_places
        ):
            self.check_numbers(self.check_values_of_numbers)
        self.differentiate(None if slopes is None else Rules(self.rule_by_tensor))

    def check_values_of_numbers(self, *args: Any) -> None:
        """TypeError for a complex number; RuntimeError for one that would lose its fraction beside whole tensors."""
        for i in self.number_places:
            value = args[i]
            if isinstance(value, complex):
                raise TypeError(f"{self.base_name}(): argument {self.names[i]!r} must be a real number, got {value}")
            if self.promotion == "same" and isinstance(value, float) and not value.is_integer():
                common = self._dtypes(args)[0]
                if not common.is_floating_point:
                    raise RuntimeError(
                        f"{self.base_name}(): argument {self.names[i]!r} is {value}, and is computed with in "
                        f"{common}, the dtype of the tensors: "
                        'pass a whole number or floating tensors, or declare promotion="float"'
                    )

    def rule_by_tensor(self) -> list[Rule]:
        """The formulas of the derivative, for which operators are made where slopes are scalar functions."""
        return rules_by_tensor(self, self.library, self.parsed, self.function, self.slopes or {}, self.linear)


def derived(op: Pointwise, function: Function) -> Rules:
    """The formulas of an operator of the library's own, derived from its scalar function as a user's are."""

    def make() -> list[Rule]:
        named = function
        if is_ours(function):  # which has names of its own for its parameters
            names = ", ".join(op.names)
            text = f"def {op.base_name}({names}):\n    return function({names})"
            named = function_of(op.base_name, text, {"function": function}, place_of(function))
        slopes = dict.fromkeys(tensors_of(op.schema))
        return rules_by_tensor(op, Library(op.functional.namespace, "FRAGMENT"), op.schema, named, slopes)

    return Rules(make)


def rules_by_tensor(
    op: Pointwise,
    library: Library,
    schema: FunctionSchema,
    function: Function,
    slopes: Mapping[str, Function | None],
    linear: bool = False,
) -> list[Rule]:
    """The formulas of an operator's derivative: as they are given, or by operators made of scalar functions."""
    rules: list[Rule] = []
    for tensor, given in slopes.items():
        if linear and tensor == op.names[0]:
            rules.append(((tensor,), Formula(op.functional, ["grad", *op.names[1:]])))
            continue
        if given is not None and is_formula(given):
            rules.append(((tensor,), given))
            continue
        try:
            by = given or slope(function, tensor)
        except ScalarFunctionError as problem:
            rules.append(((tensor,), refusing(op.base_name, problem)))
            continue
        several = len(op.tensors) - linear > 1
        name = f"{op.base_name}_backward" + (f"_{tensor}" if several else "")
        rules.append(((tensor,), backward(library, schema, name, by)))
    return rules


class Rules:
    """Formulas that are made when somebody first reads them."""

    def __init__(self, make: Callable[[], Sequence[Rule]]) -> None:
        self.make = make
        self.made: Sequence[Rule] | None = None

    def __iter__(self) -> Iterator[Rule]:
        if self.made is None:
            self.made = self.make()
        return iter(self.made)


def backward(library: Library, schema: FunctionSchema, name: str, by: Function) -> Formula:
    """The formula `grad * by(...)`, computed by one operator, which is made for it and has a derivative itself."""
    parameters = ScalarFunction(by).parameters
    incoming, number = "grad_output", 2
    while incoming in parameters:
        incoming, number = f"grad_output{number}", number + 1
    types = {one.name: NUMBERS.get(str(one.type), "Tensor") for one in schema.arguments} | {"result": "Tensor"}
    arguments = ", ".join([f"Tensor {incoming}", *(f"{types[one]} {one}" for one in parameters)])
    namespace = schema.name.partition("::")[0]
    parsed = parse_schema(f"{namespace}::{name}({arguments}) -> Tensor")
    text = f"def {name}({', '.join([incoming, *parameters])}):\n    return {incoming} * slope({', '.join(parameters)})"
    body = function_of(name, text, {"slope": by}, place_of(by))
    slopes = dict.fromkeys(tensors_of(parsed))
    made = Elementwise(library, parsed, body, slopes, linear=True, promotion="same", cost=cost_of(by))
    return Formula(made.functional, ["grad", *parameters])


def refusing(name: str, problem: ScalarFunctionError) -> Function:
    """The formula of a slope that cannot be derived any further: backward says why."""

    def refuse(grad: Any) -> Any:
        raise NotImplementedError(f"{name} cannot be differentiated again: {problem}")

    return refuse


# --- reading what was passed ------------------------------------------------------------------------------------------


def checked_schema(text: str) -> FunctionSchema:
    """The schema of an elementwise operator. TypeError where it is none, ValueError without a namespace."""
    schema = parse_schema(text)
    parse_name(schema.name if not schema.overload_name else f"{schema.name}.{schema.overload_name}")
    wanted = "write 'mylib::name(Tensor x, float beta=1.0) -> Tensor': tensors, then numbers, and one tensor as result"
    if [str(one.type) for one in schema.returns] != ["Tensor"] or schema.is_mutable or schema.return_aliases[0]:
        raise TypeError(f"{text!r} is not elementwise, its result is not one new tensor; {wanted}")
    for argument in schema.arguments:
        if str(argument.type) not in ("Tensor", *NUMBERS):
            raise TypeError(f"{text!r} is not elementwise because of the argument `{argument}`; {wanted}")
        if argument.name in NAMES_TAKEN or argument.name.startswith("grad_output"):
            raise TypeError(
                f"{text!r}: formulas mean something else by {argument.name!r}; give the argument another name"
            )
    if not tensors_of(schema):
        raise TypeError(f"{text!r} is not elementwise, it takes no tensor; {wanted}")
    return schema


def tensors_of(schema: FunctionSchema) -> list[str]:
    """The names of the arguments that are tensors."""
    return [schema.arguments[i].name for i in schema.tensor_positions]


def check_parameters(function: ScalarFunction, schema: FunctionSchema) -> None:
    """TypeError unless a function's parameters are called as the schema's arguments."""
    names = [argument.name for argument in schema.arguments]
    if function.parameters != names:
        raise function.error(
            f"its parameters are ({', '.join(function.parameters)}), the schema's arguments ({', '.join(names)}): "
            f"write `def {function.name}({', '.join(names)})`, or change the schema",
            None,
        )


def slopes_of(function: Function, schema: FunctionSchema, derivative: Derivative) -> dict[str, Function | None] | None:
    """Returns what gives the derivative by each tensor, checked; None where there is none."""
    if derivative is False:
        return None
    tensors = tensors_of(schema)
    if derivative is None or derivative is True:
        return {name: slope(function, name) for name in tensors}
    if callable(derivative):
        if len(tensors) > 1:
            ways = ", ".join(f"{name!r}: ..." for name in tensors)
            raise TypeError(f"{schema.name} has the tensors {', '.join(tensors)}: pass derivative={{{ways}}}")
        derivative = {tensors[0]: derivative}
    derivative = derivative_by_name(derivative, tensors, schema)
    unknown = [name for name in derivative if name not in tensors]
    if unknown:
        raise TypeError(f"derivative= names {unknown[0]!r}; {schema.name} has the tensors {', '.join(tensors)}")
    names = [*(argument.name for argument in schema.arguments), "result"]
    for given in derivative.values():
        if given is not None:
            check_slope(given, names, schema)
    return {name: slope(function, name) if given is None else given for name, given in derivative.items()}


def derivative_by_name(given: Any, tensors: Sequence[str], schema: FunctionSchema) -> Mapping[str, Function | None]:
    """Returns what was passed as a derivative, by tensor. TypeError where it is nothing of the kind."""
    if isinstance(given, Mapping):
        return given
    if not isinstance(given, list | tuple):
        raise TypeError(
            f"{schema.name}: derivative= is a function, a dict of functions by the tensors' names, None or False; "
            f"got {given!r}"
        )
    if len(given) != len(tensors):
        raise TypeError(f"{schema.name}: derivative= has {len(given)} entries for the tensors {', '.join(tensors)}")
    return dict(zip(tensors, given, strict=True))


def check_slope(given: Any, names: Sequence[str], schema: FunctionSchema) -> None:
    """TypeError unless it is a formula of `grad`, or a scalar function of some of these."""
    if not callable(given):
        raise TypeError(
            f"{schema.name}: a derivative is a scalar function that gives the slope, or a formula in tensor operators, "
            f"`lambda grad, ...: ...`; got {given!r}"
        )
    if is_formula(given):
        return
    read = ScalarFunction(given)
    unknown = [name for name in read.parameters if name not in names]
    if unknown:
        raise read.error(
            f"the slope of {schema.name} has a parameter {unknown[0]!r}; it may have {', '.join(names)}; with `grad` "
            "first it is a formula in tensor operators",
            None,
        )


def is_formula(given: Function) -> bool:
    """Whether a derivative is a formula in tensor operators: its first parameter is `grad`."""
    return next(iter(inspect.signature(given).parameters), "") == "grad"


def policies_by_device(policies: str | Mapping[str, str] | None) -> dict[str, str]:
    if policies is None or isinstance(policies, Mapping):
        for device in policies or {}:
            check_word("autocast's device", device, tuple(autocast.KEY_OF_DEVICE))
        return dict(policies or {})
    return dict.fromkeys(autocast.KEY_OF_DEVICE, policies)


def check_word(option: str, word: str, words: Sequence[str]) -> None:
    if word not in words:
        raise ValueError(f"{option}={word!r}: expected {', '.join(map(repr, words[:-1]))} or {words[-1]!r}")


def check_text(decorator: str, schema: Any, example: str) -> None:
    """TypeError unless a decorator was given its schema: the function alone is what it is given without parentheses."""
    if not isinstance(schema, str):
        raise TypeError(f'@{decorator} takes a schema: write @{decorator}("{example}"); got {schema!r}')


def check_cost(cost: Any) -> None:
    if cost is not None and (not isinstance(cost, int) or cost < 1):
        raise TypeError(f"cost={cost!r}: expected a whole number from 1, where 1 is x + y and 8 is exp(x)")
