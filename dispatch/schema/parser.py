"""From the text of a schema to a `FunctionSchema`: one regular expression for tokens, and a small recursive descent.

    schema    = name "(" [arguments] ")" "->" results
    name      = ident ["::" ident] ["." ident]
    arguments = item {"," item}                 item = "*" | "..." | type ident ["=" default]
    results   = "..." | type [ident] | "(" [result {"," result}] ["..."] ")"
    type      = core {"?" | "[" [number] "]" [alias]}
    core      = "(" [types] ")" | "Dict" "(" type "," type ")" [alias] | ("Future" | ...) "(" types ")" | ident [alias]
    alias     = "(" sets ["!"] ["->" sets] ")"  sets = ident or "*", {"|" ident or "*"}
    default   = "None" | "True" | "False" | string | ["-"] number | name of a constant | "[" [default {"," default}] "]"

A schema may come from a file that nobody has checked. So there are limits (length, depth, size of ints), the time is
linear in the length, and the one exception is SchemaError, which points at the mistake. Where PyTorch has words for a
mistake, ours begin with the same. `tests/parity/schemas.py` lists where we are stricter than PyTorch, and why.
"""

from __future__ import annotations

import math
import re
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

from ..errors import SchemaError
from .schema import (
    ESCAPES,
    NO_DEFAULT,
    NONE,
    AliasInfo,
    Argument,
    BaseType,
    DictType,
    FunctionSchema,
    GenericType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    VarType,
)

MAX_LENGTH = 65_536
MAX_DEPTH = 64
MAX_LIST_SIZE = 4_096  # `int[99999999999] k=1` would fill the memory with ones

BASE_TYPES = frozenset(
    "Tensor int SymInt float bool SymBool complex str Scalar number ScalarType Device Layout MemoryFormat Generator "
    "Storage Stream QScheme Quantizer Capsule Any AnyClassType AnyEnumType NoneType".split()
)
GENERIC_TYPES = frozenset(["Future", "Await", "RRef", "Union"])
DICT_KEYS = frozenset(["int", "float", "complex", "str", "bool", "Tensor", "Device", "Any"])
CLASS_PREFIX = ["__torch__", "torch", "classes"]
KEYWORDS = frozenset(
    "False None True and as assert break class continue def del elif else for global if import in is not or pass raise "
    "return while with".split()
)

# PyTorch's numbers for what has a name in a schema and is an int to a kernel.
SCALAR_TYPES = {
    name: number
    for number, names in enumerate(
        "byte|uint8 char|int8 short|int16 int|int32 long|int64 half|float16 float|float32 double|float64 "
        "complex32 complex|complex64 complex128 bool - - - bfloat16".split()
    )
    for name in names.strip("-").split("|")
    if name
}
CONSTANTS = {"Mean": 1, "Sum": 2, "strided": 0, "contiguous_format": 0, "preserve_format": 1, "channels_last": 2}
INT_TYPES = frozenset(["int", "SymInt", "ScalarType", "Layout", "MemoryFormat"])

# What a numeric default may be for each type; the first is what it is made into.
NUMBER_TYPES: dict[str, tuple[type, ...]] = dict.fromkeys(INT_TYPES, (int,)) | {
    "bool": (bool,),
    "float": (float, int),
    "complex": (complex, float, int),
    "Scalar": (int, float, complex),
    "number": (int, float, complex),
}
LIST_DEFAULT_TYPES = frozenset(["int", "SymInt", "float", "bool", "complex"])


class Token(NamedTuple):
    kind: str  # 'ident', 'number', 'string_literal', 'eof', or the text itself for keywords and punctuation
    text: str
    position: int


_TOKEN = re.compile(
    r"""(?:\s|\#[^\n]*)*  # what stands between tokens
      (?: (?P<ident>[A-Za-z_][A-Za-z_0-9]*)
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?j?)
      | (?P<string_literal>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<arrow>->)
      | (?P<other>\.\.\.|::|[()\[\],.=*!?|+-])
      | (?P<eof>\Z) )""",
    re.VERBOSE | re.ASCII,
)


def tokenize(text: str) -> list[Token]:
    """The tokens of `text`, with one 'eof' at the end. SchemaError for a character that begins none."""
    tokens = []
    position = 0
    kind = ""
    while kind != "eof":
        match = _TOKEN.match(text, position)
        if match is None:
            while text[position].isspace():  # only now, so that the caret stands under the character itself
                position += 1
            raise SchemaError(f"expected a valid token but found {text[position]!r} here", text, position)
        kind = match.lastgroup or ""
        part, position = match[kind], match.end()
        named = kind != "other" and part not in KEYWORDS
        tokens.append(Token(kind if named else part, part, match.start(kind)))
    return tokens


