"""Operator schemas as plain immutable records, and their text.

    add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)

A schema is the truth about an operator: its name and overload, the type and default of every argument, which
arguments are written (`!`), and which results share memory with which arguments (the letters). Everything generic in
the dispatcher knows an operator through this record alone. The language is PyTorch's, and so are the attribute names;
`str(schema)` gives back the text that `parse_schema` accepts.

The records come in reading order: types, alias annotations, arguments, the schema. Read next: parser.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace
from enum import Enum, StrEnum
from typing import Any, Final

from ..records import dataclass
from ..specialiser.annotations import frozen

# Tags: what is true of an operator and does not show in its schema. PyTorch's words; each is a str, too ---------------


class Tag(StrEnum):
    """`Tag.pointwise in op.tags`."""

    core = "core"
    pointwise = "pointwise"
    reduction = "reduction"
    inplace = "inplace"
    out = "out"
    inplace_view = "inplace_view"
    view_copy = "view_copy"
    generated = "generated"
    data_dependent_output = "data_dependent_output"
    dynamic_output_shape = "dynamic_output_shape"
    nondeterministic_seeded = "nondeterministic_seeded"
    nondeterministic_bitwise = "nondeterministic_bitwise"
    maybe_aliasing_or_mutating = "maybe_aliasing_or_mutating"
    pt2_compliant_tag = "pt2_compliant_tag"
    needs_exact_strides = "needs_exact_strides"
    needs_contiguous_strides = "needs_contiguous_strides"
    needs_fixed_stride_order = "needs_fixed_stride_order"
    flexible_layout = "flexible_layout"
    cudagraph_unsafe = "cudagraph_unsafe"


# --- Types ------------------------------------------------------------------------------------------------------------

# What a value of the type is to Python, where that differs from the type's own name.
_PYTHON_NAMES = {
    "SymInt": "int",
    "SymBool": "bool",
    "Scalar": "number",
    "ScalarType": "int",
    "Layout": "int",
    "MemoryFormat": "int",
}
# Where the name of a node's class is not the type's name with "Type" behind it.
_KINDS = {"str": "StringType", "Device": "DeviceObjType", "Stream": "StreamObjType"}


class Type:
    """One type of the schema language. `schema_str()` writes it as a schema does (`Tensor?`), `str()` as PyTorch
    shows it to Python (`Optional[Tensor]`), where `SymInt` is an `int` and `Scalar` a `number`."""

    __slots__ = ()

    @property
    def annotation_str(self) -> str:
        """Returns `str(self)`; PyTorch's name for it."""
        return str(self)

    def kind(self) -> str:
        """The name of the node's class, as PyTorch reports it: 'ListType', 'TensorType', 'IntType', ..."""
        return type(self).__name__

    def schema_str(self, alias: AliasInfo | None = None) -> str:
        """The type in the schema language, with the annotations of `alias` in their places."""
        return f"{self._plain()}{_annotation(alias)}"

    def _plain(self) -> str:
        raise NotImplementedError

    def is_subtype_of(self, other: Type) -> bool:
        """Whether each value of this type may be passed where `other` is declared."""
        if self == other or other == ANY:
            return True
        if isinstance(other, OptionalType):
            return self == NONE or self.is_subtype_of(other.elem)
        if isinstance(other, GenericType) and other.name == "Union":
            return any(self.is_subtype_of(member) for member in other.elems)
        return str(self) == str(other) or (str(other) == "number" and str(self) in ("int", "float", "complex"))

    isSubtypeOf = is_subtype_of  # PyTorch's spelling

    def containedTypes(self) -> list[Type]:
        """Returns the types of which it is made: a list's element, a tuple's members."""
        parts = (getattr(self, name, None) for name in ("elem", "elems", "key", "value"))
        return [one for part in parts for one in (part if isinstance(part, tuple) else [part]) if one is not None]


@frozen
@dataclass(frozen=True, slots=True)
class BaseType(Type):
    """A type with a name and no parts: `Tensor`, `int`, `Device`, `__torch__.torch.classes.rnn.CellParamsBase`."""

    name: str

    def __str__(self) -> str:
        return _PYTHON_NAMES.get(self.name, self.name)

    def kind(self) -> str:
        if "." in self.name:
            return "ClassType"
        if self.name == "SymBool":  # PyTorch has a class for it, though none for SymInt
            return "SymBoolType"
        python = str(self)
        return _KINDS.get(python, f"{python[0].upper()}{python[1:].removesuffix('Type')}Type")

    def _plain(self) -> str:
        return self.name


