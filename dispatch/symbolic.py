"""Numbers that may be symbols: SymInt, SymFloat, SymBool, their expressions, and the ShapeEnv that knows the symbols.

A program that ran with sizes of 5 and 7 tells little about other sizes. So sizes are symbols while it is looked at:
`s0 * s1 + 2`. Python runs as ever; where it asks whether `s0 < 10`, the hint, the value of now, answers, and the answer
is kept as a *guard*: what was seen holds wherever the guards hold. A symbol whose value depends on elements has no hint
(it is *unbacked*); of it only what is known is answered: its range, and what `torch._check` said.

An integer expression is a polynomial in its one normal form, so that equal polynomials are equal texts: a sum of
products of *atoms* with whole coefficients. An atom is a symbol, or an operation that no polynomial says: `//`, `%`,
`max`, `min`. The text of an expression is Python, and Python evaluates it.

Symbols are no ints. What must have an int calls `__index__`, which is a guard, too: nothing reads a size unseen.

Source: PyTorch's torch.fx.experimental.symbolic_shapes, without sympy. Read next: tensor/metadata.py, where sizes live.
"""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple

from .inspection.frames import users_line

INT_MAX = 2**63 - 1
HUGE = 1 << 62  # no size comes near: that none exceeds such a bound is not worth a guard
UNLIMITED = (-(2**200), 2**200)


class Atom(str):
    """A symbol, or an operation on expressions, known by its text."""

    __slots__ = ("kind", "args")
    kind: str
    args: tuple[Any, ...]

    @classmethod
    def symbol(cls, name: str) -> Atom:
        return cls.made("symbol", name, ())

    @classmethod
    def made(cls, kind: str, text: str, args: tuple[Any, ...]) -> Atom:
        atom = str.__new__(cls, text)
        atom.kind, atom.args = kind, args
        return atom


Monomial = tuple[Atom, ...]  # sorted; an atom stands as often as its power says


class Expr:
    """A polynomial over atoms with whole coefficients, in normal form. Immutable; equal ones have equal texts."""

    __slots__ = ("terms", "text")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        kept = {monomial: factor for monomial, factor in terms.items() if factor}
        if len(kept) > 1:
            kept = {one: kept[one] for one in sorted(kept, key=lambda monomial: (-len(monomial), monomial))}
        self.terms = kept
        self.text = text_of(self.terms)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return self.text == str(other)

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def number(self) -> int | None:
        """The value of an expression without symbols; else None."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def free_symbols(self) -> set[Atom]:
        return {one for monomial in self.terms for atom in monomial for one in symbols_of(atom)}

    def is_integer(self) -> bool:
        return True

    def __add__(self, other: Any) -> Expr:
        terms = dict(self.terms)
        for monomial, factor in expr(other).terms.items():
            terms[monomial] = terms.get(monomial, 0) + factor
        return Expr(terms)

    def __mul__(self, other: Any) -> Expr:
        terms: dict[Monomial, int] = {}
        for one, factor in self.terms.items():
            for two, times in expr(other).terms.items():
                monomial = tuple(sorted(one + two))
                terms[monomial] = terms.get(monomial, 0) + factor * times
        return Expr(terms)

    __radd__, __rmul__ = __add__, __mul__

    @staticmethod
    def total(parts: Iterable[Expr]) -> Expr:
        return sum(parts, start=Expr({}))

    def __neg__(self) -> Expr:
        return self * -1

    def __sub__(self, other: Any) -> Expr:
        return self + -expr(other)

    def __rsub__(self, other: Any) -> Expr:
        return expr(other) - self


def text_of(terms: Mapping[Monomial, int]) -> str:
    text = ""
    for monomial, factor in terms.items():
        size = "*".join(monomial) if abs(factor) == 1 and monomial else "*".join([str(abs(factor)), *monomial])
        text += (" - " if text else "-") + size if factor < 0 else (" + " if text else "") + size
    return text or "0"


def symbols_of(value: Any) -> set[Atom]:
    """The symbols in an atom, an expression or a condition; none in a number."""
    if isinstance(value, Atom):
        return {value} if value.kind == "symbol" else {one for arg in value.args for one in symbols_of(arg)}
    return value.free_symbols if isinstance(value, Expr) else set()


def expr(value: Any) -> Expr:
    """An expression from an int or an atom; an expression is itself."""
    if isinstance(value, Expr):
        return value
    return Expr({(value,): 1} if isinstance(value, Atom) else {(): int(value)})


# The operations that no polynomial says: their texts, and what is known to make them simpler --------------------------

TEMPLATES = {
    "//": "({} // {})", "%": "({} % {})", "max": "max({}, {})", "min": "min({}, {})", "**": "({}) ** ({})",
    "&": "({} & {})", "|": "({} | {})", "<<": "({} << {})", ">>": "({} >> {})", "/": "({} / {})", "+": "({} + {})",
    "-": "({} - {})", "*": "({} * {})", "floor": "floor({})", "ceil": "ceil({})", "trunc": "trunc({})",
    "float": "float({})", "round": "round({})", "^": "({} ^ {})", "ite": "({1} if {0} else {2})",
    "==": "{} == {}", "!=": "{} != {}", "<": "{} < {}", "<=": "{} <= {}", ">": "{} > {}", ">=": "{} >= {}",
    "and": "({}) and ({})", "or": "({}) or ({})", "not": "not ({})",
}  # fmt: skip
NAMESPACE = {name: function for name, function in vars(math).items() if not name.startswith("_")}
NAMESPACE |= {"max": max, "min": min, "float": float, "round": round, "__builtins__": {}}
NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def atom(kind: str, *args: Any) -> Atom:
    """An operation as it stands."""
    template = TEMPLATES.get(kind) or f"{kind}({', '.join('{}' for _ in args)})"
    texts = [f"({one})" if template[0] == "(" and is_compound(one) else str(one) for one in args]
    return Atom.made(kind, template.format(*texts), args)


def is_compound(value: Any) -> bool:
    """Whether a text needs parentheses beside an operator: a sum or a product."""
    return isinstance(value, Expr) and value.number is None and (value.text,) not in value.terms


def quotient(p: Expr, q: Expr) -> tuple[Expr, Expr]:
    """(k, r) with p == k * q + r, as much in k as whole coefficients allow."""
    divisor, factor = next(iter(q.terms.items()))
    if len(q.terms) > 1:  # all or nothing
        lead = next(iter(p.terms.items()), ((), 0))
        rest = without(lead[0], divisor)
        if rest is not None and lead[1] % factor == 0:
            k = Expr({rest: lead[1] // factor})
            if not (p - k * q).terms:
                return k, Expr({})
        return Expr({}), p
    terms: dict[Monomial, int] = {}
    for monomial, times in p.terms.items():
        rest = without(monomial, divisor)
        if rest is not None and times // factor:
            terms[rest] = times // factor if times % factor == 0 or not divisor else 0
    return Expr(terms), p - Expr(terms) * q


def without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """A product divided by another; None where that leaves a fraction."""
    rest = list(monomial)
    for one in divisor:
        if one not in rest:
            return None
        rest.remove(one)
    return tuple(rest)


def floordiv(p: Expr, q: Expr) -> Expr:
    """p // q, for a q that is not 0. ZeroDivisionError for one that is."""
    if q.number == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    k, rest = quotient(p, q)
    if not rest.terms:
        return k
    if rest.number is not None and q.number is not None:
        return k + rest.number // q.number
    if len(rest.terms) == 1:
        ((monomial, factor),) = rest.terms.items()
        inner = monomial[0] if len(monomial) == 1 and factor == 1 else None
        if inner is not None and inner.kind == "//" and positive(inner.args[1]) and positive(q):  # (x // 2) // 3
            return k + floordiv(inner.args[0], inner.args[1] * q)
    return k + expr(atom("//", rest, q))


