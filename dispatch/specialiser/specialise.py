"""Specialised code: made when it is first needed, found by one look-up, dropped when what it was made from changes.

An operator has a `Table` for each combination of *facts* about its arguments, which say of each one:

    "T"  a tensor                         "D"  equal to its default, and so known
    "N"  None (and None is not its default)    "x"  anything else
    ("T", "N", ...)  a list of tensors, item by item

A table maps a keyset, with the state's flags (state.py, Note [Flags above the keys]), to a function of the arguments
that are not known. Where it has none yet, one is made: the evaluator works out `run` for this operator, keyset, facts.

    table = op.table(("T", "T", "D"))
    table[(a._keyset | b._keyset | state.keys.added) & state.keys.kept](a, b)

Most calls know the answer already: site.py. Read next: dispatch/entry/entries.py (the functions that users call).
"""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from ..config import ON_CHANGE, config
from ..core.base import Operator, TensorBase
from ..core.interpreter import Specialised, call, hop, run
from ..core.key import DispatchKey
from ..core.keyset import describe, runtime_keys
from ..core.registry import LOCK, OPERATORS
from ..core.state import FLAGS, INFERENCE, KEYS_MASK, LEVELS, MODES, NO_GRAD, OWN_POLICIES, STATE, TRACED
from ..inspection.origins import noting
from ..schema.convert import default_of, is_default
from ..schema.schema import NO_DEFAULT, FunctionSchema
from .calls import Calls
from .evaluator import Path
from .reads import NOTHING, Reads, file_for, load, store
from .residual import Block, Writer, defined
from .site import Site
from .values import NONE, Code, Frame, Items, StateCode, Static

Facts = tuple[Any, ...]
BOXED_AT_FIRST = 2  # calls
NAME = re.compile(r"[^\W\d]\w*")


class SpecialisationError(Exception):
    """Under `config.specialize = "strict"`: a layer uses a construct that the evaluator does not handle."""


class Table(dict[int, Callable[..., Any]]):
    """keyset and flags -> code, for one operator and one combination of facts.

    The first calls run boxed: making code takes as long as some hundred of them, and many calls are made but once.
    """

    __slots__ = ("op", "facts", "calls", "sites")

    def __init__(self, op: Operator, facts: Facts) -> None:
        self.op, self.facts = op, facts
        self.sites: WeakSet[Site] = WeakSet()  # what remembers code of this table
        self.calls: dict[int, int] = {}  # how often code was asked for that is not made yet

    def __missing__(self, keys: int) -> Callable[..., Any]:
        if config.debug_origins:
            return noting(self.op, boxed(self.op, self.facts, keys & KEYS_MASK))
        if keys & TRACED or not config.specialize or self.op.stops():
            return boxed(self.op, self.facts, keys & KEYS_MASK)
        if config.specialize is True:
            self.calls[keys] = self.calls.get(keys, 0) + 1
            if self.calls[keys] <= BOXED_AT_FIRST:
                return boxed(self.op, self.facts, keys & KEYS_MASK)
        return self.made(keys)

    def begun(self, keys: int) -> Callable[..., Any]:
        """Returns the code for a call that begins: what is recorded or swapped goes by `call`, keyset and all."""
        return boxed(self.op, self.facts) if keys & TRACED else self[keys]

    def made(self, keys: int) -> Callable[..., Any]:
        """The code for a keyset and flags, made now if there is none."""
        swaps = STATE.get().swaps
        if swaps:  # what was made of other parts is not kept
            made: Any = boxed(self.op, self.facts, keys & KEYS_MASK)
            made.source = f"# {self.op} runs boxed: {', '.join(str(one) for one in swaps)}\n"
            return made
        if keys in self:
            return self[keys]
        generation = self.op.generation
        made = specialised(self.op, self.facts, keys)
        with LOCK:
            if self.op.generation == generation:  # else a registration came in between: good for this call alone
                self[keys] = made
        return made


def boxed(op: Operator, facts: Facts, keyset: int | None = None) -> Callable[..., Any]:
    """Returns the boxed interpreter in the form of a specialised function; from the top where no keyset is given."""
    defaults = defaults_of(op.schema)

    def run_boxed(*arguments: Any) -> Any:
        given = iter(arguments)
        stack = [
            default if fact == "D" else None if fact == "N" else next(given)
            for fact, default in zip(facts, defaults, strict=True)
        ]
        return call(op, stack) if keyset is None else hop(op, keyset, stack)

    return run_boxed


def defaults_of(schema: FunctionSchema) -> list[Any]:
    """The default of each argument as kernels see it, or NO_DEFAULT."""
    return [default_of(argument) for argument in schema.arguments]


# What is known of a stack ---------------------------------------------------------------------------------------------


