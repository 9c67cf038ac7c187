"""Calls in the partial evaluator: which are answered at once, which are worked out in place, and which are left.

Answered at once are builtins on known things, `@pure` functions of known arguments. Worked out in place are `@inline`
functions, functions defined in the layer itself, and the layers, which `run` calls. What is left is a line of residual
code; unless it is known to be a leaf, a region that sets the dispatch state around it is left, too.

Read next: specialise.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType, MethodType, MethodWrapperType, UnionType
from typing import Any, cast

from .. import rules
from ..core.base import TensorBase
from ..core.interpreter import call, hop, run
from ..core.keyset import runtime_keys
from ..core.state import INFERENCE, MODES, NO_GRAD, OWN_POLICIES, STATE
from ..schema.convert import is_default
from ..schema.schema import NO_DEFAULT, TENSOR
from .evaluator import Evaluator, Path, foldable, known_function
from .reads import is_plain
from .residual import Block
from .site import UNKNOWN, Memo, Site, known_at
from .values import (
    NONE,
    Closure,
    Code,
    Items,
    Method,
    StateCode,
    Static,
    Unsupported,
    before,
    is_static,
    known,
    truth_of,
)

Answer = Callable[["Calls", list[Any], dict[str, Any], Path], Any]  # a value, or None where a call must be left

# Builtins that neither change anything nor ask the dispatch state
WITHOUT_EFFECT = {
    isinstance,
    issubclass,
    type,
    len,
    bool,
    tuple,
    list,
    dict,
    id,
    getattr,
    hasattr,
    int,
    float,
    str,
    repr,
}
CONTAINERS = (dict, list, tuple, set, frozenset, str, ContextVar)


class Calls(Evaluator):
    """The evaluator, calls included."""

    def call(self, node: ast.Call, path: Path, hint: str) -> list[tuple[Path, Any]]:
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            self.refuse_lazy(node, path)
        function, arguments, keywords, rest = self.parts(node, path)
        if rest is None:
            return self.apply(function, arguments, keywords, path, hint)
        return [(path, self.leave(function, arguments, keywords, path, hint, rest))]

    def refuse_lazy(self, node: ast.Call, path: Path) -> None:
        """A generator that is asked only as long as the answer is open must not do anything when it is asked."""
        asked = known_function(self.value(node.func, path))
        if asked in (any, all, next):
            trial = path.fork(Block())
            saved = self.writer.snapshot(), set(self.asked)
            self.value(node.args[0], trial)
            self.writer.restore(saved[0])
            self.asked = saved[1]
            if not trial.block.empty:
                raise Unsupported(f"{asked.__name__} of a generator that does something")

    def parts(self, node: ast.Call, path: Path) -> tuple[Any, list[Any], dict[str, Any], str | None]:
        """(function, arguments, keywords, text of a star that cannot be resolved)"""
        plain = [a.value if isinstance(a, ast.Starred) else a for a in node.args]
        function, *values = self.operands([node.func, *plain, *(k.value for k in node.keywords)], path)
        arguments: list[Any] = []
        rest = None
        for argument, value in zip(node.args, values, strict=False):
            if not isinstance(argument, ast.Starred):
                arguments.append(value)
            elif isinstance(value, Code):
                if argument is not node.args[-1]:
                    raise Unsupported("a star before something unknown, followed by more")
                rest = f"*{self.text(value, path)}"
            else:
                arguments += self.items(value, path)
        keywords: dict[str, Any] = {}
        for keyword, value in zip(node.keywords, values[len(node.args) :], strict=True):
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Items):
                keywords.update(zip(value.keys, value.items, strict=True))
            elif isinstance(value, Code):
                rest = f"{rest}, **{self.text(value, path)}" if rest else f"**{self.text(value, path)}"
            else:
                self.reads.fails("two stars before a known dict")
                keywords.update({name: Static(item) for name, item in value.value.items()})
        return function, arguments, keywords, rest

    def apply(
        self, function: Any, arguments: list[Any], keywords: dict[str, Any], path: Path, hint: str
    ) -> list[tuple[Path, Any]]:
        if isinstance(function, Closure):
            return self.inlined(function, arguments, keywords, path)
        if isinstance(function, Static):
            return self.apply_static(function, arguments, keywords, path, hint)
        if isinstance(function, Method):
            return self.apply_method(function, arguments, keywords, path, hint)
        return [(path, self.leave(function, arguments, keywords, path, hint))]

    def apply_static(
        self, function: Static, arguments: list[Any], keywords: dict[str, Any], path: Path, hint: str
    ) -> list[tuple[Path, Any]]:
        called = function.value
        if called == STATE.get:
            return [(path, path.state)]
        if isinstance(called, MethodType):
            self.reads.note(called.__func__, "attribute", called, "__func__")
            self.reads.note(called.__self__, "attribute", called, "__self__")
            return self.apply_method(Method(called.__func__, Static(called.__self__)), arguments, keywords, path, hint)
        answer = ANSWERS.get(called) if isinstance(called, Hashable) else None
        if answer is not None:
            value = answer(self, arguments, keywords, path)
            if value is not None:
                return [(path, value)]
        if called is run and is_static(arguments[1]):
            self.announce(arguments, path)
            return self.inlined(hop, arguments, keywords, path)
        if called is run or called is call:
            handed = self.hand_over(arguments, path, hint)
            if handed is not None:
                return [(path, handed)]
        if called in self.layers or getattr(called, "__inline__", False):
            return self.in_place(function, arguments, keywords, path, hint)
        given = (*arguments, *keywords.values())
        if is_pure(called) and all(map(is_static, given)) or called in WITHOUT_EFFECT and all(map(foldable, given)):
            return [(path, Static(self.ask(called, arguments, keywords)))]
        if isinstance(called, type):
            made = self.reads.note(vars(called).get("__init__"), "own", called, "__init__")
            if getattr(made, "__inline__", False):
                return self.made(function, made, arguments, keywords, path, hint)
        elif not isinstance(called, FunctionType | BuiltinFunctionType | BuiltinMethodType):
            method = self.reads.of_class(called, "__call__")
            if isinstance(method, FunctionType) and (getattr(method, "__inline__", False) or is_pure(method)):
                return self.apply_method(Method(method, function), arguments, keywords, path, hint)
        return [(path, self.leave(function, arguments, keywords, path, hint))]

    def apply_method(
        self, method: Method, arguments: list[Any], keywords: dict[str, Any], path: Path, hint: str
    ) -> list[tuple[Path, Any]]:
        function, owner = method.function, method.owner
        name = getattr(function, "__name__", "")
        if isinstance(owner, StateCode):
            return [(path, self.state_method(method, arguments, path))]
        if isinstance(owner, Items):
            value = self.items_method(owner, name, arguments, path)
            if value is not None:
                return [(path, value)]
        if function is Memo.get and isinstance(owner, Static) and isinstance(arguments[0], Items):
            return [(path, self.memo_get(owner, arguments[0], path, hint))]
        if getattr(function, "__inline__", False):
            return self.in_place(method, arguments, keywords, path, hint)
        fixed = is_pure(function) or (
            isinstance(owner, Static) and isinstance(owner.value, str | tuple | int | frozenset)
        )
        if fixed and all(map(is_static, (owner, *arguments, *keywords.values()))):
            return [(path, Static(self.ask(function, [owner, *arguments], keywords)))]
        return [(path, self.leave(method, arguments, keywords, path, hint))]

    def ask(self, function: Any, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Calls a function now, with everything known."""
        given, named = [known(value) for value in arguments], {name: known(value) for name, value in keywords.items()}
        try:
            return self.reads.answer(function(*given, **named), function, given, named)
        except Exception as problem:
            raise Unsupported(f"{function!r} raised {problem!r}") from None

    def hand_over(self, arguments: list[Any], path: Path, hint: str) -> Any:
        """A call that goes on at keys which only run time tells: one look-up of the code made for those.

        `run(op, keyset, stack)` knows them, `call(op, stack)` asks the arguments. None where not enough is known.
        """
        op, stack = arguments[0], arguments[-1]
        if not (is_static(op) and isinstance(stack, Items)):
            return None
        self.reads.note(str(known(op).schema), "schema", known(op))
        facts = tuple(fact_of(value, *sort) for value, sort in zip(stack.items, known(op).sorts, strict=True))
        if None in facts:
            return None
        if not all(default is NO_DEFAULT or is_plain(default) for _, default in known(op).sorts):
            self.reads.fails(f"a default of {known(op)} is an object")
        values = [value for value, fact in zip(stack.items, facts, strict=True) if fact not in ("D", "N")]
        name = f"{known(op).schema.base_name}_code"
        table = self.reads.note(known(op).table(facts), "table", known(op), facts)
        given = ", ".join(self.code(value, path) for value in values)
        level = path.state.facts.get("level")
        if level is not None:
            self.reads.note(level.flag, "attribute", level, "flag")
        if len(arguments) == 3:
            flags = flags_of(path.state.facts)
            if flags is None:
                return None
            keys = self.text(arguments[1], path) + (f" | {self.writer.constant(flags, 'FLAGS')}" if flags else "")
            variable = self.writer.local(hint or "result")
            self.in_state(f"{variable} = {self.writer.constant(table, name)}[{keys}]({given})", path)
        else:
            site = self.writer.constant(self.reads.note(Site(table), "site", table), name)
            sets = [f"{self.text(tensor, path)}._keyset" for tensor in tensors_among(values)]
            variable = self.writer.local(hint or "result")
            last, code = self.writer.local("last"), self.writer.local("code")
            same, otherwise = known_at(site, self.text(path.state, path), sets, last)
            path.block.add(f"{last} = {site}.last")
            path.block.add(f"{code} = {last}.code if {same} else {otherwise}")
            self.in_state(f"{variable} = {code}({given})", path)
        returns = known(op).schema.returns
        return Code(variable, kind=TensorBase if len(returns) == 1 and returns[0].type == TENSOR else None)

    def memo_get(self, memo: Static, facts: Items, path: Path, hint: str) -> Any:
        """A look-up in a memo, in the part for the facts that are known (site.py)."""
        given = tuple(known(fact) if is_static(fact) else UNKNOWN for fact in facts.items)
        left = [self.code(fact, path) for fact in facts.items if not is_static(fact)]
        part = self.reads.answer(memo.value.part(given), Memo.part, [memo.value, given], {})
        ask = self.writer.constant(self.writer.method(part, "get"), f"{memo.name}_get" if memo.name else "get")
        variable = self.writer.local(hint or "answer")
        key = memo.value.key_source(given, left)
        self.reads.answer(key, Memo.key_source, [memo.value, given, left], {})
        path.block.add(f"{variable} = {ask}({key})")
        return Code(variable)

    def announce(self, arguments: list[Any], path: Path) -> None:
        """A comment which says who answers here; and the layer may be worked out in place."""
        op, keyset = arguments[:2]
        if not (is_static(op) and is_static(keyset)):
            raise Unsupported("a hop with an unknown operator or keyset")
        entry = known(op).entry(known(keyset))
        self.asked.update(before(entry.key, runtime_keys(known(keyset))))
        self.noted_hop(known(op), entry, known(keyset))
        if entry.rule != "missing":
            self.layers.add(entry.kernel.boxed)
        path.block.add(f"# {entry.key.name}: {entry.kernel.label} ({entry.rule}), {short(entry.kernel.place)}")

    def noted_hop(self, op: Any, entry: Any, keyset: int) -> None:
        """Notes what `announce` has read."""
        reads, kernel = self.reads, entry.kernel
        reads.answer(entry, reads.of_class(op, "entry"), [op, keyset], {})
        reads.note(tuple(key.name for key in before(entry.key, runtime_keys(keyset))), "keys", op, keyset)
        read = ((entry, "rule"), (entry, "kernel"), (kernel, "boxed"), (kernel, "label"), (kernel, "place"))
        for owner, name in read:
            reads.note(getattr(owner, name), "attribute", owner, name)

    def in_place(
        self, function: Static | Method, arguments: list[Any], keywords: dict[str, Any], path: Path, hint: str
    ) -> list[tuple[Path, Any]]:
        """Works a function out in place; where that cannot be, leaves the call: a layer then runs boxed."""
        called = function.value if isinstance(function, Static) else function.function
        given = arguments if isinstance(function, Static) else [function.owner, *arguments]
        former, block, mark = path.mark(), path.block, len(path.block.lines)
        depth, layers, names, asked = self.depth, set(self.layers), self.writer.snapshot(), set(self.asked)
        try:
            return self.inlined(called, given, keywords, path)
        except Unsupported as problem:
            problems = self.problems if called in layers else self.left
            problems.append(f"{getattr(called, '__qualname__', called)}: {problem}")
            del block.lines[mark:]
            path.become(former)
            self.writer.restore(names)
            self.depth, self.asked = depth, asked
            return [(path, self.leave(function, arguments, keywords, path, hint))]

    def made(
        self, kind: Static, init: Any, arguments: list[Any], keywords: dict[str, Any], path: Path, hint: str
    ) -> list[tuple[Path, Any]]:
        """A new instance, whose `__init__` is worked out in place."""
        variable = self.writer.variable(hint or "value")
        path.block.add(f"{variable} = {self.writer.constant(object.__new__, 'new')}({self.code(kind, path)})")
        value = Code(variable, kind=kind.value, exact=True)
        return [(one, value) for one, _ in self.inlined(init, [value, *arguments], keywords, path)]

    # What is left -------------------------------------------------------------------------------------------------

    def leave(
        self,
        function: Any,
        arguments: list[Any],
        keywords: dict[str, Any],
        path: Path,
        hint: str,
        rest: str | None = None,
    ) -> Any:
        """A call in the residual code."""
        if not (is_leaf(function) or (isinstance(function, Static) and function.value in WITHOUT_EFFECT)):
            arguments = [self.handed_out(value, path) for value in arguments]
        parts = [self.code(value, path) for value in arguments]
        parts += [f"{name}={self.code(value, path)}" for name, value in keywords.items()]
        if isinstance(function, Method) and isinstance(function.owner, Static):
            name, owner = function.function.__name__, function.owner
            function = Static(self.writer.method(owner.value, name), f"{owner.name}_{name}" if owner.name else name)
        text = f"{self.text(function, path)}({', '.join([*parts, rest] if rest else parts)})"
        called = function.value if isinstance(function, Static) else getattr(function, "function", None)
        called = getattr(called, "__func__", called)
        kind = called if isinstance(called, type) else None
        if isinstance(called, FunctionType) and called.__annotations__.get("return") == "TensorBase":
            kind = TensorBase
        if isinstance(called, Hashable) and called in WITHOUT_EFFECT:
            return Code(text, atom=False, kind=kind)
        if is_pure(called):
            return Code(text, atom=False)
        variable = self.writer.local(hint, text) if hint else ""
        line = f"{variable} = {text}" if hint else text
        if is_leaf(function):
            path.block.add(line)
        else:
            self.in_state(line, path)
        if not hint:
            return NONE
        return Code(variable, kind=kind, exact=kind is not None)

    def handed_out(self, value: Any, path: Path) -> Any:
        """An argument of a call that is left. A list with a name may come back changed: nothing is known of it then."""
        named = any(value is held for frame in path.frames for held in frame.names.values())
        if not (isinstance(value, Items) and value.made and value.kind is list and named):
            return value
        whole = self.named(Code(self.code(value, path), atom=False, kind=list, exact=True), path, "items")
        path.replace(value, whole)
        return whole

    # Methods of things that are known in part ---------------------------------------------------------------------

    def state_method(self, method: Method, arguments: list[Any], path: Path) -> Any:
        owner, name = method.owner, method.function.__name__
        facts = owner.facts if name in ("excluding", "entered") else {"tracer": None}
        if owner.steps is not None and all(isinstance(value, Static) for value in arguments):
            given = tuple((value.value, value.name) for value in arguments)
            return StateCode("", facts=facts, steps=(*owner.steps, (name, given)))
        text = f"{self.text(owner, path)}.{name}({', '.join(self.code(value, path) for value in arguments)})"
        return StateCode(text, atom=False, facts=facts, steps=None)

    def items_method(self, owner: Items, name: str, arguments: list[Any], path: Path) -> Any:
        match name:
            case "append":
                items = [*owner.items, self.bound(arguments[0], path, "item")]
                path.replace(owner, Items(owner.kind, items, made=owner.made))
                return NONE
            case "extend":
                items = [*owner.items, *self.items(arguments[0], path)]
                path.replace(owner, Items(owner.kind, items, made=owner.made))
                return NONE
            case "values":
                return Items(tuple, owner.items)
            case "items" if owner.kind is dict:
                pairs = zip(owner.keys, owner.items, strict=True)
                return Items(tuple, [Items(tuple, [Static(key), value]) for key, value in pairs])
            case "copy":
                return Items(owner.kind, owner.items, keys=owner.keys)
        raise Unsupported(f"the method {name} of a list that is known item by item")


