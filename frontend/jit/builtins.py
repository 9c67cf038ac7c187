"""Operators on numbers, strings, lists and dicts: those that no tensor is needed for.

Each is a schema and a Python function. They are TorchScript's own, stand beside the registry's under the same names
(`aten::add` of two ints), and are chosen by the same rule. Read next: overloads.py.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from redispatch.dispatch.schema.parser import parse_schema
from redispatch.dispatch.schema.schema import Argument, FunctionSchema, ListType, TupleType, _format_float
from redispatch.dispatch.tensor import Tensor, device
from redispatch.kernels.ops.from_data import tensor


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


BUILTINS: dict[str, list[Builtin]] = {}  # "aten::add" -> its overloads, in the order in which they are tried
BY_NAME: dict[str, Builtin] = {}


def rows(table: str, functions: dict[str, Any]) -> None:
    """Adds overloads: a line each, a schema without "aten::"; the function is that of its overload or name."""
    for line in filter(None, map(str.strip, table.splitlines())):
        full, _, rest = line.partition("(")
        name, _, overload = full.partition(".")
        function = functions.get(full, functions.get(name))
        if not re.search(r"\bu\b", rest):
            add(line, function)
            continue
        for key in ("str", "int", "bool", "float", "Tensor"):  # a dict's keys have no type variable in the language
            text = re.sub(r"\bu\b", key, rest)
            add(f"{name}.{overload + '_' if overload else ''}{key}({text}", function)


def add(text: str, function: Any) -> None:
    assert function is not None, text
    made = Builtin(text if "::" in text.partition("(")[0] else f"aten::{text}", function)
    BUILTINS.setdefault(made.qualified_name.partition(".")[0], []).append(made)
    BY_NAME[made.qualified_name] = made


# --- numbers ----------------------------------------------------------------------------------------------------------


def divided(a: Any, b: Any) -> Any:
    return a / b


def power(a: Any, b: Any) -> Any:
    """Returns a ** b, of two ints as a float: TorchScript's types cannot depend on the sign of b."""
    return float(a**b) if type(a) is int and type(b) is int else a**b


def rounded_down(a: Any, b: Any) -> Any:
    return a // b


PAIRS = [
    ("int", "int"), ("float", "float"), ("complex", "complex"), ("int", "float"), ("float", "int"),
    ("int", "complex"), ("complex", "int"), ("float", "complex"), ("complex", "float"), ("Scalar", "Scalar"),
]  # fmt: skip


def _overload(a: str, b: str) -> str:
    return "" if a == "Scalar" else f".{a}" if a == b else f".{a}_{b}"


