"""Operators on numbers, strings, lists and dicts, and what programs ask of tensors and devices.

They are TorchScript's own, stand beside the registry's under the same names (`aten::add` of two ints), and are chosen
by the same rule. Each is a schema; its function follows from the name and the first argument's type (`str.upper`,
`list.append`, `math.sqrt`) unless FUNCTIONS has it. Read next: overloads.py.
"""

from __future__ import annotations

import builtins
import cmath
import itertools
import math
import operator
import re
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from redispatch import autograd
from redispatch.dispatch.schema.convert import converter
from redispatch.dispatch.schema.parser import CONSTANTS, SCALAR_TYPES, parse_schema
from redispatch.dispatch.schema.schema import Argument, BaseType, FunctionSchema, ListType, TupleType, _format_float
from redispatch.dispatch.tensor import Tensor, device
from redispatch.kernels.ops.from_data import tensor

AS_DTYPE = converter(BaseType("ScalarType"))


class Builtin:
    """A schema and what computes it."""

    def __init__(self, text: str, function: Callable[..., Any]) -> None:
        self.text, self.function = text, function
        self._schema: FunctionSchema | None = None

    @property
    def schema(self) -> FunctionSchema:
        if self._schema is None:
            pairs = self.text.endswith(")[]")  # the language has no list of tuples as a result
            made = parse_schema(self.text[:-2] if pairs else self.text, allow_typevars=True)
            if pairs:
                row = ListType(TupleType(tuple(one.type for one in made.returns)))
                made = replace(made, returns=(Argument("", row),))
            self._schema = made
        return self._schema

    @property
    def qualified_name(self) -> str:
        return self.text.partition("(")[0]

    __call__ = property(lambda self: self.function)


# --- what they do -----------------------------------------------------------------------------------------------------


class Raised(Exception):
    """An exception that a program raised, on its way out."""


def raised(message: str, kind: str | None) -> None:
    raise Raised(f"{kind or 'RuntimeError'}: {message}")


def power(a: Any, b: Any) -> Any:
    """Returns a ** b, of two ints as a float: TorchScript's types cannot depend on the sign of b."""
    return float(a**b) if type(a) is int and type(b) is int else a**b


def whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a division of ints with PyTorch's words where the divisor is zero."""

    def divided(a: Any, b: Any) -> Any:
        if b == 0 and type(a) is type(b) is int:
            raise RuntimeError("division by 0")
        return function(a, b)

    return divided


def item_of(container: Any, key: Any) -> Any:
    if isinstance(container, dict) and key not in container:
        raise RuntimeError(f"KeyError: {shown_value(key)}")
    return container[key]


def number_of(value: Any) -> Any:
    """Returns PyTorch's number for a dtype, layout or memory format; a number is its own."""
    name = str(value).removeprefix("torch.")
    return value if type(value) is int else SCALAR_TYPES.get(name, CONSTANTS.get(name, name))


def range_length(lo: int, hi: int, step: int) -> int:
    if step == 0:
        raise RuntimeError("range() arg 3 must not be zero")
    return len(range(lo, hi, step))


def unwrapped(value: Any) -> Any:
    if value is None:
        raise AssertionError("Unwrapping null optional")
    return value