# of types of C++, which programs write by mistake: what to write
INSTEAD = {
    "int64_t": "Use `SymInt` or `int` for whole numbers. ",
    "double": "Use `float` for numbers. ",
    "list": "A list of ints is `int[]`. ",
}


def parse_schema(text: str, allow_typevars: bool = True) -> FunctionSchema:
    """The schema that `text` describes, e.g. `aten::neg(Tensor self) -> Tensor`.

    allow_typevars: whether a type may be a variable, such as `t` in `t[]`.
    Errors: SchemaError (a RuntimeError) for everything that is not a schema, TypeError for what is not a string.
    """
    if not isinstance(text, str):
        raise TypeError(f"parse_schema expects a string, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise SchemaError(f"a schema has at most {MAX_LENGTH} characters, this one {len(text)}", text, MAX_LENGTH)
    return _Parser(text, allow_typevars).schema()


class _Parser:
    """A cursor over the tokens, and a method per rule of the grammar."""

    def __init__(self, text: str, allow_typevars: bool = True) -> None:
        self.text, self.allow_typevars = text, allow_typevars
        self.tokens = tokenize(text)
        self.index = 0
        self.depth = 0

    # The cursor

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def at(self, kind: str) -> bool:
        return self.tokens[self.index].kind == kind

    def take(self, kind: str) -> bool:
        """Steps over the next token if it is of this kind, and says whether it was."""
        if self.tokens[self.index].kind == kind:
            self.index += 1
            return True
        return False

    def expect(self, kind: str) -> str:
        token = self.tokens[self.index]
        if token.kind != kind:
            self.fail(f"expected {kind} but found '{token.kind}' here")
        self.index += 1
        return token.text

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        raise SchemaError(message, self.text, (token or self.token).position)

    # schema and name

    def schema(self) -> FunctionSchema:
        name, overload_name = self.name()
        if self.at("eof"):
            self.fail("Tried to parse a function schema but only the operator name was given")
        arguments, is_vararg = self.arguments()
        self.expect("arrow")
        returns, is_varret = self.returns()
        self.expect("eof")
        return FunctionSchema(name, overload_name, tuple(arguments), tuple(returns), is_vararg, is_varret)

    def name(self) -> tuple[str, str]:
        name = self.expect("ident")
        if self.take("::"):
            name += f"::{self.expect('ident')}"
        overload = self.token
        if not self.take("."):
            return name, ""
        overload_name = self.expect("ident")
        if overload_name == "default":
            self.fail("default is not a legal overload name: it stands for the overload without one", overload)
        return name, overload_name

    # arguments and returns

    def arguments(self) -> tuple[list[Argument], bool]:
        arguments: list[Argument] = []
        kwarg_only = False
        self.expect("(")
        while not self.at(")"):
            start = self.token
            if self.take("..."):
                if not self.at(")"):
                    self.fail("... must be the last element of the argument list")
                self.index += 1
                return arguments, True
            if self.take("*"):
                if kwarg_only:
                    self.fail("the argument list has a second *", start)
                kwarg_only = True
            else:
                argument = self.argument(kwarg_only)
                if not argument.has_default_value() and not kwarg_only and arguments[-1:]:
                    if arguments[-1].has_default_value():
                        self.fail(f"Non-default positional argument {argument.name} follows default argument", start)
                arguments.append(argument)
            self.separator(")")
        self.expect(")")
        return arguments, False

    def separator(self, end: str) -> None:
        """Steps over a comma, which something must follow; or leaves the closing bracket to the caller."""
        if not self.at(end):
            if not self.take(","):
                self.expect(end)
            if self.at(end):
                self.expect("ident")

    def argument(self, kwarg_only: bool) -> Argument:
        type, alias = self.type()
        name = self.expect("ident")
        default = self.default(type) if self.take("=") else NO_DEFAULT
        return Argument(name, type, default, kwarg_only, alias)

    def returns(self) -> tuple[list[Argument], bool]:
        if self.take("..."):
            return [], True
        if not self.take("("):
            return [self.result()], False
        results: list[Argument] = []
        while not self.at(")"):
            if self.take("..."):
                if not self.at(")"):
                    self.fail("... must be the last element of the return list")
                self.index += 1
                return results, True
            results.append(self.result())
            self.separator(")")
        self.expect(")")
        return results, False

    def result(self) -> Argument:
        type, alias = self.type()
        name = self.expect("ident") if self.at("ident") else ""
        return Argument(name, type, alias_info=alias)

    # types

    def type(self) -> tuple[Type, AliasInfo | None]:
        """A type, and how its value and what it holds alias."""
        start = self.token
        self.depth += 1
        type, alias = self.core_type()
        wrappings = 0
        while self.at("?") or self.at("["):
            wrappings += 1
            if self.depth + wrappings > MAX_DEPTH:
                self.fail(f"a type is nested more than {MAX_DEPTH} deep", start)
            if self.take("?"):
                type = type if isinstance(type, OptionalType) else OptionalType(type)
            else:
                type, alias = self.list_type(type, alias)
        self.depth -= 1
        return type, alias

    def core_type(self) -> tuple[Type, AliasInfo | None]:
        start = self.token
        if self.depth > MAX_DEPTH:
            self.fail(f"a type is nested more than {MAX_DEPTH} deep", start)
        if self.at("("):
            return TupleType(self.type_list()), None
        if self.take("None"):
            return NONE, None
        name = self.expect("ident")
        if name == "Dict":
            return self.dict_type(start), self.alias()
        if name in GENERIC_TYPES:
            elements = self.type_list()
            if not elements or (name != "Union" and len(elements) > 1):
                self.fail(f"{name} has {'at least' if name == 'Union' else 'exactly'} one type inside", start)
            return GenericType(name, elements), None
        if name == "__torch__":
            return self.class_type(), self.alias()
        if name in BASE_TYPES:
            return BaseType(name), self.alias()
        if name[0].islower() and self.allow_typevars:
            return VarType(name), self.alias()
        near = get_close_matches(name, BASE_TYPES, 1)
        instead = INSTEAD.get(name) or (f"Did you mean {near[0]}? " if near else "")
        self.fail(
            f"unknown type specifier. {instead}Usual ones are Tensor, SymInt, int, float, bool, Scalar; "
            "dispatch/schema/parser.py lists them all",
            start,
        )

    def type_list(self) -> tuple[Type, ...]:
        types = []
        self.expect("(")
        while not self.at(")"):
            types.append(self.inner_type())
            self.separator(")")
        self.expect(")")
        return tuple(types)

    def inner_type(self) -> Type:
        start = self.token
        type, alias = self.type()
        if alias is not None:
            # PyTorch reads and forgets such an annotation. A promise about memory is not to be lost silently.
            self.fail("an alias annotation has no meaning inside a tuple, Dict, Future, Await, RRef or Union", start)
        return type

    def dict_type(self, start: Token) -> DictType:
        self.expect("(")
        key = self.inner_type()
        if not (isinstance(key, BaseType) and key.name in DICT_KEYS):
            self.fail(f"Cannot create dict for key type '{key.schema_str()}'", start)
        self.expect(",")
        value = self.inner_type()
        self.expect(")")
        return DictType(key, value)

    def class_type(self) -> BaseType:
        """The rest of `__torch__.torch.classes.<namespace>.<name>`: a class registered from outside."""
        parts = [CLASS_PREFIX[0]]
        for _ in range(4):
            self.expect(".")
            at = self.token
            parts.append(self.expect("ident"))
            expected = CLASS_PREFIX[len(parts) - 1 : len(parts)]
            if expected and parts[-1] != expected[0]:
                self.fail(f"Expected {expected[0]} namespace but got {parts[-1]}", at)
        return BaseType(".".join(parts))

    def list_type(self, element: Type, inner: AliasInfo | None) -> tuple[ListType, AliasInfo | None]:
        self.expect("[")
        size = None
        if not self.at("]"):
            at = self.token
            digits = self.expect("number")
            if not digits.isdigit() or len(digits) > 9 or int(digits) > MAX_LIST_SIZE:
                self.fail(f"the size of a list is an int of at most {MAX_LIST_SIZE}", at)
            size = int(digits)
        self.expect("]")
        alias = self.alias()
        if alias is not None:
            alias = AliasInfo(alias.before, alias.after, alias.is_write or _writes(inner), inner)
        elif inner is not None:
            alias = AliasInfo(frozenset(), frozenset(), inner.is_write, inner)
        return ListType(element, size), alias

    def alias(self) -> AliasInfo | None:
        if not self.take("("):
            return None
        before = self.alias_sets()
        is_write = self.take("!")
        after = self.alias_sets() if self.take("arrow") else before
        self.expect(")")
        return AliasInfo(before, after, is_write)

    def alias_sets(self) -> frozenset[str]:
        names = [self.alias_name()]
        while self.take("|"):
            names.append(self.alias_name())
        return frozenset(names)

    def alias_name(self) -> str:
        return "*" if self.take("*") else self.expect("ident")

    # defaults

    def default(self, type: Type) -> Any:
        """The value after `=`, as a value of the argument's type."""
        start = self.token
        if self.take("None"):
            # Also without a `?`, as in PyTorch: such an argument may be left out, though None may not be passed for it.
            if type == NONE or isinstance(type, ListType):
                self.fail("None is no default for this type", start)
            return None
        if isinstance(type, OptionalType):
            inner = type.elem
            # One number for a list stays as it is written, and so does an int for a float: PyTorch fills in and
            # converts only where the type is not optional.
            scalar = inner.elem if isinstance(inner, ListType) and inner.size is not None else inner
            return self.list_default(inner) if scalar is inner and isinstance(inner, ListType) else self.scalar(scalar)
        if isinstance(type, ListType):
            return self.list_default(type)
        return self.scalar(type, convert=True)

    def list_default(self, type: ListType) -> list[Any]:
        if not (isinstance(type.elem, BaseType) and type.elem.name in LIST_DEFAULT_TYPES):
            self.fail("lists are only supported for float, int, bool and complex types")
        if type.size is not None and not self.at("["):
            return [self.scalar(type.elem, convert=True)] * type.size
        values = []
        self.expect("[")
        while not self.at("]"):
            values.append(self.scalar(type.elem, convert=True))
            self.separator("]")
        self.expect("]")
        return values

    def scalar(self, type: Type, convert: bool = False) -> Any:
        """One constant that fits `type`. With `convert`, an int for a float or complex becomes one."""
        start = self.token
        name = type.name if isinstance(type, BaseType) else ""
        if name in ("str", "Device"):
            return _unquote(self.expect("string_literal"), lambda message: self.fail(message, start))
        if name == "bool" and not self.at("number"):
            return self.truth()
        if name == "Scalar" and (self.at("True") or self.at("False")):
            return self.truth()
        if name in INT_TYPES and self.at("ident"):
            return self.constant(name)
        if name not in NUMBER_TYPES:
            self.fail(f"a {type.schema_str()} cannot have this default")
        value = self.number(imaginary=name in ("complex", "Scalar", "number"))
        if name == "bool" and value in (0, 1):
            return bool(value)
        accepted = NUMBER_TYPES[name]
        if not isinstance(value, accepted):
            self.fail(f"invalid numeric default value for {name}", start)
        return accepted[0](value) if convert and name in ("float", "complex") else value

    def truth(self) -> bool:
        if not (self.at("True") or self.at("False")):
            self.fail(f"expected True or False but found '{self.token.kind}' here")
        return self.tokens[self.index - 1 + self.take("True") + self.take("False")].kind == "True"

    def constant(self, type: str) -> int:
        """The number behind a name such as `Mean`, `strided`, or (for a ScalarType) `long`."""
        start = self.token
        name = self.expect("ident")
        number = SCALAR_TYPES.get(name) if type == "ScalarType" else CONSTANTS.get(name)
        if number is None:
            self.fail("invalid numeric default value: no constant of that name", start)
        return number

    def number(self, imaginary: bool) -> int | float | complex:
        """`-1`, `1e-5`; where `imaginary` is allowed also `2j` and `0.+2.j`."""
        start = self.token
        value = self.unsigned(-1 if self.take("-") else 1)
        if imaginary and not isinstance(value, complex) and (self.at("+") or self.at("-")):
            sign = -1 if self.take("-") else 1
            self.index += sign == 1
            second = self.token
            part = self.unsigned(sign)
            if not isinstance(part, complex):
                self.fail("expected an imaginary number here", second)
            return complex(value, part.imag)
        if isinstance(value, complex) and not imaginary:
            self.fail("invalid numeric default value: an imaginary number", start)
        return value

    def unsigned(self, sign: int) -> int | float | complex:
        token = self.token
        digits = self.expect("number")
        if digits.isdigit():
            # Python refuses to read very long ints, and by then it is too large anyway.
            value = sign * int(digits) if len(digits) <= 20 else None
            if value is None or not -(2**63) <= value < 2**63:
                self.fail("an int default must fit into 64 bits", token)
            return value
        real = sign * float(digits.rstrip("j"))
        if not math.isfinite(real):
            self.fail("a float default must be finite", token)
        return complex(0.0, real) if digits.endswith("j") else real


def _writes(alias: AliasInfo | None) -> bool:
    return alias is not None and alias.is_write


_ESCAPE = re.compile(r"\\([0-7]{3}|.)", re.DOTALL)


def _unquote(literal: str, fail) -> str:
    """The string that a literal stands for. The escapes are Python's one-letter ones, and three octal digits."""

    def replace(match: re.Match[str]) -> str:
        letter = match.group(1)
        if letter in ESCAPES:
            return ESCAPES[letter]
        if len(letter) == 3 and letter[0] in "0123":
            return chr(int(letter, 8))
        return fail(f"unknown escape in a string: \\{letter}")

    return _ESCAPE.sub(replace, literal[1:-1])