def fact_of(value: Any, sort: str, default: Any) -> Any:
    """The fact (specialise.py) about an argument that is known in part; None where not enough is known."""
    if isinstance(value, Static):
        return "D" if is_default(value.value, default) else "N" if value.value is None else "x"
    if isinstance(value, Items):
        if sort != "tensors":
            return "x" if not is_static(value) else "D" if is_default(known(value), default) else "x"
        facts = tuple(fact_of(item, "tensor", NO_DEFAULT) for item in value.items)
        return facts if set(facts) <= {"T", "N"} else None
    if isinstance(value, Code) and value.kind is not None and issubclass(value.kind, TensorBase):
        return "T"
    if (
        isinstance(value, Code)
        and value.kind not in (None, object)
        and sort == "plain"
        and default in (None, NO_DEFAULT)
    ):
        return "x"  # an instance of that is not None
    if isinstance(value, Code) and sort != "tensors":
        differs = [None] if default is NO_DEFAULT else [None, default]
        if (sort == "plain" or TensorBase in value.never) and all(any(d is v for v in value.differs) for d in differs):
            return "x"
    return None


def tensors_among(values: Iterable[Any]) -> Iterator[Any]:
    """The values that are tensors, those inside lists too."""
    for value in values:
        if isinstance(value, Items):
            yield from tensors_among(value.items)
        elif isinstance(value, Code) and value.kind is not None and issubclass(value.kind, TensorBase):
            yield value