def facts_of(op: Operator, stack: list[Any]) -> tuple[Facts, list[Any]]:
    """(facts about a stack, the values that they do not tell)."""
    facts: list[Any] = []
    values: list[Any] = []
    for value, (sort, default) in zip(stack, op.sorts, strict=True):
        if isinstance(value, TensorBase):
            facts.append("T")
            values.append(value)
        elif is_default(value, default):
            facts.append("D")
        elif value is None:
            facts.append("N")
        elif sort == "tensors":
            facts.append(tuple("T" if isinstance(item, TensorBase) else "N" for item in value))
            values.append(value)
        else:
            facts.append("x")
            values.append(value)
    return tuple(facts), values


def sorts_of(schema: FunctionSchema) -> list[tuple[str, Any]]:
    """For each argument: whether it is a tensor, a list of tensors or something plain; and its default."""
    lists = set(schema.tensor_list_positions)
    tensors = set(schema.tensor_positions)
    return [
        ("tensors" if i in lists else "tensor" if i in tensors else "plain", default)
        for i, default in enumerate(defaults_of(schema))
    ]


def usual_facts(schema: FunctionSchema) -> Facts:
    """Facts about a call with all tensors given, lists of them with two items, and every other default left alone."""
    facts: list[Any] = []
    for sort, default in sorts_of(schema):
        facts.append("D" if default is not NO_DEFAULT else {"tensor": "T", "tensors": ("T", "T"), "plain": "x"}[sort])
    return tuple(facts)


def run_specialised(op: Operator, keyset: int, stack: list[Any]) -> Any:
    """`run`, by specialised code."""
    flags = STATE.get().keys.added & FLAGS
    if flags & TRACED and not config.debug_origins:
        return hop(op, keyset, stack)
    facts, values = facts_of(op, stack)
    return op.table(facts)[keyset | flags](*values)


def call_each(op: Operator, stacks: list[list[Any]]) -> list[Any]:
    """`call` on each of some stacks, which differ in nothing but their tensors: facts about the first hold for all."""
    if Specialised.run is None or STATE.get().keys.added & TRACED:
        return [call(op, stack) for stack in stacks]
    facts, _ = facts_of(op, stacks[0])
    table, state = op.table(facts), STATE.get()
    flags = state.keys.added & FLAGS
    included, excluded = state.included, ~state.excluded
    given = [i for i, fact in enumerate(facts) if fact not in ("D", "N")]
    tensors = [i for i, fact in enumerate(facts) if fact == "T"]
    results = []
    for stack in stacks:
        keyset = included
        for i in tensors:
            keyset |= stack[i]._keyset
        results.append(table[keyset & excluded | flags](*[stack[i] for i in given]))
    return results


# Making code ----------------------------------------------------------------------------------------------------------


def specialised(op: Operator, facts: Facts, keys: int) -> Callable[..., Any]:
    """The code for one operator, facts, and keyset with flags; the boxed interpreter where none can be made.

    Errors: SpecialisationError for that under "strict".
    """
    try:
        return worked_out(op, facts, keys)
    except SpecialisationError:
        raise
    except Exception as problem:
        if config.specialize == "strict":
            raise SpecialisationError(f"{op} for {describe(keys & KEYS_MASK)}: {problem!r}") from problem
    code: Any = boxed(op, facts, keys & KEYS_MASK)
    code.asked, code.left = frozenset(runtime_keys(keys & KEYS_MASK)), []
    code.source = f"# {op} runs boxed for {describe(keys & KEYS_MASK)}\n"
    return code


def worked_out(op: Operator, facts: Facts, keys: int) -> Callable[..., Any]:
    """The code that the evaluator makes, or has made in an earlier process."""
    state = state_facts(keys)
    level, title = state["level"], filename(op, facts, keys)
    roots = [op] if level is None else [op, level]
    file = file_for((title, str(op.schema), facts, keys, level and (level.__module__, level.__qualname__)))
    kept = None if file is None else load(file, roots)
    if kept is not None:
        return kept
    reads = NOTHING if file is None else Reads(roots)
    writer = Writer()
    evaluator = Calls(writer, reads)
    name = writer.variable(function_name(op))
    body = Block()
    names, stack = arguments(op.schema, facts, writer, body)
    for place, (fact, default) in enumerate(zip(facts, defaults_of(op.schema), strict=True)):
        if fact == "D" or fact == "x":
            reads.note(default, "default", op, place)
    path = Path(body, StateCode("", facts=state))
    path.frames.append(Frame({}, {}, {}))
    found = evaluator.apply_static(Static(run), [Static(op, "op"), Static(keys & KEYS_MASK), stack], {}, path, "result")
    for one, value in found:
        one.block.add(f"return {evaluator.code(value, one)}")
    if evaluator.problems and config.specialize == "strict":
        raise SpecialisationError(f"{op} for {describe(keys & KEYS_MASK)}: {'; '.join(evaluator.problems)}")
    head = [f"def {name}({', '.join(names)}):"]
    head += [f"    # {op.schema}", f"    # {describe(keys & KEYS_MASK)}{spoken_flags(keys)}"]
    source, used = written(head, body, writer)
    constants = {known: value for known, value in writer.constants.items() if known in used}
    text = compile(source, title, "exec")
    code: Any = defined(name, text, source, constants, title)
    code.asked = frozenset(evaluator.asked)
    code.source, code.left = source, evaluator.left
    if file is not None and not evaluator.problems and not evaluator.left:
        store(file, code, reads, constants, evaluator.asked, text)
    return code