def _arithmetic() -> None:
    for name, function in {
        "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": divided, "pow": power,
        "floordiv": rounded_down, "remainder": operator.mod,
    }.items():  # fmt: skip
        for a, b in PAIRS:
            if "complex" in (a, b) and name in ("floordiv", "remainder"):
                continue
            result = max(a, b, key=["int", "float", "complex", "Scalar"].index)
            result = "float" if name in ("div", "pow") and result == "int" else result
            add(f"{name}{_overload(a, b)}({a} a, {b} b) -> {result}", function)
    for name, function in {
        "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "gt": operator.gt, "le": operator.le,
        "ge": operator.ge,
    }.items():  # fmt: skip
        for a, b in [*PAIRS, ("str", "str"), ("bool", "bool")]:
            if "complex" not in (a, b) or name in ("eq", "ne"):
                add(f"{name}{_overload(a, b)}({a} a, {b} b) -> bool", function)
        if name in ("eq", "ne"):
            for one in ("Device", "Layout", "ScalarType"):
                add(f"{name}.{one}({one} a, {one} b) -> bool", function)
        add(f"{name}.list(t[] a, t[] b) -> bool", function)
    for name, function in {"__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor}.items():
        for one in ("bool", "int"):
            add(f"{name}.{one}({one} a, {one} b) -> {one}", function)
    for name, function in {"__lshift__": operator.lshift, "__rshift__": operator.rshift}.items():
        add(f"{name}.int(int a, int b) -> int", function)
    for name in ("sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp expm1 log log2 log10 log1p sqrt erf "
                 "erfc gamma lgamma degrees radians fabs").split():  # fmt: skip
        for one in ("int", "float"):
            add(f"{name}.{one}({one} a) -> float", getattr(math, name))
    for name in ("ceil", "floor"):
        add(f"{name}.float(float a) -> int", getattr(math, name))
    for name in ("isnan", "isinf", "isfinite"):
        add(f"{name}.float(float a) -> bool", getattr(math, name))
    for name in ("atan2", "fmod", "copysign"):
        add(f"{name}.float(float a, float b) -> float", getattr(math, name))
    add("gcd.int(int a, int b) -> int", math.gcd)
    add("factorial.int(int a) -> int", math.factorial)


_arithmetic()


def range_length(lo: int, hi: int, step: int) -> int:
    if step == 0:
        raise RuntimeError("range() arg 3 must not be zero")
    return len(range(lo, hi, step))


rows(
    """
    neg.int(int a) -> int
    neg.float(float a) -> float
    neg.complex(complex a) -> complex
    neg.Scalar(Scalar a) -> Scalar
    __not__(bool self) -> bool
    bitwise_not.int(int a) -> int
    abs.int(int a) -> int
    abs.float(float a) -> float
    abs.complex(complex a) -> float
    round.Scalar(float a) -> int
    round.int(int a) -> int
    round.digits(float a, int ndigits) -> float
    divmod.int(int x, int y) -> (int, int)
    divmod.float(float x, float y) -> (float, float)
    Int.Tensor(Tensor a) -> int
    Int.bool(bool a) -> int
    Int.float(float a) -> int
    Int.int(int a) -> int
    Int.Scalar(Scalar a) -> int
    Int.str(str a) -> int
    Float.Tensor(Tensor a) -> float
    Float.Scalar(Scalar a) -> float
    Float.int(int a) -> float
    Float.bool(bool a) -> float
    Float.float(float a) -> float
    Float.str(str a) -> float
    Bool.Tensor(Tensor a) -> bool
    Bool.int(int a) -> bool
    Bool.float(float a) -> bool
    Bool.bool(bool a) -> bool
    Complex.Scalar(Scalar a) -> complex
    Complex.float(float a, float b) -> complex
    Complex.Tensor(Tensor a) -> complex
    IntImplicit(Tensor a) -> int
    FloatImplicit(Tensor a) -> float
    ComplexImplicit(Tensor a) -> complex
    ScalarImplicit(Tensor a) -> Scalar
    prim::NumToTensor.Scalar(Scalar a) -> Tensor
    prim::NumToTensor.bool(bool a) -> Tensor
    prim::min.int(int a, int b) -> int
    prim::min.float(float a, float b) -> float
    prim::min.int_float(int a, float b) -> float
    prim::min.float_int(float a, int b) -> float
    prim::min.int_list(int[] self) -> int
    prim::min.float_list(float[] self) -> float
    prim::max.int(int a, int b) -> int
    prim::max.float(float a, float b) -> float
    prim::max.int_float(int a, float b) -> float
    prim::max.float_int(float a, int b) -> float
    prim::max.int_list(int[] self) -> int
    prim::max.float_list(float[] self) -> float
    sum.int_list(int[] self) -> int
    sum.float_list(float[] self) -> float
    any.bool_list(bool[] self) -> bool
    all.bool_list(bool[] self) -> bool
    __range_length(int lo, int hi, int step) -> int
    __derive_index(int index, int start, int step) -> int
    """,
    {
        "neg": operator.neg,
        "__not__": operator.not_,
        "bitwise_not": operator.invert,
        "abs": abs,
        "round": round,
        "divmod": divmod,
        "Int": int,
        "Float": float,
        "Bool": bool,
        "Complex": complex,
        "IntImplicit": int,
        "FloatImplicit": float,
        "ComplexImplicit": complex,
        "ScalarImplicit": lambda a: a.item(),
        "prim::NumToTensor": lambda a: tensor(a),
        "prim::min": min,
        "prim::max": max,
        "sum": sum,
        "any": any,
        "all": all,
        "__range_length": range_length,
        "__derive_index": lambda index, start, step: start + index * step,
    },  # fmt: skip
)


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


# --- strings ----------------------------------------------------------------------------------------------------------

_PREDICATES = "isalnum isalpha isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper"
for _name in _PREDICATES.split():
    add(f"{_name}(str self) -> bool", getattr(str, _name))
for _name in "capitalize casefold lower swapcase title upper".split():
    add(f"{_name}(str self) -> str", getattr(str, _name))
for _name in ("strip", "lstrip", "rstrip"):
    add(f"{_name}(str self, str? chars=None) -> str", getattr(str, _name))
for _name in ("find", "rfind", "index", "rindex", "count"):
    add(f"{_name}.str(str self, str substr, int start=0, int? end=None) -> int", getattr(str, _name))
for _name in ("startswith", "endswith"):
    add(f"{_name}(str self, str substr, int start=0, int? end=None) -> bool", getattr(str, _name))
for _name in ("ljust", "rjust", "center"):
    add(f'{_name}(str self, int width, str fillchar=" ") -> str', getattr(str, _name))
for _name in ("partition", "rpartition"):
    add(f"{_name}(str self, str separator) -> (str, str, str)", getattr(str, _name))
rows(
    """
    add.str(str a, str b) -> str
    mul.str(str a, int b) -> str
    len.str(str s) -> int
    ord(str string) -> int
    chr(int i) -> str
    hex.int(int i) -> str
    oct.int(int i) -> str
    bin(int i) -> str
    __getitem__.str(str s, int index) -> str
    slice.str(str string, int? start=None, int? end=None, int step=1) -> str
    __contains__.str(str self, str item) -> bool
    split.str(str self, str? separator=None, int max=-1) -> str[]
    rsplit(str self, str? separator=None, int max=-1) -> str[]
    splitlines(str self, bool keepends=False) -> str[]
    join(str self, str[] values) -> str
    replace(str self, str old, str new, int max=-1) -> str
    zfill(str self, int width) -> str
    expandtabs(str self, int tabsize=8) -> str
    list.str(str t) -> str[]
    """,
    {
        "add": operator.add,
        "mul": operator.mul,
        "len": len,
        "ord": ord,
        "chr": chr,
        "hex": hex,
        "oct": oct,
        "bin": bin,
        "__getitem__": operator.getitem,
        "slice": lambda s, start, end, step: s[start:end:step],
        "__contains__": operator.contains,
        "split": str.split,
        "rsplit": str.rsplit,
        "splitlines": str.splitlines,
        "join": str.join,
        "replace": str.replace,
        "zfill": str.zfill,
        "expandtabs": str.expandtabs,
        "list": list,
    },  # fmt: skip
)

# --- lists, dicts, tensors as containers ------------------------------------------------------------------------------


def put(container: Any, key: Any, value: Any) -> Any:
    container[key] = value
    return container


def taken(container: Any, key: Any) -> None:
    del container[key]


def appended(items: list[Any], value: Any) -> list[Any]:
    items.append(value)
    return items


def identical(a: Any, b: Any) -> bool:
    return a is b


def extended(items: list[Any], more: Any) -> list[Any]:
    items.extend(more)
    return items


rows(
    """
    add.t(t[] a, t[] b) -> t[]
    add_.t(t[](a!) self, t[] b) -> t[](a!)
    mul.left_t(t[] l, int n) -> t[]
    mul.right(int n, t[] l) -> t[]
    len.t(t[] a) -> int
    len.Tensor(Tensor t) -> int
    len.Dict(Dict(u, t) self) -> int
    append.t(t[](a!) self, t el) -> t[](a!)
    extend.t(t[](a!) self, t[] other) -> ()
    insert.t(t[](a!) self, int idx, t el) -> ()
    remove.t(t[](a!) self, t el) -> ()
    reverse.t(t[](a!) self) -> ()
    clear.t(t[](a!) self) -> ()
    copy.t(t[] self) -> t[]
    index.list(t[] self, t el) -> int
    count.list(t[] self, t el) -> int
    pop.t(t[](a!) self, int idx=-1) -> t
    sort.any(t[](a!) self, bool reverse=False) -> ()
    sorted.any(t[] input, *, bool reverse=False) -> t[]
    list.t(t[] l) -> t[]
    __getitem__.t(t[] list, int idx) -> t
    __contains__.list(t[] l, t item) -> bool
    slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]
    _set_item.t(t[](a!) l, int idx, t el) -> t[](a!)
    __delitem__.t(t[](a!) self, int idx) -> ()
    __delitem__.Dict(Dict(u, t)(a!) self, u key) -> ()
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
    __is__(t1 self, t2 obj) -> bool
    __isnot__(t1 self, t2 obj) -> bool
    """,
    {
        "add": operator.add,
        "add_": extended,
        "mul": operator.mul,
        "len": len,
        "append": appended,
        "extend": list.extend,
        "insert": list.insert,
        "remove": list.remove,
        "reverse": list.reverse,
        "clear.t": list.clear,
        "copy.t": list.copy,
        "index": list.index,
        "count": list.count,
        "pop.t": list.pop,
        "sort": lambda items, reverse: items.sort(reverse=reverse),
        "sorted": lambda items, reverse: sorted(items, reverse=reverse),
        "list": list,
        "__getitem__": operator.getitem,
        "__contains__": operator.contains,
        "slice": lambda items, start, end, step: items[start:end:step],
        "_set_item": put,
        "__delitem__": taken,
        "keys": list,
        "values": lambda d: list(d.values()),
        "items": lambda d: list(d.items()),
        "get": dict.get,
        "setdefault": dict.setdefault,
        "pop": dict.pop,
        "popitem": dict.popitem,
        "update": dict.update,
        "clear": dict.clear,
        "copy": dict.copy,
        "dict": dict,
        "__is__": identical,
        "__isnot__": operator.is_not,
    },  # fmt: skip
)
for _kind in ("float", "double", "half", "bfloat16", "long", "int", "short", "bool", "cpu"):
    add(f"{_kind}(Tensor self) -> Tensor", getattr(Tensor, _kind))
rows(
    """
    tensor(t data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False) -> Tensor
    as_tensor(t data, *, ScalarType? dtype=None, Device? device=None) -> Tensor
    device(str a) -> Device
    is_tensor(t self) -> bool
    __contains__.Tensor(Tensor self, t item) -> bool
    backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, bool create_graph=False) -> ()
    requires_grad_(Tensor self, bool requires_grad=True) -> Tensor
    numpy_T(Tensor a) -> Tensor
    """,
    {
        "tensor": lambda data, dtype, device, requires_grad: tensor(
            data, dtype=dtype, device=device, requires_grad=requires_grad
        ),
        "as_tensor": lambda data, dtype, device: (
            tensor(data, dtype=dtype, device=device)
            if not isinstance(data, Tensor)
            else data.to(dtype=dtype or data.dtype, device=device or data.device)
        ),
        "device": device,
        "is_tensor": lambda x: isinstance(x, Tensor),
        "__contains__": lambda x, item: item in x,
        "backward": lambda x, *how: x.backward(*how),
        "requires_grad_": lambda x, on: x.requires_grad_(on),
        "numpy_T": lambda x: x.T,
    },  # fmt: skip
)