@frozen
@dataclass(frozen=True, slots=True)
class VarType(Type):
    """A type variable, any lower-case name: each `t` of one schema stands for the same type."""

    name: str

    def __str__(self) -> str:
        return self.name

    def _plain(self) -> str:
        return self.name


@frozen
@dataclass(frozen=True, slots=True)
class OptionalType(Type):
    """`element?`: the element or None."""

    elem: Type

    def __str__(self) -> str:
        return f"Optional[{self.elem}]"

    def getElementType(self) -> Type:
        return self.elem

    def schema_str(self, alias: AliasInfo | None = None) -> str:
        # An optional has no memory of its own: its annotation is that of the element, and stands there.
        return f"{self.elem.schema_str(alias)}?"

    def is_subtype_of(self, other: Type) -> bool:
        if isinstance(other, OptionalType):
            return self.elem.is_subtype_of(other.elem)
        return other == ANY


@frozen
@dataclass(frozen=True, slots=True)
class ListType(Type):
    """`element[]`, or `element[size]`: a list for which a single element may be passed, too, and is then repeated."""

    elem: Type
    size: int | None = None

    def __str__(self) -> str:
        return f"List[{self.elem}]"

    def getElementType(self) -> Type:
        return self.elem

    def schema_str(self, alias: AliasInfo | None = None) -> str:
        size = "" if self.size is None else self.size
        contained = alias.contained if alias is not None else None
        own = "" if alias is None or not alias.before else _annotation(alias)
        return f"{self.elem.schema_str(contained)}[{size}]{own}"


@frozen
@dataclass(frozen=True, slots=True)
class TupleType(Type):
    """`(int, str)`: a fixed number of values."""

    elems: tuple[Type, ...]

    def __str__(self) -> str:
        return f"Tuple[{', '.join(map(str, self.elems)) or '()'}]"

    def elements(self) -> list[Type]:
        return list(self.elems)

    def _plain(self) -> str:
        return f"({', '.join(elem.schema_str() for elem in self.elems)})"

    def is_subtype_of(self, other: Type) -> bool:
        if isinstance(other, TupleType):
            return len(self.elems) == len(other.elems) and all(
                mine.is_subtype_of(theirs) for mine, theirs in zip(self.elems, other.elems, strict=True)
            )
        return Type.is_subtype_of(self, other)


@frozen
@dataclass(frozen=True, slots=True)
class DictType(Type):
    """`Dict(str, Tensor)`."""

    key: Type
    value: Type

    def __str__(self) -> str:
        return f"Dict[{self.key}, {self.value}]"

    def getKeyType(self) -> Type:
        return self.key

    def getValueType(self) -> Type:
        return self.value

    def _plain(self) -> str:
        return f"Dict({self.key.schema_str()}, {self.value.schema_str()})"


@frozen
@dataclass(frozen=True, slots=True)
class GenericType(Type):
    """`Future(t)`, `Await(t)`, `RRef(t)`, `Union(int, str)`: a name applied to types."""

    name: str
    elems: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(map(str, self.elems))}]"

    def kind(self) -> str:
        return f"{self.name}Type"

    def _plain(self) -> str:
        return f"{self.name}({', '.join(elem.schema_str() for elem in self.elems)})"


ANY: Final = BaseType("Any")
NONE: Final = BaseType("NoneType")
INT: Final = BaseType("int")
TENSOR: Final = BaseType("Tensor")


def _is_tensor(type: Type) -> bool:
    """Whether the type is `Tensor` or `Tensor?`."""
    return type == TENSOR or (isinstance(type, OptionalType) and type.elem == TENSOR)


def _is_tensor_list(type: Type) -> bool:
    """Whether the type is a list of tensors: `Tensor[]`, `Tensor?[]`, `Tensor[]?`, `Tensor?[]?`."""
    if isinstance(type, OptionalType):
        type = type.elem
    return isinstance(type, ListType) and _is_tensor(type.elem)


# --- Alias annotations ------------------------------------------------------------------------------------------------


@frozen
@dataclass(frozen=True, slots=True)
class AliasInfo:
    """`(a! -> b|c)`: the memory that a value belongs to before and after the call, and whether the call writes it.

    `*` is the wildcard: memory that may be shared with anything. For a list, `contained` annotates the elements: in
    `Tensor(a!)[]` the list itself belongs to no set, yet counts as written, since what it holds is.
    """

    before: frozenset[str]
    after: frozenset[str]
    is_write: bool
    contained: AliasInfo | None = None

    @property
    def before_set(self) -> frozenset[str]:
        return self.before

    @property
    def after_set(self) -> frozenset[str]:
        return self.after

    @property
    def names(self) -> frozenset[str]:
        """Every set that the value or what it holds belongs to, before or after the call."""
        own = self.before | self.after
        return own | self.contained.names if self.contained is not None else own