def positive(q: Expr) -> bool:
    return q.number is not None and q.number > 0


def remainder(p: Expr, q: Expr) -> Expr:
    """p % q, for a q that is not 0. ZeroDivisionError for one that is."""
    if q.number == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    rest = quotient(p, q)[1]
    if not rest.terms:
        return rest
    if rest.number is not None and q.number is not None:
        return expr(rest.number % q.number)
    return expr(atom("%", rest, q))


def power(p: Expr, q: Expr) -> Expr:
    if q.number is None or not 0 <= q.number <= 16:
        return expr(atom("**", p, q))
    return math.prod([p] * q.number, start=expr(1))


def extreme(kind: str, p: Expr, q: Expr) -> Expr:
    """max or min of two, that of two numbers worked out."""
    if p == q:
        return p
    if p.number is not None and q.number is not None:
        return expr({"max": max, "min": min}[kind](p.number, q.number))
    return expr(atom(kind, *sorted((p, q), key=str)))


BUILD: dict[str, Callable[..., Expr]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": floordiv,
    "%": remainder,
    "**": power,
    "max": lambda p, q: extreme("max", p, q),
    "min": lambda p, q: extreme("min", p, q),
}


@lru_cache(4096, typed=True)  # an atom equals an expression of the same text
def build(kind: str, *args: Any) -> Any:
    """An operation on expressions, in normal form."""
    if kind in BUILD and all(isinstance(one, Expr) for one in args):
        return BUILD[kind](*args)
    if all(isinstance(one, Expr) and one.number is not None for one in args):  # 3 & 5, floor(2)
        value = evaluate(atom(kind, *args), {})
        if type(value) is int:
            return expr(value)
    return atom(kind, *args)


def substitute(value: Any, by: Mapping[Atom, Expr]) -> Any:
    """An expression or a condition with other expressions in the places of symbols."""
    if isinstance(value, Atom):
        if value.kind == "symbol":
            return by.get(value, expr(value))
        return build(value.kind, *(substitute(one, by) for one in value.args))
    if not isinstance(value, Expr) or not by.keys() & value.free_symbols:
        return value
    total = expr(0)
    for monomial, factor in value.terms.items():
        total = total + math.prod((expr(substitute(one, by)) for one in monomial), start=expr(factor))
    return total


@lru_cache(4096)
def compiled(text: str) -> Any:
    return compile(text, f"<guard {text}>", "eval")


def evaluate(value: Any, hints: Mapping[Any, Any]) -> Any:
    """The value of an expression or a condition, by the values of its symbols. KeyError where one has none."""
    if isinstance(value, Expr) and value.number is not None:
        return value.number
    values = {str(one): hints[one] for one in symbols_of(value)}
    return eval(compiled(str(value)), NAMESPACE, values)


Range = tuple[int, int]


class Limits(NamedTuple):
    """Two numbers between which another lies."""

    lower: int
    upper: int


def times(one: Range, two: Range) -> Range:
    ends = [a * b for a in one for b in two]
    return min(ends), max(ends)