def written(head: list[str], body: Block, writer: Writer) -> tuple[str, set[str]]:
    """The source, without variables that nobody reads, and the names that it uses."""
    former = ""
    while True:
        source = "\n".join([*head, *body.tidy().text("    ")]) + "\n"
        used = Counter(NAME.findall(source))
        if source == former:
            return source, set(used)
        former = source
        body.without({name for name in writer.idle if used[name] == 1})


def arguments(schema: FunctionSchema, facts: Facts, writer: Writer, body: Block) -> tuple[list[str], Items]:
    """The parameters of the code, and the stack as the evaluator knows it. Lists of tensors are taken apart at once."""
    names: list[str] = []
    stack: list[Any] = []
    for argument, fact, default in zip(schema.arguments, facts, defaults_of(schema), strict=True):
        if fact == "D":
            stack.append(Items(list, [*map(Static, default)]) if type(default) is list else Static(default))
            continue
        if fact == "N":
            stack.append(NONE)
            continue
        name = writer.parameter(argument.name)
        names.append(name)
        if fact == "T":
            stack.append(Code(name, kind=TensorBase))
        elif fact == "x":
            differs = () if default is NO_DEFAULT else (default,)
            stack.append(Code(name, never=(TensorBase,), differs=(*differs, None)))
        else:
            parts = [writer.parameter(f"{name}_{i}") for i in range(len(fact))]
            if parts:
                body.add(f"{', '.join(parts)}{',' if len(parts) == 1 else ''} = {name}")
            items = [NONE if f == "N" else Code(p, kind=TensorBase) for f, p in zip(fact, parts, strict=True)]
            stack.append(Items(list, items, text=name))
    return names, Items(list, stack)


def state_facts(keys: int) -> dict[str, Any]:
    """Returns the facts of the dispatch state that flags tell."""
    return {
        "grad_enabled": not keys & NO_GRAD,
        "inference": bool(keys & INFERENCE),
        "modes": bool(keys & MODES),
        "own_policies": bool(keys & OWN_POLICIES),
        "level": next((level for flag, level in LEVELS.items() if keys & flag), None),
        "tracer": None,
    }


SPOKEN = {NO_GRAD: "no grad", INFERENCE: "inference", MODES: "modes", OWN_POLICIES: "own policies"}


def spoken_flags(keys: int) -> str:
    words = [word for flag, word in SPOKEN.items() if keys & flag]
    words += [f"under a {level.__name__}" for flag, level in LEVELS.items() if keys & flag]
    return f", {', '.join(words)}" if words else ""


def function_name(op: Operator) -> str:
    name = f"{op.schema.base_name}_{op.schema.overload}" if op.schema.overload != "default" else op.schema.base_name
    return name if name.isidentifier() else f"operator_{abs(hash(name))}"


def filename(op: Operator, facts: Facts, keys: int) -> str:
    """Under which linecache knows the source."""
    spelled = "".join(f"[{''.join(fact)}]" if isinstance(fact, tuple) else fact for fact in facts)
    return f"<{op} {spelled} {describe(keys & KEYS_MASK)[15:-1]}{spoken_flags(keys)}>"


# Dropping code --------------------------------------------------------------------------------------------------------


CHANGES = [0]  # how often any operator's code was dropped: by this number others see that kernels may have changed


def forget(op: Operator, key: DispatchKey | None = None) -> None:
    """Drops the code of an operator; with `key`, only the code that depends on what is registered at that key."""
    op.generation += 1
    CHANGES[0] += 1
    for table in list(op.tables.values()):
        for keys, code in list(table.items()):
            if key is None or key in code.asked:
                linecache.cache.pop(code.__code__.co_filename, None)
                table.pop(keys, None)
                for site in list(table.sites):
                    site.forget()


def switch(value: bool | str) -> None:
    """Has everything run as `config.specialize` and `config.debug_origins` say from now on."""
    Specialised.run = run_specialised if value or config.debug_origins else None
    with LOCK:
        for op in OPERATORS.values():
            forget(op)


ON_CHANGE.append(switch)
switch(config.specialize)