def _annotation(alias: AliasInfo | None) -> str:
    if alias is None:
        return ""
    # The order within a set means nothing; PyTorch prints later letters first.
    before, after = ("|".join(sorted(names, reverse=True)) for names in (alias.before, alias.after))
    return f"({before}{'!' if alias.is_write else ''}{'' if after == before else f' -> {after}'})"


# --- Arguments --------------------------------------------------------------------------------------------------------


class NoDefault(Enum):
    """The type of NO_DEFAULT. None cannot play that part: it is a frequent default."""

    NO_DEFAULT = "NO_DEFAULT"

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = NoDefault.NO_DEFAULT


@frozen
@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, or one result (whose name may be empty, and which has no default).

    A default is NO_DEFAULT or what Python would pass: None, bool, int, float, complex, str, or a list of them. For a
    `Device` it is the string, for a `ScalarType`, `Layout` or `MemoryFormat` PyTorch's number. A list is shared by
    everyone who reads the schema, and not to be changed.
    """

    name: str
    type: Type
    default: Any = NO_DEFAULT
    kwarg_only: bool = False
    alias_info: AliasInfo | None = None

    def __hash__(self) -> int:  # a default may be a list
        return hash((self.name, self.type, repr(self.default), self.kwarg_only, self.alias_info))

    def has_default_value(self) -> bool:
        return self.default is not NO_DEFAULT

    @property
    def default_value(self) -> Any:
        """The default, or None where there is none; `has_default_value` tells these apart."""
        return None if self.default is NO_DEFAULT else self.default

    @property
    def real_type(self) -> Type:
        return self.type

    @property
    def N(self) -> int | None:
        """The size of a list with a declared size, else None."""
        inner = self.type.elem if isinstance(self.type, OptionalType) else self.type
        return inner.size if isinstance(inner, ListType) else None

    @property
    def is_write(self) -> bool:
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        """Whether the argument is written and can only be passed by name: an `out=`."""
        return self.kwarg_only and self.is_write

    def __str__(self) -> str:
        text = self.type.schema_str(self.alias_info)
        if self.name:
            text += f" {self.name}"
        if self.default is not NO_DEFAULT:
            text += f"={_format_default(self.default, self.type)}"
        return text

    def is_backward_compatible_with(self, old: Argument) -> bool:
        """Whether each call that suited the argument `old` suits this one and means the same."""
        return (
            self.name == old.name
            and self.N == old.N
            and self.alias_info == old.alias_info
            and not (old.kwarg_only is False and self.kwarg_only)
            and (old.default is NO_DEFAULT or (self.default is not NO_DEFAULT and self.default == old.default))
            and old.type.is_subtype_of(self.type)
        )

    def is_forward_compatible_with(self, old: Argument) -> bool:
        """Whether a value that suits this argument suits the argument `old` and means the same."""
        return (
            self.name == old.name
            and self.N == old.N
            and self.alias_info == old.alias_info
            and self.kwarg_only <= old.kwarg_only
            and (self.default is NO_DEFAULT) == (old.default is NO_DEFAULT)
            and (self.default is NO_DEFAULT or self.default == old.default)
            and self.type.is_subtype_of(old.type)
        )


def _format_default(value: Any, type: Type | None = None) -> str:
    if isinstance(value, list):
        # One int stands for a list of equal ones, as in `int[2] stride=1`. PyTorch writes only `int[n]` so.
        is_int_list = isinstance(type, ListType) and type.elem == INT and type.size == len(value) > 1
        if is_int_list and value.count(value[0]) == len(value):
            return str(value[0])
        return f"[{', '.join(map(_format_default, value))}]"
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, float):
        return _format_float(value)
    if isinstance(value, complex):
        imag = _format_float(value.imag)
        return f"{_format_float(value.real)}{'' if imag.startswith('-') else '+'}{imag}j"
    return str(value)


def _format_float(value: float) -> str:
    """17 significant digits, which give back every float64, and a point where nothing else says that it is no int."""
    text = f"{value:.17g}"
    return f"{text}." if text.lstrip("-").isdigit() else text


ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {c: c for c in "\\'\""}
_QUOTED = {ord(char): f"\\{letter}" for letter, char in ESCAPES.items()} | {
    code: f"\\{code:03o}" for code in [*range(32), 127] if chr(code) not in ESCAPES.values()
}


def _quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


# --- The schema -------------------------------------------------------------------------------------------------------


def fate_of(alias: AliasInfo | None) -> str:
    """Returns the meaning of a mark such as `(a!)` in words."""
    return "" if alias is None else "written" if alias.is_write else "its memory is shared"


@frozen
@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """Name, overload, arguments and results of one operator. `str()` writes it in the schema language.

    The fields after `is_varret` follow from those before; they are worked out once, for the layers that ask on every
    call. Positions count all arguments, keyword-only ones included, in the order of the schema.
    """

    name: str  # 'aten::add', or 'add' without a namespace
    overload_name: str
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    is_vararg: bool = False
    is_varret: bool = False

    is_mutable: bool = field(init=False, repr=False, compare=False)
    """Whether some argument is written."""
    kwarg_only_start: int = field(init=False, repr=False, compare=False)
    """How many arguments may be passed by position; the keyword-only ones start there."""
    tensor_positions: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The arguments that are `Tensor` or `Tensor?`."""
    tensor_list_positions: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The arguments that are lists of these, optional or not."""
    mutable_positions: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The arguments that are written, but for scratch memory: see `with_scratch`."""
    out_positions: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The arguments that are `out=`."""
    return_aliases: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    """For each result, the arguments with which it shares a named alias set."""

    def __post_init__(self) -> None:
        def where(holds) -> tuple[int, ...]:
            return tuple(i for i, argument in enumerate(self.arguments) if holds(argument))

        keyword_only = where(lambda argument: argument.kwarg_only)
        facts = {
            "is_mutable": any(argument.is_write for argument in self.arguments),
            "kwarg_only_start": keyword_only[0] if keyword_only else len(self.arguments),
            "tensor_positions": where(lambda argument: _is_tensor(argument.type)),
            "tensor_list_positions": where(lambda argument: _is_tensor_list(argument.type)),
            "mutable_positions": where(lambda argument: argument.is_write),
            "out_positions": where(lambda argument: argument.is_out),
            "return_aliases": tuple(
                where(lambda argument, result=result: _share_a_set(argument, result)) for result in self.returns
            ),
        }
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    def with_scratch(self, name: str) -> FunctionSchema:
        """Returns this schema with an argument whose writes no layer sees.

        For memory that an operator fills for its own derivative: it is kept as it is after the call, its version stays,
        and it gets no history.
        """
        made = replace(self)
        rest = tuple(position for position in self.mutable_positions if self.arguments[position].name != name)
        object.__setattr__(made, "mutable_positions", rest)
        return made

    @property
    def namespace(self) -> str | None:
        """'aten' for 'aten::add', None where the name has no namespace."""
        namespace, separator, _ = self.name.partition("::")
        return namespace if separator else None

    @property
    def base_name(self) -> str:
        """'add' for 'aten::add'."""
        return self.name.rpartition("::")[2]

    @property
    def overload(self) -> str:
        """The overload as an attribute of the operator: 'default' where the schema names none."""
        return self.overload_name or "default"

    @property
    def qualified_name(self) -> str:
        """'aten::add.Tensor', or 'aten::add' for the overload without a name."""
        return f"{self.name}.{self.overload_name}" if self.overload_name else self.name

    @property
    def is_out(self) -> bool:
        """Whether it writes into an `out=` argument."""
        return bool(self.out_positions)

    @property
    def is_inplace(self) -> bool:
        """Whether it changes its first argument and says so in its name: `add_`, `__iadd__`."""
        name = self.base_name
        named = name[2:3] == "i" if name.startswith("__") and name.endswith("__") else name.endswith("_")
        return named and not self.is_out and bool(self.arguments) and self.arguments[0].is_write

    @property
    def is_functional(self) -> bool:
        """Whether it writes no argument. (A view is functional: it shares memory, and changes none.)"""
        return not self.is_mutable

    @property
    def kind(self) -> str:
        """'functional', 'inplace', 'out', or 'mutable' for one that writes arguments in some other way."""
        for kind in ("functional", "inplace", "out"):
            if getattr(self, f"is_{kind}"):
                return kind
        return "mutable"

    @property
    def is_view(self) -> bool:
        """Whether some result shares the memory of an argument and neither is written."""
        return any(
            aliased and not result.is_write for result, aliased in zip(self.returns, self.return_aliases, strict=True)
        )

    def __str__(self) -> str:
        parts: list[str] = []
        for i, argument in enumerate(self.arguments):
            if i == self.kwarg_only_start:
                parts.append("*")
            parts.append(str(argument))
        if self.is_vararg:
            parts.append("...")
        return f"{self.qualified_name}({', '.join(parts)}) -> {self._returns_str()}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Returns the schema for notebooks, an argument a line, with its fate: written, or shared with a result."""
        from html import escape  # here: few programs are notebooks

        rows = [
            f"<tr><td><code>{escape(str(one))}</code></td><td>{fate_of(one.alias_info)}</td></tr>"
            for one in (*self.arguments, *self.returns)
        ]
        return f"<code>{escape(str(self))}</code><table>{''.join(rows)}</table>"

    def _returns_str(self) -> str:
        parts = [str(result) for result in self.returns] + ["..."] * self.is_varret
        # A lone result stands bare, unless it is itself written with parentheses and so would be read as several.
        if len(parts) == 1 and not parts[0].startswith("("):
            return parts[0]
        return f"({', '.join(parts)})"

    def is_backward_compatible_with(self, old: FunctionSchema) -> bool:
        """Whether each call that suited `old` suits this schema and means the same.

        New arguments need a default; old ones keep their place, name, default and aliasing, may widen their type, and
        may stop being keyword-only; results may narrow theirs.
        """
        if not self._is_kin_of(old) or not all(map(_return_is_compatible, self.returns, old.returns)):
            return False
        # `out=` arguments come last and stay last: new arguments enter before them.
        (mine, my_outs), (theirs, their_outs) = self._parted(), old._parted()
        return (
            len(my_outs) >= len(their_outs)
            and len(mine) >= len(theirs)
            and all(new.is_backward_compatible_with(was) for new, was in zip(mine, theirs, strict=False))
            and all(new.is_backward_compatible_with(was) for new, was in zip(my_outs, their_outs, strict=False))
            and all(new.has_default_value() for new in mine[len(theirs) :])
        )

    def check_forward_compatible_with(self, old: FunctionSchema) -> tuple[bool, str]:
        """Returns whether a program that was saved with this schema can be loaded where `old` holds, and why not.

        Arguments that `old` has not are left out of it where they have their default, which is a plain value.
        """
        if not self._is_kin_of(old):
            return False, ""
        (mine, my_outs), (theirs, their_outs) = self._parted(), old._parted()
        if len(my_outs) != len(their_outs):
            return False, "Function schema should have the same number of out arguments"
        for new, was in zip(mine, theirs, strict=False):
            if not new.is_forward_compatible_with(was):
                return False, f"'{new.name}' is not forward compatible with the older version of the schema"
        for new in mine[len(theirs) :]:
            kind = re.sub(r"\[\d+\]", "[]", _INTEGERS.sub("int", new.type.schema_str(None)))
            problem = f"Function schema is not forward compatible since the new argument '{new.name}' of type {kind} "
            if not new.has_default_value():
                return False, f"{problem}did not provide a default value."
            if isinstance(new.default, list | dict):
                return False, f"{problem}has a container type as its default value."
        for place, (new, was) in enumerate(zip(my_outs, their_outs, strict=True), len(theirs)):
            if not new.is_forward_compatible_with(was):  # PyTorch names the argument that has the old one's place now
                name = self.arguments[place].name
                return False, f"Out argument ''{name} is not FC with the older version of the schema"
        return True, ""

    def _parted(self) -> tuple[Sequence[Argument], Sequence[Argument]]:
        """The arguments before the first `out=`, and those from it on."""
        start = next((i for i, one in enumerate(self.arguments) if one.is_out), len(self.arguments))
        return self.arguments[:start], self.arguments[start:]

    def _is_kin_of(self, old: FunctionSchema) -> bool:
        """Whether two schemas are of one overload and have as many results. TypeError for what is no schema."""
        if not isinstance(old, FunctionSchema):
            raise TypeError(f"expected a FunctionSchema to compare {self} with, got {old!r}")
        return (self.name, self.overload_name, self.is_vararg, self.is_varret, len(self.returns)) == (
            old.name,
            old.overload_name,
            old.is_vararg,
            old.is_varret,
            len(old.returns),
        )


_INTEGERS = re.compile(r"\b(SymInt|ScalarType|Layout|MemoryFormat)\b")  # which are numbers to PyTorch


def _share_a_set(argument: Argument, result: Argument) -> bool:
    if argument.alias_info is None or result.alias_info is None:
        return False
    return bool(argument.alias_info.names & result.alias_info.names - {"*"})


def _return_is_compatible(new: Argument, old: Argument) -> bool:
    return (
        new.name == old.name
        and new.N == old.N
        and new.alias_info == old.alias_info
        and new.type.is_subtype_of(old.type)
    )