def bounds(value: Any, ranges: Mapping[Atom, Range]) -> Range:
    """Two numbers between which an expression lies, whatever its symbols are within their ranges."""
    if isinstance(value, Expr):
        atoms = {one: bounds(one, ranges) for monomial in value.terms for one in monomial}
        if len(value.terms) > 1:  # s0*s1 - s0 is (s0' + 2)*(s1' + 2) - (s0' + 2), where s0' and s1' are not negative
            lows = {one: low for one, (low, _) in atoms.items() if low > -HUGE}
            value = Expr.total(
                math.prod((expr(one) + lows.get(one, 0) for one in monomial), start=expr(factor))
                for monomial, factor in value.terms.items()
            )
            atoms = {one: (low - lows.get(one, 0), high - lows.get(one, 0)) for one, (low, high) in atoms.items()}
        low = high = 0
        for monomial, factor in value.terms.items():
            term = (factor, factor)
            for one in monomial:
                term = times(term, atoms[one])
            low, high = low + term[0], high + term[1]
        return low, high
    if value.kind == "symbol":
        return ranges.get(value, UNLIMITED)
    if value.kind in ("max", "min"):
        one, two = (bounds(arg, ranges) for arg in value.args)
        pick = max if value.kind == "max" else min
        return pick(one[0], two[0]), pick(one[1], two[1])
    if value.kind == "ite":
        one, two = (bounds(arg, ranges) for arg in value.args[1:])
        return min(one[0], two[0]), max(one[1], two[1])
    if value.kind in ("//", "%"):
        top, (low, high) = bounds(value.args[0], ranges), bounds(value.args[1], ranges)
        if low > 0:
            if value.kind == "%":
                return 0, min(high - 1, top[1]) if top[0] >= 0 else high - 1
            ends = [a // b for a in top for b in (low, high)]
            return min(ends), max(ends)
    return UNLIMITED


def negated(condition: Atom) -> Atom:
    if condition.kind in NEGATED:
        return atom(NEGATED[condition.kind], *condition.args)
    return condition.args[0] if condition.kind == "not" else atom("not", condition)


# What is known of symbols ---------------------------------------------------------------------------------------------


class GuardOnDataDependentSymNode(RuntimeError):
    """A program asked about a number that depends on elements. `cond`: what it asked."""

    def __init__(self, cond: Any, *args: Any) -> None:
        super().__init__(*args)
        self.cond = cond


class Guard(NamedTuple):
    """A condition under which what was seen holds."""

    expr: Atom

    def __str__(self) -> str:
        return str(self.expr)


def asked_by_library() -> bool:
    """Whether the library asks, to work out how a result looks, and not a program.

    Its caches may know a number by its expression; a program's dictionary would not see that `s0` is 5. And what it
    asks about a size that depends on elements, to find special cases, is answered as for a size of two and more.
    """
    frame: Any = sys._getframe(2)
    while frame.f_globals is globals():
        frame = frame.f_back
    return str(frame.f_globals.get("__name__")).startswith("redispatch.")


class ShapeEnv:
    """The symbols of one run: their hints, their ranges, what they equal, and the guards that were asked for.

    duck_shape: whether sizes that are equal at first are one symbol. specialize_zero_one: whether 0 and 1 are numbers.
    """

    def __init__(
        self,
        *,
        duck_shape: bool | None = True,
        specialize_zero_one: bool = True,
        allow_scalar_outputs: bool = True,
        allow_dynamic_output_shape_ops: bool = True,
        **ignored: Any,
    ) -> None:
        self.duck_shape, self.specialize_zero_one = duck_shape is not False, specialize_zero_one
        self.allow_scalar_outputs = allow_scalar_outputs
        self.allow_dynamic_output_shape_ops = allow_dynamic_output_shape_ops
        self.named = 0  # tensors without a name
        self.guards: list[Guard] = []
        self.pending_fresh_unbacked_symbols: list[Atom] = []  # which no node of a graph is known to bring
        self.deferred: list[Atom] = []  # what torch._check said of unbacked symbols
        self.var_to_val: dict[Atom, int] = {}
        self.var_to_range: dict[Atom, Range] = {}
        self.var_to_sources: dict[Atom, list[str]] = {}
        self.replacements: dict[Atom, Expr] = {}
        self._simplified: dict[Any, Any] = {}  # by these
        self._answers: dict[Atom, bool | None] = {}  # of `known`, until more is known
        self.size_like: set[Atom] = set()
        self._facts: list[Expr] = []  # each is known to be >= 0
        self._ducks: dict[Any, Atom] = {}
        self._known: set[str] = set()
        self._count = {"s": 0, "u": 0, "zuf": 0}
        self.frozen = False

    _init = __init__  # where PyTorch's tests find the settings

    # Symbols

    def new_symbol(self, prefix: str) -> Atom:
        number = self._count[prefix]
        self._count[prefix] = number + 1
        return Atom.symbol(f"{prefix}{number}")

    def create_symbol(
        self,
        value: int,
        source: Any = "",
        dynamic_dim: Any = None,
        constraint_dim: Any = None,
        *,
        duck: bool | None = None,
        size: bool = True,
    ) -> Expr:
        """The expression for a size (or an int) that is `value` now: a number for 0 and 1, else a symbol.

        source: its name, or what has one. dynamic_dim: a DimDynamic, which says whether equal sizes share it, and
        whether it is a number; `duck` says the former.
        """
        how = getattr(dynamic_dim, "name", None)
        if how == "STATIC":
            return expr(value)
        duck = how == "DUCK" if how is not None else duck
        source = getattr(source, "name", source)
        if self.specialize_zero_one and value in (0, 1):
            return expr(value)
        duck = self.duck_shape if duck is None else duck
        found = self._ducks.get((value, size)) if duck else None
        if found is None:
            found = self.new_symbol("s")
            self.var_to_val[found] = value
            low = 2 if self.specialize_zero_one else 0
            self.var_to_range[found] = (low, INT_MAX) if size else (-INT_MAX - 1, INT_MAX)
            self.var_to_sources[found] = []
            if duck:
                self._ducks[value, size] = found
        self.var_to_sources[found].append(source)
        return expr(found)

    def create_symintnode(self, sym: Any, *, hint: int | None = None, source: Any = None) -> Any:
        return wrapped(self, sym)

    def create_unspecified_symint(self, value: int, source: str = "") -> Any:
        return wrapped(self, self.create_symbol(value, source, size=value >= 0))

    def create_unbacked_symint(self) -> Any:
        """A whole number of which nothing is known."""
        symbol = self.new_symbol("u")
        self.pending_fresh_unbacked_symbols.append(symbol)
        self.var_to_range[symbol] = (-INT_MAX - 1, INT_MAX)
        return wrapped(self, expr(symbol))

    def create_unbacked_symbool(self) -> Any:
        symbol = self.new_symbol("u")
        self.var_to_range[symbol] = (0, 1)
        return wrapped(self, atom("==", expr(symbol), expr(1)))

    def create_unbacked_symfloat(self) -> Any:
        return wrapped(self, atom("float", expr(self.new_symbol("zuf"))))

    def create_unbacked_size(self) -> Any:
        """The size of a result that depends on elements."""
        made = self.create_unbacked_symint()
        (symbol,) = made.node.expr.free_symbols
        self.var_to_range[symbol] = (0, INT_MAX)
        self.size_like.add(symbol)
        return made

    # Questions

    def simplify(self, value: Any) -> Any:
        """An expression or a condition by what is known to be equal."""
        if not self.replacements:
            return value
        known = self._simplified.get((type(value), value))
        if known is None:
            known = value
            while self.replacements.keys() & symbols_of(known):
                known = substitute(known, self.replacements)
            self._simplified[type(value), value] = known
        return known

    replace = simplify

    def is_now(self, symbol: Atom, value: Expr) -> None:
        """Has a symbol stand for an expression from now on."""
        self.replacements[symbol] = value
        self._simplified.clear()
        self._answers.clear()

    def has_hint(self, value: Any) -> bool:
        return symbols_of(value) <= self.var_to_val.keys()

    has_guarding_hint = has_hint

    def size_hint(self, value: Any, *, allow_none: bool = False) -> int | None:
        """The value of now. GuardOnDataDependentSymNode where elements decide, unless it may be None."""
        value = self.simplify(value)
        if self.has_hint(value):
            found: int = evaluate(value, self.var_to_val)
            return found
        if allow_none:
            return None
        raise self.data_dependent(value, value)

    guarding_hint_or_throw = size_hint

    def is_unbacked_symint(self, symbol: Any) -> bool:
        """Whether a symbol's value depends on elements."""
        return str(symbol)[:1] in "uz" and symbol not in self.var_to_val

    def bound(self, value: Any) -> Range:
        return bounds(value, self.var_to_range)

    def bound_sympy(self, value: Any) -> Limits:
        """Returns between which numbers an expression lies: `lower` and `upper`."""
        return Limits(*self.bound(value))

    def known(self, condition: Atom, ranges: Mapping[Atom, Range] | None = None) -> bool | None:
        """Whether a condition is known to hold, or known not to; None where that is open."""
        if ranges is not None:
            return self.worked_out(condition, ranges)
        if condition not in self._answers:
            self._answers[condition] = self.worked_out(condition, None)
        return self._answers[condition]

    def worked_out(self, condition: Atom, ranges: Mapping[Atom, Range] | None) -> bool | None:
        kind, args = condition.kind, condition.args
        if kind in ("and", "or", "not"):
            parts = [self.known(one, ranges) for one in args]
            if kind == "not":
                return None if parts[0] is None else not parts[0]
            decided = kind == "or"
            return decided if decided in parts else None if None in parts else not decided
        if kind not in NEGATED or not all(isinstance(one, Expr) for one in args):
            return None
        if kind in ("!=", "<", ">"):
            inverse = self.known(negated(condition), ranges)
            return None if inverse is None else not inverse
        difference = args[0] - args[1] if kind != "<=" else args[1] - args[0]
        low, high = bounds(difference, ranges or self.var_to_range)
        if kind == "==":
            if low == high == 0:
                return True
            if low > 0 or high < 0 or f"{difference} != 0" in self._known or f"{-difference} != 0" in self._known:
                return False
            if self.follows(difference - 1) or self.follows(-difference - 1):
                return False
            return True if self.follows(difference) and self.follows(-difference) else None
        if low >= 0 or self.follows(difference):
            return True
        return False if high < 0 or self.follows(-difference - 1) or low > -HUGE and high < -HUGE else None

    def follows(self, difference: Expr) -> bool:
        """Whether an expression is >= 0 because one that is known to be is no greater."""
        if any(self.bound(difference - fact)[0] >= 0 for fact in self._facts):
            return True
        for step, factor in difference.terms.items():
            if factor > 0 and len(step) == 1 and step[0].kind == "max":  # no less than either of the two
                rest = difference - Expr({step: factor})
                return any(self.bound(rest + one * factor)[0] >= 0 for one in step[0].args)
        return False

    def evaluate(self, condition: Any, oblivious: bool = False) -> bool:
        """The answer to a condition. Where it is not known for certain, the hints give it, and it becomes a guard.

        oblivious: whether a size that depends on elements is taken for two or more.
        Errors: GuardOnDataDependentSymNode where a symbol has no hint.
        """
        asked = condition
        condition = self.simplify(condition)
        answer = self.known(condition)
        if answer is not None:
            return answer
        if exceeds(condition):
            return condition.kind in ("<", "<=")
        if not self.has_hint(condition):
            answer = self.oblivious(condition) if oblivious else None
            if answer is not None:
                return answer
            raise self.data_dependent(asked, condition)
        answer = bool(evaluate(condition, self.var_to_val))
        holds = condition if answer else negated(condition)
        if not self.frozen:
            self.guards.append(Guard(holds))
            self.learn(holds)
        return answer

    def oblivious(self, condition: Atom) -> bool | None:
        """The answer for sizes of two and more, whatever elements say."""
        ranges = {one: self.var_to_range.get(one, UNLIMITED) for one in symbols_of(condition) - self.var_to_val.keys()}
        wide = {one: (max(low, 2), high) for one, (low, high) in ranges.items() if low >= 0 and high >= 2}
        return self.known(condition, {**self.var_to_range, **wide}) if wide else None

    def data_dependent(self, asked: Any, condition: Any) -> GuardOnDataDependentSymNode:
        sizes = ", ".join(sorted(self.size_like & symbols_of(condition))) or "none"
        where = f"data-dependent expression {condition} (unhinted: {asked}).  (Size-like symbols: {sizes})\n\n"
        here = f"\nIt is asked here:\n{users_line()}"
        why = "The value depends on elements of a tensor, so no answer holds for all of them. "
        if isinstance(condition, Expr):
            return GuardOnDataDependentSymNode(
                condition,
                f"Could not extract specialized integer from {where}{why}Compute with it as it is, or say that it is a "
                f"number by torch._check({condition} == 5).{here}",
            )
        return GuardOnDataDependentSymNode(
            condition,
            f"Could not guard on {where}{why}Say what is true of it by torch._check({negated(condition)}) or "
            f"torch._check({condition}), or compute both ways and choose by torch.where or torch.cond.{here}",
        )

    def evaluate_expr(self, value: Any) -> Any:
        """The value of an expression, which becomes a guard."""
        value = self.simplify(value)
        if isinstance(value, Atom) and value.kind in (*NEGATED, "and", "or", "not"):
            return self.evaluate(value)
        if isinstance(value, Expr) and value.number is not None:
            return value.number
        if not self.has_hint(value):
            raise self.data_dependent(value, value)
        found = evaluate(value, self.var_to_val)
        if isinstance(found, int) and isinstance(value, Expr):
            self.evaluate(atom("==", value, expr(found)))
        else:
            self.guards.append(Guard(atom("==", value, found)))
        return found

    # Facts

    def learn(self, condition: Atom) -> None:
        """Notes that a condition holds."""
        kind, args = condition.kind, condition.args
        self._answers.clear()
        self._known.add(str(condition))
        if kind == "and":
            for one in args:
                self.learn(one)
        if kind not in NEGATED or not all(isinstance(one, Expr) for one in args):
            return
        difference = args[0] - args[1]
        if kind == "!=":
            self._known.add(f"{difference} != 0")
        elif kind == "==":
            self.equal(difference)
        else:
            less = difference if kind[0] == ">" else -difference
            self.at_least(less - (len(kind) == 1))

    def at_least(self, fact: Expr) -> None:
        """Notes that an expression is >= 0: a range, if it is of one symbol alone, or of one times positive ones."""
        self._facts.append(fact)
        symbols = [one for one in fact.terms if one]
        if len(fact.terms) == 1 and symbols and fact.terms[symbols[0]] > 0:
            unsure = [one for one in symbols[0] if bounds(one, self.var_to_range)[0] < 1]
            if len(unsure) == 1 and unsure[0].kind == "symbol" and len(symbols[0]) > 1:
                low, high = self.var_to_range[unsure[0]]
                self.narrow(unsure[0], max(low, 0), high)
        if len(symbols) == 1 and len(symbols[0]) == 1 and symbols[0][0].kind == "symbol":
            symbol, factor, rest = symbols[0][0], fact.terms[symbols[0]], fact.terms.get((), 0)
            low, high = self.var_to_range[symbol]
            if factor > 0:
                low = max(low, -(rest // factor))
            else:
                high = min(high, rest // -factor)
            self.narrow(symbol, low, high)

    def narrow(self, symbol: Atom, low: int, high: int) -> None:
        """Notes between which numbers a symbol lies."""
        if low > high:
            raise RuntimeError(f"{symbol} would have to be at least {low} and at most {high}")
        self._answers.clear()
        self.var_to_range[symbol] = low, high
        if low == high:
            self.is_now(symbol, expr(low))

    def equal(self, difference: Expr) -> None:
        """Notes that an expression is 0: one of its symbols becomes the rest of it, the youngest that can."""
        for symbol in sorted(difference.free_symbols, key=lambda one: (one[0] == "u", len(one), one), reverse=True):
            factor = difference.terms.get((symbol,), 0)
            rest = difference - Expr({(symbol,): factor})
            if abs(factor) == 1 and symbol not in rest.free_symbols:
                found = rest * -factor
                low, high = self.bound(found)
                mine = self.var_to_range[symbol]
                if symbol[0] == "u" or not any(one[0] == "u" for one in found.free_symbols):
                    self.is_now(symbol, found)
                    if mine[0] > -HUGE:
                        self.at_least(found - mine[0])  # what was known of the symbol is known of the rest
                    if mine[1] < HUGE:
                        self.at_least(expr(mine[1]) - found)
                    if len(found.free_symbols) == 1 and len(found.terms) == 1 and found == expr(*found.free_symbols):
                        (other,) = found.free_symbols
                        self.narrow(other, max(low, mine[0]), min(high, mine[1]))
                    return
        self._facts += [difference, -difference]

    def check(self, condition: Any, message: Callable[[], str] | None = None) -> bool:
        """Has a condition hold from now on. What is known of hints is asked now; of elements, when the graph runs."""
        condition = self.simplify(condition)
        answer = self.known(condition)
        if answer is None and self.has_hint(condition):
            return self.evaluate(condition)
        if answer is None:
            self.deferred.append(condition)
            self.learn(condition)
            return True
        return answer

    def constrain_range(self, symbol: Atom, low: int | None, high: int | None) -> None:
        mine = self.var_to_range[symbol]
        self.narrow(
            symbol, mine[0] if low is None else max(low, mine[0]), mine[1] if high is None else min(high, mine[1])
        )

    # Guards as text

    def placed(self, placeholders: Iterable[Any], values: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """(an expression or number of a placeholder, the number in its place): sizes, strides and offset of tensors."""
        for symbolic, value in zip(placeholders, values, strict=True):
            if hasattr(symbolic, "stride"):
                yield from zip(symbolic.shape, value.shape, strict=True)
                yield from zip(symbolic.stride(), value.stride(), strict=True)
                yield symbolic.storage_offset(), value.storage_offset()
            elif isinstance(symbolic, int | SymInt):
                yield symbolic, value

    def bind_symbols(self, placeholders: Any, args: Any) -> dict[Atom, Any]:
        """Returns for each symbol that is a size, stride or offset of placeholders the number in its place."""
        found: dict[Atom, Any] = {}
        for symbolic, value in self.placed(placeholders, args):
            if isinstance(symbolic, SymInt) and symbolic.node.original.terms == {(one := atom_of(symbolic),): 1}:
                found.setdefault(one, value)
        return found

    def produce_guards(self, placeholders: Any, sources: Any, **ignored: Any) -> list[str]:
        """Returns the guards as Python on the sources of placeholders, each a text."""
        names = {str(one): places[0] for one, places in self.var_to_sources.items() if places}
        texts = [str(one) for one in self.guards if symbols_of(one.expr)]
        return [re.sub(r"\b[a-z]+\d+\b", lambda found: names.get(found[0], found[0]), text) for text in texts]

    def evaluate_guards_expression(self, code: str, args: Iterable[Any]) -> bool:
        """Returns what guards of `produce_guards_expression` say of numbers in the place of the symbols, in order."""
        symbols = sorted(set(re.findall(r"\bs\d+\b", code)), key=lambda name: int(name[1:]))
        return bool(eval(code, dict(NAMESPACE), dict(zip(symbols, args, strict=False))))

    @property
    def num_deferred_runtime_asserts(self) -> int:
        return len(self.deferred)

    @property
    def deferred_runtime_asserts(self) -> dict[Any, list[Any]]:
        """Returns conditions that unbacked symbols were said to meet, by the youngest symbol in each."""
        found: dict[Any, list[Any]] = {}
        for condition in self.deferred:
            found.setdefault(max(symbols_of(condition), default=None, key=lambda one: (len(one), one)), []).append(
                condition
            )
        return found

    @contextmanager
    def ignore_fresh_unbacked_symbols(self) -> Iterator[None]:
        """A region whose new unbacked symbols are no results of nodes."""
        kept = list(self.pending_fresh_unbacked_symbols)
        try:
            yield
        finally:
            self.pending_fresh_unbacked_symbols[:] = kept

    def produce_guards_expression(self, placeholders: Any, *, ignore_static: bool = True, **ignored: Any) -> str | None:
        """The guards as a Python expression of the symbols; None where there is none."""
        guards = [f"({one})" for one in self.guards if symbols_of(one.expr)]
        for symbol, (low, high) in self.var_to_range.items():
            if symbol in self.var_to_val and symbol not in self.replacements:
                guards += [f"({low} <= {symbol})"] * (low > -HUGE) + [f"({symbol} <= {high})"] * (high < HUGE)
        return " and ".join(dict.fromkeys(guards)) or None

    def evaluate_guards_for_args(self, placeholders: Any, args: Any, *, ignore_static: bool = True) -> bool:
        """Whether what was seen for `placeholders` holds for other arguments in their places."""
        values: dict[Atom, int] = {}
        later: list[tuple[Any, Any]] = []
        for symbolic, value in self.placed(placeholders, args):
            found = symbolic.node.original if isinstance(symbolic, SymInt) else expr(symbolic)
            if len(found.terms) == 1 and found.number is None and found == expr(*sorted(found.free_symbols)[:1]):
                (symbol,) = found.free_symbols
                if values.setdefault(symbol, value) != value:
                    return False
            else:
                later.append((found, value))
        if any(symbols_of(one) <= values.keys() and evaluate(one, values) != value for one, value in later):
            return False
        whole = self.produce_guards_expression(placeholders)
        return whole is None or bool(eval(compiled(whole), NAMESPACE, {**{str(k): v for k, v in values.items()}}))

    def format_guards(self, verbose: bool = False) -> str:
        return "\n".join(f" - {one}" for one in self.guards)

    @contextmanager
    def suppress_guards(self) -> Iterator[None]:
        """A region in which what is asked leaves no guards."""
        former, self.frozen = self.frozen, True
        try:
            yield
        finally:
            self.frozen = former

    def freeze(self) -> None:
        """Has what is asked from now on leave no guards."""
        self.frozen = True

    def __repr__(self) -> str:
        return f"<ShapeEnv of {', '.join(self.var_to_range) or 'no symbols'}, {len(self.guards)} guards>"


def exceeds(condition: Atom) -> bool:
    """Whether a condition asks if a number is as large as none is."""
    args = condition.args
    return condition.kind in NEGATED and isinstance(args[1], Expr) and (args[1].number or 0) >= HUGE


class FakeImplCtx:
    """Answer of `library.get_ctx()` to a fake of an operator, which asks it for sizes that depend on elements."""

    def __init__(self, shape_env: ShapeEnv | None, refused: Callable[[], Exception]) -> None:
        self._shape_env, self._refused = shape_env, refused

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """A size of which no more is known than that it lies between two numbers."""
        if self._shape_env is None or not self._shape_env.allow_dynamic_output_shape_ops:
            raise self._refused()
        if isinstance(min, SymInt) or isinstance(max, SymInt):
            raise ValueError(
                f"ctx.new_dynamic_size(min={min}, max={max}): expected min and max to be statically known ints"
            )
        if min < 0:
            raise ValueError(f"ctx.new_dynamic_size(min={min}, ...): expected min to be greater than or equal to 0")
        size = self._shape_env.create_unbacked_size()
        (symbol,) = size.node.expr.free_symbols
        self._shape_env.constrain_range(symbol, min, max)
        return size

    create_unbacked_symint = new_dynamic_size


FAKE_CONTEXT: ContextVar[FakeImplCtx | None] = ContextVar("the fake of an operator that runs", default=None)


# The numbers ----------------------------------------------------------------------------------------------------------

COMPARED = {"==", "!=", "<", "<=", ">", ">=", "and", "or", "not"}
FUNCTIONS: dict[str, Any] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "/": operator.truediv, "&": operator.and_, "|": operator.or_, "^": operator.xor,
    "<<": operator.lshift, ">>": operator.rshift, "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge, "floor": math.floor, "ceil": math.ceil,
    "trunc": math.trunc, "round": round,
}  # fmt: skip


class SymNode:
    """Inside of a symbolic number: its expression, the environment that knows the symbols, and how it was made.

    `made` is (kind of operation, operands), by which a tracer writes the same steps again; () for what was given.
    """

    __slots__ = ("original", "shape_env", "made", "pytype", "__weakref__")

    def __init__(
        self, value: Any, shape_env: ShapeEnv, pytype: type, made: tuple[Any, ...] = (), *, hint: Any = None
    ) -> None:
        """hint: what PyTorch is told here; the environment knows it."""
        self.original, self.shape_env, self.pytype, self.made = value, shape_env, pytype, made

    @property
    def expr(self) -> Any:
        return self.shape_env.simplify(self.original)

    _expr = expr

    @property
    def hint(self) -> Any:
        """The value of now; None where it depends on elements."""
        value = self.expr
        return evaluate(value, self.shape_env.var_to_val) if self.shape_env.has_hint(value) else None

    def has_hint(self) -> bool:
        return self.shape_env.has_hint(self.expr)

    def require_hint(self) -> Any:
        if not self.has_hint():
            raise self.shape_env.data_dependent(self.original, self.expr)
        return self.hint

    def maybe_as_int(self) -> int | None:
        return self.expr.number if isinstance(self.expr, Expr) else None

    def is_symbolic(self) -> bool:
        return True

    def is_constant(self) -> bool:
        return False

    def is_nested_int(self) -> bool:
        return False

    def is_int(self) -> bool:
        return self.pytype is int

    def is_float(self) -> bool:
        return self.pytype is float

    def is_bool(self) -> bool:
        return self.pytype is bool

    def guard_int(self, file: str = "", line: int = 0) -> int:
        return int(self.shape_env.evaluate_expr(self.original))

    def guard_float(self, file: str = "", line: int = 0) -> float:
        return float(self.shape_env.evaluate_expr(self.original))

    def guard_bool(self, file: str = "", line: int = 0) -> bool:
        return self.shape_env.evaluate(self.original)

    def expect_true(self, file: str = "", line: int = 0) -> bool:
        return self.shape_env.check(self.original)

    def guard_size_oblivious(self, file: str = "", line: int = 0) -> bool:
        return self.shape_env.evaluate(self.original, oblivious=True)

    def __str__(self) -> str:
        return str(self.expr)


class ConstantNode(SymNode):
    """The inside of a plain number that is to be taken for a symbolic one. What is computed with it is so, too."""

    __slots__ = ("value",)

    def __init__(self, value: Any, shape_env: ShapeEnv) -> None:
        super().__init__(expr(value) if type(value) is int else value, shape_env, type(value))
        self.value = value

    expr = hint = property(operator.attrgetter("value"))

    def has_hint(self) -> bool:
        return True

    def maybe_as_int(self) -> int | None:
        return self.value if type(self.value) is int else None

    def is_symbolic(self) -> bool:
        return False

    def is_constant(self) -> bool:
        return True

    def guard_int(self, file: str = "", line: int = 0) -> Any:
        return self.value

    guard_float = guard_bool = expect_true = guard_size_oblivious = require_hint = guard_int

    def __str__(self) -> str:
        return str(self.value)


def with_constants(env: ShapeEnv, kind: str, args: tuple[Any, ...]) -> Any:
    """An operation of which some operands are symbolic in name alone; and so is what comes of numbers."""
    plain = [one.node.hint if isinstance(one, Symbolic) and one.node.is_constant() else one for one in args]
    symbolic = any(isinstance(one, Symbolic) for one in plain)
    found = apply(kind, *plain) if symbolic else evaluate(atom(kind, *plain), {})
    if kind in ("max", "min") and any(isinstance(one, float) for one in plain) and type(found) is int:
        found = float(found)
    return found if isinstance(found, Symbolic) else SYMBOLIC_CLASSES[type(found)](ConstantNode(found, env))


def atom_of(number: Any) -> Any:
    """Returns the first symbol of a number."""
    return min(number.node.original.free_symbols, default=None)


def wrapped(env: ShapeEnv, value: Any, made: tuple[Any, ...] = ()) -> Any:
    """A symbolic number for an expression; a plain one for what is known."""
    if isinstance(value, Expr):
        number = env.simplify(value).number
        return SymInt(SymNode(value, env, int, made)) if number is None else number
    if value.kind in COMPARED:
        answer = env.known(env.simplify(value))
        return SymBool(SymNode(value, env, bool, made)) if answer is None else answer
    return SymFloat(SymNode(value, env, float, made))


def parted(value: Any) -> Any:
    """Returns what stands for a number in an expression."""
    if isinstance(value, Symbolic):
        return value.node.original
    return expr(value) if isinstance(value, int) else value


def apply(kind: str, *args: Any) -> Any:
    """An operation of which an operand at least is a symbolic number."""
    nodes = [one.node for one in args if isinstance(one, Symbolic)]
    env = nodes[0].shape_env
    if any(one.is_constant() for one in nodes):
        return with_constants(env, kind, args)
    if kind == "**" and isinstance(args[1], int | SymInt) and env.known(build("<", parted(args[1]), expr(0))):
        args = (apply("float", args[0]) if isinstance(args[0], Symbolic) else float(args[0]), args[1])
    if kind in ("//", "%") and type(args[1]) is SymInt and args[1] == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    parts = [parted(one) for one in args]
    if kind in ("max", "min") and all(isinstance(one, Expr) for one in parts):
        above = env.known(env.simplify(atom(">=", *parts)))
        if above is not None:
            return args[0] if above is (kind == "max") else args[1]
    made = build(kind, *parts)
    numbers = parts[1:] if kind == "ite" else parts
    if isinstance(made, Atom) and (kind in ROUNDS or kind in WHOLE and all(isinstance(one, Expr) for one in numbers)):
        made = expr(made)
    return wrapped(env, made, (kind, *args))


ROUNDS, WHOLE = {"floor", "ceil", "trunc", "round"}, {"&", "|", "^", "<<", ">>", "ite"}


def operation(kind: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """The method of an operator with two operands, and that of the one with the operands the other way round."""

    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float | Symbolic):
            return NotImplemented
        return apply(kind, self, other)

    def reflected(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float | Symbolic):
            return NotImplemented
        return apply(kind, other, self)

    return method, reflected


class Symbolic:
    """A number that is an expression of symbols. `node`: what is behind it."""

    __slots__ = ("node", "__weakref__")
    __module__ = "redispatch"
    node: SymNode

    def __init__(self, node: SymNode) -> None:
        self.node = node

    def __str__(self) -> str:
        return str(self.node)

    __repr__ = __str__

    def __hash__(self) -> int:
        if not asked_by_library():
            kind = f"non-nested {type(self).__name__}"
            raise TypeError(f"unhashable type: {kind}: a dictionary would not see its value")
        return hash((id(self.node.shape_env), str(self.node.expr)))

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class Number(Symbolic):
    __slots__ = ()
    __module__ = "redispatch"

    __add__, __radd__ = operation("+")
    __sub__, __rsub__ = operation("-")
    __mul__, __rmul__ = operation("*")
    __floordiv__, __rfloordiv__ = operation("//")
    __mod__, __rmod__ = operation("%")
    __pow__, __rpow__ = operation("**")
    __truediv__, __rtruediv__ = operation("/")
    __lt__, __gt__ = operation("<")[0], operation(">")[0]
    __le__, __ge__ = operation("<=")[0], operation(">=")[0]
    __eq__, __ne__ = operation("==")[0], operation("!=")[0]
    __hash__ = Symbolic.__hash__

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return apply("max", self, -self)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __int__(self) -> int:
        return int(self.node.shape_env.evaluate_expr(self.node.original))

    def __float__(self) -> float:
        return float(self.node.shape_env.evaluate_expr(self.node.original))

    def __floor__(self) -> Any:
        return apply("floor", self)

    def __ceil__(self) -> Any:
        return apply("ceil", self)

    def __trunc__(self) -> Any:
        return apply("trunc", self)

    def __round__(self, ndigits: int | None = None) -> Any:
        return apply("round", self) if ndigits is None else round(float(self), ndigits)

    def __sym_max__(self, other: Any) -> Any:
        return apply("max", self, other)

    def __sym_min__(self, other: Any) -> Any:
        return apply("min", self, other)

    def __sym_float__(self) -> Any:
        return apply("float", self)

    def __sym_int__(self) -> Any:
        return apply("trunc", self)


class SymInt(Number):
    """A whole number that is an expression of symbols, such as a size. Where an int is needed, a guard makes it one."""

    __slots__ = ()
    __module__ = "redispatch"

    __and__, __rand__ = operation("&")
    __or__, __ror__ = operation("|")
    __xor__, __rxor__ = operation("^")
    __lshift__, __rlshift__ = operation("<<")
    __rshift__, __rrshift__ = operation(">>")
    __index__ = Number.__int__

    def __floor__(self) -> Any:
        return self

    def __round__(self, ndigits: int | None = None) -> Any:
        return self if ndigits is None or ndigits >= 0 else round(int(self), ndigits)

    __ceil__ = __trunc__ = __sym_int__ = __floor__

    def as_integer_ratio(self) -> tuple[Any, int]:
        return self, 1

    def bit_length(self) -> int:
        return int(self).bit_length()


def as_index(value: Any) -> Any:
    """A whole number as an int, one that is symbolic as it is. TypeError for what is none."""
    return value if type(value) is SymInt else int(operator.index(value))  # int(): a bool is its own index


def holds(condition: Any) -> bool:
    """The answer to a condition; one that elements decide is taken to hold, and what runs the graph will see."""
    if type(condition) is SymBool and not condition.node.has_hint():
        return condition.node.expect_true()
    return bool(condition)


class SymFloat(Number):
    """A number that is an expression of symbols."""

    __slots__ = ()
    __module__ = "redispatch"

    def is_integer(self) -> Any:
        return self == math.floor(self)


class SymBool(Symbolic):
    """A condition on symbols. Where a bool is needed, a guard makes it one."""

    __slots__ = ()
    __module__ = "redispatch"

    def __and__(self, other: Any) -> Any:
        if isinstance(other, SymBool) or self.node.is_constant():
            return apply("and", self, other)
        return self if other else False

    def __or__(self, other: Any) -> Any:
        if isinstance(other, SymBool) or self.node.is_constant():
            return apply("or", self, other)
        return True if other else self

    __rand__, __ror__ = __and__, __or__
    __hash__ = Symbolic.__hash__

    def __bool__(self) -> bool:
        if self.node.is_constant():
            return self.node.guard_bool()
        return self.node.shape_env.evaluate(self.node.original, asked_by_library())

    def __int__(self) -> int:
        return int(bool(self))

    def __sym_not__(self) -> Any:
        return apply("not", self)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, bool | SymBool):
            return NotImplemented
        if self.node.is_constant() or isinstance(other, SymBool) and other.node.is_constant():
            return apply("==", self, other)
        return bool(self) == bool(other)


SYMBOLIC_CLASSES: dict[type, Any] = {int: SymInt, float: SymFloat, bool: SymBool}