def changed(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that changes its first argument, and returns it."""

    def change(container: Any, *args: Any) -> Any:
        method(container, *args)
        return container

    return change


def as_dtype(value: Any) -> Any:
    """Returns the dtype of PyTorch's number; None and dtypes are what they are."""
    return AS_DTYPE(value) if type(value) is int else value


def as_tensor(data: Any, dtype: Any, device: Any) -> Tensor:
    if isinstance(data, Tensor):
        return data.to(dtype=data.dtype if dtype is None else as_dtype(dtype), device=device or data.device)
    return tensor(data, dtype=as_dtype(dtype), device=device)


def shown_value(value: Any) -> str:
    """Returns a value as `print` and `str` show it in TorchScript: `1.` for a float, strings without quotes."""
    if isinstance(value, float):
        return _format_float(value)
    if isinstance(value, complex):
        return f"{_format_float(value.real)}{'+' if value.imag >= 0 else ''}{_format_float(value.imag)}j"
    if isinstance(value, list):
        return f"[{', '.join(map(shown_value, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(shown_value, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{shown_value(key)}: {shown_value(one)}' for key, one in value.items())}}}"
    return str(value)


def formatted(text: str, *values: Any) -> str:
    """Puts values in the places of `{}`. Nothing else of `str.format` is read: a text could ask for any attribute."""
    parts = text.replace("{{", "\0").replace("}}", "\1").split("{}")
    if len(parts) - 1 > len(values):
        raise RuntimeError(f"Too few arguments for format string: {text}")
    shown = [*map(shown_value, values[: len(parts) - 1]), ""]
    return "".join(a + b for a, b in zip(parts, shown, strict=True)).replace("\0", "{").replace("\1", "}")


def percent_formatted(text: str, *values: Any) -> str:
    numbers = (isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    return text % tuple(one if plain else shown_value(one) for one, plain in zip(values, numbers, strict=True))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gamma": math.gamma, "div": operator.truediv, "pow": power, "pow.int_to_int": operator.pow,
    "floordiv": whole(operator.floordiv),
    "remainder": whole(operator.mod), "prim::abs": abs, "prim::min": min, "prim::max": max,
    "prim::max.int_float": lambda a, b: float(max(a, b)), "prim::max.float_int": lambda a, b: float(max(a, b)),
    "prim::min.int_float": lambda a, b: float(min(a, b)), "prim::min.float_int": lambda a, b: float(min(a, b)),
    "round.float": lambda a: float(round(a)), "round.int": float, "fabs": abs, "mathremainder": math.remainder,
    "Int": int, "Float": float, "Bool": bool, "Complex": complex,
    "IntImplicit": int, "FloatImplicit": float, "ComplexImplicit": complex, "ScalarImplicit": Tensor.item,
    "bitwise_not": operator.invert, "__not__": operator.not_, "prim::NumToTensor": tensor,
    "__range_length": range_length, "__derive_index": lambda index, start, step: start + index * step,
    "__is__": operator.is_, "__isnot__": operator.is_not, "__contains__": operator.contains,
    "__getitem__": item_of, "slice": lambda items, start, end, step: items[start:end:step],
    "_set_item": changed(operator.setitem), "append": changed(list.append), "add_": changed(list.extend),
    "Delete": operator.delitem, "sort": lambda items, reverse: items.sort(reverse=reverse),
    "sorted": lambda items, reverse: sorted(items, reverse=reverse),
    "keys": list, "values": lambda d: list(d.values()), "items": lambda d: list(d.items()),
    "pop.Dict": lambda d, key, *other: d.pop(key, *other) if other else d.pop(key) if key in d else item_of(d, key),
    "tensor": lambda data, dtype, device, grad: tensor(data, dtype=as_dtype(dtype), device=device, requires_grad=grad),
    "as_tensor": as_tensor, "device": device, "device.with_index": device, "numpy_T": lambda x: x.T,
    "is_tensor": lambda x: isinstance(x, Tensor),
    "to.prim_Device": lambda x, device, dtype, *how: x.to(device, as_dtype(dtype), *how),
    "to.prim_dtype": lambda x, dtype, *how: x.to(x.dtype if dtype is None else as_dtype(dtype), *how),
    "is_grad_enabled": autograd.is_grad_enabled, "set_grad_enabled": lambda on: autograd.set_grad_enabled(on) and None,
    "_unwrap_optional": unwrapped, "str": shown_value,
    "prim::EnumName": operator.attrgetter("name"),
    "wait": lambda future: future.wait(), "prim::RaiseException": raised, "format": formatted,
    "percentFormat": percent_formatted, "prim::Print": lambda *values: print(*map(shown_value, values)),
    "warn": lambda message, level: warnings.warn(message, stacklevel=5),
}  # fmt: skip

# --- their schemas ----------------------------------------------------------------------------------------------------
# A line is a family: several names have the same arguments; `int|float` is a type or another, for which each
# combination is an overload; `widest` is the widest of the arguments' types, `real` that or a float.

NUMBERS = """
add sub mul(int|float|complex a, int|float|complex b) -> widest
add sub mul(Scalar a, Scalar b) -> Scalar
div pow(int|float|complex a, int|float|complex b) -> real
div pow(Scalar a, Scalar b) -> Scalar
pow.int_to_int(int a, int b) -> int
floordiv remainder(int|float a, int|float b) -> widest
floordiv remainder(Scalar a, Scalar b) -> Scalar
eq ne(int|float|complex a, int|float|complex b) -> bool
lt gt le ge(int|float a, int|float b) -> bool
eq ne lt gt le ge(Scalar a, Scalar b) -> bool
eq ne lt gt le ge.str(str a, str b) -> bool
eq ne lt gt le ge.bool(bool a, bool b) -> bool
eq ne.Device(Device a, Device b) -> bool
eq ne lt gt le ge.list(t[] a, t[] b) -> bool
__and__ __or__ __xor__.bool(bool a, bool b) -> bool
__and__ __or__ __xor__ __lshift__ __rshift__.int(int a, int b) -> int
sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp log log10 sqrt(int|float a) -> float
sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp log log10 sqrt(complex a) -> complex
expm1 log2 log1p erf erfc gamma lgamma degrees radians fabs(int|float a) -> float
log.base(int|float a, int|float b) -> float
ceil floor(int|float a) -> int
isnan isinf isfinite(float|complex a) -> bool
atan2 fmod copysign mathremainder(int|float a, int|float b) -> float
gcd(int a, int b) -> int
factorial(int a) -> int
frexp(float a) -> (float, int)
modf(float a) -> (float, float)
ldexp(float x, int i) -> float
neg(int|float|complex|Scalar a) -> widest
__not__(bool self) -> bool
bitwise_not(int a) -> int
abs prim::abs(int|float a) -> widest
abs prim::abs(complex a) -> float
round(int|float a) -> float
round.digits(float a, int ndigits) -> float
divmod(int a, int b) -> (int, int)
divmod.float(float a, float b) -> (float, float)
Int(Tensor|bool|float|int|Scalar|str a) -> int
Float(Tensor|Scalar|int|bool|float|str a) -> float
Bool(Tensor|int|float|bool a) -> bool
Complex(Scalar|Tensor a) -> complex
Complex.parts(bool|int|float|Tensor a, bool|int|float|Tensor b) -> complex
IntImplicit(Tensor a) -> int
FloatImplicit(Tensor a) -> float
ComplexImplicit(Tensor a) -> complex
ScalarImplicit(Tensor a) -> Scalar
prim::NumToTensor(Scalar|bool a) -> Tensor
prim::min prim::max(int|float a, int|float b) -> widest
prim::min prim::max.self_int(int[] self) -> int
prim::min prim::max.self_float(float[] self) -> float
sum.int(int[] self) -> int
sum.float(float[] self) -> float
any all.bool(bool[] self) -> bool
any all.int(int[] self) -> bool
any all.float(float[] self) -> bool
__range_length(int lo, int hi, int step) -> int
__derive_index(int index, int start, int step) -> int
"""

STRINGS = """
isalnum isalpha isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper(str self) -> bool
capitalize casefold lower swapcase title upper(str self) -> str
strip lstrip rstrip(str self, str? chars=None) -> str
find rfind index rindex count.str(str self, str substr, int start=0, int? end=None) -> int
startswith endswith(str self, str substr, int start=0, int? end=None) -> bool
ljust rjust center(str self, int width, str fillchar=" ") -> str
partition rpartition(str self, str separator) -> (str, str, str)
add.str(str a, str b) -> str
mul.str(str a, int b) -> str
len.str(str s) -> int
ord(str string) -> int
chr(int i) -> str
hex oct.int(int i) -> str
bin(int i) -> str
__getitem__.str(str s, int index) -> str
slice.str(str string, int? start=None, int? end=None, int step=1) -> str
__contains__.str(str self, str item) -> bool
split rsplit.str(str self, str? separator=None, int max=-1) -> str[]
splitlines(str self, bool keepends=False) -> str[]
join(str self, str[] values) -> str
replace(str self, str old, str new, int max=-1) -> str
zfill(str self, int width) -> str
expandtabs(str self, int tabsize=8) -> str
list.str(str t) -> str[]
str(t elem) -> str
format percentFormat(str self, ...) -> str
prim::Print(...) -> ()
"""

CONTAINERS = """
add.t(t[] a, t[] b) -> t[]
add_.t(t[](a!) self, t[] b) -> t[](a!)
mul.left_t(t[] l, int n) -> t[]
mul.right_(int n, t[] l) -> t[]
len.t(t[] a) -> int
len.Tensor(Tensor t) -> int
len.Dict(Dict(u, t) self) -> int
append.t(t[](a!) self, t el) -> t[](a!)
extend.t(t[](a!) self, t[] other) -> ()
insert.t(t[](a!) self, int idx, t el) -> ()
remove.t(t[](a!) self, t el) -> ()
reverse clear.t(t[](a!) self) -> ()
copy.t(t[] self) -> t[]
index count.list(t[] self, t el) -> int
pop.t(t[](a!) self, int idx=-1) -> t
sort.any(t[](a!) self, bool reverse=False) -> ()
sorted.any(t[] input, *, bool reverse=False) -> t[]
list.t(t[] l) -> t[]
__getitem__.t(t[] list, int idx) -> t
__contains__.list(t[] l, t item) -> bool
slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]
_set_item.t(t[](a!) l, int idx, t el) -> t[](a!)
Delete.t(t[](a!) self, int idx) -> ()
Delete.Dict(Dict(u, t)(a!) self, u key) -> ()
__getitem__.Dict(Dict(u, t) self, u key) -> t
_set_item.Dict(Dict(u, t)(a!) l, u idx, t v) -> ()
__contains__.Dict(Dict(u, t) dict, u key) -> bool
keys(Dict(u, t) self) -> u[]
values(Dict(u, t) self) -> t[]
items(Dict(u, t) self) -> (u, t)[]
get(Dict(u, t) self, u key) -> t?
get.default(Dict(u, t) self, u key, t default_value) -> t
setdefault(Dict(u, t)(a!) self, u key, t default_value) -> t
pop.Dict(Dict(u, t)(a!) self, u key) -> t
pop.Dict_default(Dict(u, t)(a!) self, u key, t default_value) -> t
popitem(Dict(u, t)(a!) self) -> (u, t)
update(Dict(u, t)(a!) self, Dict(u, t) to_add) -> ()
clear.Dict(Dict(u, t)(a!) self) -> ()
copy.Dict(Dict(u, t) self) -> Dict(u, t)
dict(Dict(u, t) self) -> Dict(u, t)
dict.pairs((u, t)[] inputs) -> Dict(u, t)
list.Dict(Dict(u, t) self) -> u[]
__is__ __isnot__(t1 self, t2 obj) -> bool
hash.generic(t value) -> int
_unwrap_optional(t? optional) -> t
"""

TENSORS = """
float double half bfloat16 long int short bool cpu(Tensor self) -> Tensor
tensor(t data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor
as_tensor(t data, *, ScalarType? dtype=None, Device? device=None) -> Tensor
device(str a) -> Device
device.with_index(str type, int index) -> Device
to.prim_Device(Tensor self, Device? device, ScalarType? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor
to.prim_dtype(Tensor self, ScalarType? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor
is_tensor(t self) -> bool
__contains__.Tensor(Tensor self, t item) -> bool
backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False) -> ()
requires_grad_(Tensor self, bool requires_grad=True) -> Tensor
numpy_T(Tensor a) -> Tensor
prim::dtype(Tensor a) -> ScalarType
prim::device(Tensor a) -> Device
prim::layout(Tensor a) -> Layout
prim::itemsize prim::nbytes(Tensor a) -> int
prim::data(Tensor a) -> Tensor
prim::grad(Tensor a) -> Tensor?
prim::name(Tensor a) -> str?
prim::requires_grad prim::is_leaf prim::is_cuda prim::is_cpu prim::is_sparse prim::is_meta(Tensor a) -> bool
prim::is_quantized prim::is_mkldnn prim::is_xla prim::is_mps prim::is_nested prim::retains_grad(Tensor a) -> bool
prim::type(Device self) -> str
prim::EnumName(t enum) -> str
prim::index(Device self) -> int?
is_grad_enabled() -> bool
set_grad_enabled(bool val) -> ()
wait(Future(t) self) -> t
warn(str message, int stacklevel=2) -> ()
prim::RaiseException(str msg, str? cls=None) -> ()
"""

BUILTINS: dict[str, list[Builtin]] = {}  # "aten::add" -> its overloads, in the order in which they are tried
BY_NAME: dict[str, Builtin] = {}
WIDTH = ["bool", "int", "float", "complex", "Scalar"]
KEYS = ("str", "int", "bool", "float", "Tensor", "complex")  # of dicts: the language has no type variable there
LINE = re.compile(r"(.*?)(\.\w+)?\((.*)\) -> (.*)")


def function_of(name: str, overload: str, arguments: str) -> Callable[..., Any]:
    """Returns what an operator does: see the top."""
    for word in (f"{name}.{overload}", f"{name}.{overload.partition('_')[0]}", name):
        if word in FUNCTIONS:
            return FUNCTIONS[word]
    first, short = arguments.partition(" ")[0], name.removeprefix("prim::")
    if short != name:
        return operator.attrgetter(short)  # of a tensor or a device
    container = dict if first.startswith("Dict") else list if "[]" in first else None
    owner = {"str": str, "Tensor": Tensor, "complex": cmath}.get(first, container)
    return next(getattr(place, name) for place in (owner, operator, builtins, math) if hasattr(place, name))


def overloads_of(line: str) -> list[tuple[str, str, str, str]]:
    """Returns the overloads of a family, each as a name, the overload's name, arguments and results."""
    names, overload, arguments, result = LINE.fullmatch(line).groups()  # type: ignore[union-attr]  # each line is one
    choices = re.findall(r"\w+(?:\|\w+)+", arguments)
    template, made = re.sub(r"\w+(?:\|\w+)+", "{}", arguments), []
    for kinds in itertools.product(*(one.split("|") for one in choices)):
        widest = max((one for one in kinds if one in WIDTH), key=WIDTH.index, default="")
        returned = {"widest": widest, "real": max("float", widest, key=lambda w: WIDTH.index(w or "bool"))}
        word = "_".join(filter(None, [(overload or "")[1:], *dict.fromkeys(kinds)]))
        made.append((word, template.format(*kinds) if kinds else arguments, returned.get(result, result)))
    if re.search(r"\bu\b", arguments):  # a dict's keys
        made = [
            (f"{word}_{key}".lstrip("_"), re.sub(r"\bu\b", key, given), re.sub(r"\bu\b", key, returned))
            for word, given, returned in made
            for key in KEYS
        ]
    return [(name, *one) for name in names.split() for one in made]


def add(name: str, overload: str, arguments: str, result: str) -> None:
    full = name if "::" in name else f"aten::{name}"
    head = f"{full}.{overload}" if overload else full
    BY_NAME[head] = Builtin(f"{head}({arguments}) -> {result}", function_of(name, overload, arguments))
    BUILTINS.setdefault(full, []).append(BY_NAME[head])


for _line in filter(None, (NUMBERS + STRINGS + CONTAINERS + TENSORS).splitlines()):
    for _overload in overloads_of(_line):
        add(*_overload)
# Comparisons that types alone choose: those of enumerations, and of dtypes and the like, which may be numbers
ENUMS, CODES = (
    {
        f"aten::{one}": Builtin(f"aten::{one}.{word}(t1 a, t2 b) -> bool", function)
        for one, function in (("eq", equal), ("ne", lambda a, b, equal=equal: not equal(a, b)))
    }
    for word, equal in (("enum", operator.eq), ("ScalarType", lambda a, b: number_of(a) == number_of(b)))
)