def flags_of(facts: dict[str, Any]) -> int | None:
    """The flags of a state of which this is known; None where some of it is not."""
    if not {"grad_enabled", "inference", "modes", "own_policies", "level"} <= facts.keys():
        return None
    return (
        (0 if facts["grad_enabled"] else NO_GRAD)
        | (INFERENCE if facts["inference"] else 0)
        | (MODES if facts["modes"] else 0)
        | (OWN_POLICIES if facts["own_policies"] else 0)
        | (facts["level"].flag if facts["level"] else 0)
    )


def is_pure(function: Any) -> bool:
    return getattr(function, "__pure__", False)


def is_leaf(function: Any) -> bool:
    """Whether a call never asks the dispatch state for what layers set in it."""
    if isinstance(function, Method):
        if isinstance(function.owner, Static) and isinstance(function.owner.value, CONTAINERS):
            return True
        called = function.function
    elif isinstance(function, Static):
        called = function.value
        if isinstance(called, type):  # a class that does nothing when an instance is made, or a builtin one
            own = [found for base in called.__mro__[:-1] for found in ("__init__", "__new__") if found in vars(base)]
            return called.__module__ == "builtins" or not own
        if called is object.__new__ or type(called) is MethodWrapperType:
            return True
    else:
        return False
    called = getattr(called, "__func__", called)
    if isinstance(called, BuiltinFunctionType) and type(getattr(called, "__self__", None)) in CONTAINERS:
        return True
    return getattr(called, "__leaf__", False) or getattr(called, "__pure__", False)


def short(place: str) -> str:
    """A file and line, from the package's root where it lies in there."""
    return rules.short(place) if rules.is_own(place) else place.replace("\\", "/").rpartition("/")[2]


# Builtins whose answer may be known ---------------------------------------------------------------------------------


def classes_in(value: Any) -> tuple[type, ...]:
    if isinstance(value, UnionType):
        return value.__args__
    return value if isinstance(value, tuple) else (value,)


def answer_isinstance(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    value, kinds = arguments
    if not is_static(kinds):
        return None
    classes = classes_in(known(kinds))
    if isinstance(value, Items):
        return Static(issubclass(value.kind, classes))
    if isinstance(value, Static):
        return Static(ev.reads.decided(isinstance(value.value, classes), "isinstance", value.value, classes))
    if not isinstance(value, Code):
        return Static(False)
    if value.kind is not None:
        if ev.reads.decided(issubclass(value.kind, classes), "issubclass", value.kind, classes):
            return Static(True)
        if value.exact or all(kind.__module__ == "builtins" and not issubclass(kind, value.kind) for kind in classes):
            return Static(False)
    if value.never and all(issubclass(kind, value.never) for kind in classes):
        return Static(False)
    return None


def answer_type(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    (value,) = arguments
    if isinstance(value, Items):
        return Static(value.kind)
    if isinstance(value, Static):
        return Static(ev.reads.note(type(value.value), "type", value.value))
    return Static(value.kind) if isinstance(value, Code) and value.exact else None


def answer_len(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    (value,) = arguments
    if isinstance(value, Items):
        return Static(len(value.items))
    if not foldable(value):
        return None
    if type(value.value) is not tuple:
        ev.folds([value])
    return Static(len(value.value))


def either(stops_at: bool) -> Answer:
    """Answers any (which stops at the first that is true) or all (at the first that is false) of items."""

    def answer(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
        texts: list[str] = []
        exact = True
        for value in ev.items(arguments[0], path):
            truth = truth_of(value)
            if truth is stops_at:
                if not texts:
                    return Static(stops_at)
                texts.append(repr(stops_at))
                break
            if truth is None:
                text = ev.code(value, path)
                other = " and " if stops_at else " or "
                texts.append(f"({text})" if other in text or " if " in text else text)
                exact = exact and isinstance(value, Code) and value.kind is bool
        if not texts:
            return Static(not stops_at)
        text = (" or " if stops_at else " and ").join(texts)
        return Code(text if exact else f"bool({text})", atom=False, kind=bool)

    return answer


def answer_bool(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    truth = truth_of(arguments[0]) if arguments else False
    return None if truth is None else Static(truth)


def sequence(kind: type) -> Answer:
    """Answers `tuple(...)` and `list(...)`."""

    def answer(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
        if arguments and not (isinstance(arguments[0], Items) or foldable(arguments[0])):
            return None
        return Items(kind, list(ev.items(arguments[0], path)) if arguments else [])

    return answer


def answer_zip(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    columns = [ev.items(value, path) for value in arguments]
    if "strict" in keywords and known(keywords["strict"]) and len({len(column) for column in columns}) > 1:
        raise Unsupported("zip of unequal lengths")
    return Items(tuple, [Items(tuple, list(row)) for row in zip(*columns, strict=False)])


def answer_enumerate(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    return Items(tuple, [Items(tuple, [Static(i), v]) for i, v in enumerate(ev.items(arguments[0], path))])


def answer_reversed(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    return Items(tuple, list(ev.items(arguments[0], path))[::-1])


def answer_range(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    return Static(range(*map(known, arguments))) if all(map(is_static, arguments)) else None


def answer_next(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    if isinstance(arguments[0], Code):
        raise Unsupported("next of something unknown")
    if isinstance(arguments[0], Static) and isinstance(arguments[0].value, Iterator):
        return None  # it has a state of its own
    items = ev.items(arguments[0], path)
    if items:
        return items[0]
    if len(arguments) < 2:
        raise Unsupported("next of nothing")
    return arguments[1]


def answer_getattr(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    owner, name, *default = arguments
    if not is_static(name):
        return None
    if default:
        if isinstance(owner, Static) and isinstance(default[0], Static):
            found = getattr(owner.value, known(name), default[0].value)
            how = known(name), ev.reads.written(default[0].value)
            return Static(ev.reads.note(found, "attribute or", owner.value, how))
        return None
    return ev.attribute(owner, known(name), path)


def answer_setattr(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    owner, name, value = arguments
    if not is_static(name):
        return None
    path.block.add(f"{ev.text(owner, path)}.{known(name)} = {ev.code(value, path)}")
    return NONE


def answer_is_default(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    value, default = arguments
    if not isinstance(default, Static):
        return None
    if isinstance(value, Items) and not is_static(value):
        return Static(False) if not isinstance(default.value, list | tuple) else None
    if isinstance(value, Code) and any(one is default.value for one in value.differs):
        return Static(False)
    return None


def answer_cast(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    kind, value = arguments
    told = is_static(kind) and isinstance(known(kind), type) and known(kind) is not Any
    return replace(value, kind=known(kind)) if told and type(value) is Code else value


def answer_new(ev: Calls, arguments: list[Any], keywords: dict[str, Any], path: Path) -> Any:
    (kind,) = arguments
    variable = ev.writer.variable("result")
    path.block.add(f"{variable} = {ev.writer.constant(object.__new__, 'new')}({ev.code(kind, path)})")
    return Code(variable, kind=kind.value, exact=True) if isinstance(kind, Static) else Code(variable)


ANSWERS: dict[Any, Answer] = {
    isinstance: answer_isinstance,
    type: answer_type,
    len: answer_len,
    any: either(stops_at=True),
    all: either(stops_at=False),
    bool: answer_bool,
    tuple: sequence(tuple),
    list: sequence(list),
    zip: answer_zip,
    enumerate: answer_enumerate,
    reversed: answer_reversed,
    range: answer_range,
    next: answer_next,
    getattr: answer_getattr,
    setattr: answer_setattr,
    object.__new__: answer_new,
    is_default: answer_is_default,
    cast: answer_cast,
}
