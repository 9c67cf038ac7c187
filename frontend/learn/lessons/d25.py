"""D25, Module: `__setattr__` is the registry."""

from __future__ import annotations

from functools import partial
from typing import Any

import redispatch as rd

from ..lesson import Lesson, Part, Wrong, same

TEXT = """
# `__setattr__` is the registry

`self.weight = Parameter(...)`, `self.layer = Linear(...)`: nobody calls a function `register`, and yet `parameters()`
finds them all. A module looks at what is assigned to it. That is the whole trick: `__setattr__` sorts values into two
dictionaries of the module, one of parameters and one of children, and leaves all else to Python. What is not an
attribute of the module itself, a parameter inside a list for example, is therefore not found; this surprises everybody
once, and is why `ModuleList` exists.

The rules, for `module.name = value`:

- a `Parameter` goes among the parameters; what was there under this name, as a child or as a plain attribute, goes;
- any other value under the name of a parameter, a module too: `None` takes its place, and is skipped by all that
  walks; anything else is a `TypeError`. (A name that holds parameters should not become something else unnoticed.)
- a `Module` goes among the children; a plain attribute of this name goes;
- any other value under the name of a child: `None` or `TypeError`, as above;
- else it is a plain attribute.

`__getattr__` is asked only where Python finds nothing, so it looks into the two dictionaries; `__delattr__` takes from
them. A name that is assigned again keeps its place in the order, as in any dictionary. But one that is deleted before
goes to the end.

A tree of modules gives every parameter a path, `encoder.layer.weight`: first the module's own, in the order of their
assignment, then the children's, depth first. A module or a parameter that hangs in two places is *shared*:

- `named_parameters` and `named_modules` give each object once, under the first of its paths: an optimiser must not step
  twice;
- `state_dict` gives every path, for whoever loads it into a model that shares nothing.

`load_state_dict` copies values into the parameters that are there (the objects stay: an optimiser holds them). With
`strict`, the paths that are missing or unexpected are an error, and nothing was promised about what has been copied.

`train(mode)` sets `training` of a module and of all below. *Hooks* run around the call: those before it may replace the
arguments, those after it the result; each in the order of their registration, until its handle is removed.

The library's own is `frontend/nn/modules/module.py`; the rules are PyTorch's.
"""

DEMO = """
import redispatch as rd

shared = rd.nn.Linear(2, 2)
model = rd.nn.Sequential(shared, rd.nn.ReLU(), shared)
print([name for name, _ in model.named_parameters()])
print(list(model.state_dict()))
hidden = rd.nn.Module()
hidden.layers = [rd.nn.Linear(2, 2)]
print(list(hidden.parameters()), "in a list nobody finds them")
"""

TEMPLATE = '''"""D25: `__setattr__` is the registry. `python -m redispatch learn D25` has the text.

You are given the class Parameter, with an attribute `value`. Two parameters are the same only if they are one object.
"""


class Module:
    """A part of a model. Its methods are used as PyTorch's; lists stand where PyTorch has iterators."""

    def __init__(self):
        """A new module is in training mode and holds nothing."""
        raise NotImplementedError

    def __setattr__(self, name, value):
        """Sorts a value among the parameters, the children or the plain attributes. TypeError: see the text."""
        raise NotImplementedError

    def __getattr__(self, name):
        """Returns a parameter or a child. AttributeError where there is none."""
        raise NotImplementedError

    def __delattr__(self, name):
        """Takes a parameter, a child or a plain attribute away. AttributeError where there is none."""
        raise NotImplementedError

    def named_parameters(self):
        """Returns [(path, parameter)], each object once, own ones first, then the children's, depth first."""
        raise NotImplementedError

    def named_modules(self):
        """Returns [(path, module)], each object once: this one, whose path is "", and then those below, depth first."""
        raise NotImplementedError

    def state_dict(self):
        """Returns {path: value} for every path, in the same order."""
        raise NotImplementedError

    def load_state_dict(self, values, strict=True):
        """Sets the values of the parameters that are there; returns (missing paths, unexpected paths), as lists.

        The missing ones stand in the order of `state_dict`, the unexpected ones in that of `values`. RuntimeError where
        strict and one of the lists is not empty.
        """
        raise NotImplementedError

    def train(self, mode=True):
        """Sets `training` here and in all below; returns this module."""
        raise NotImplementedError

    def forward(self, x):
        """What a module computes; here, its argument."""
        return x

    def __call__(self, x):
        """Returns hooks' and `forward`'s result. A hook that returns None changes nothing."""
        raise NotImplementedError

    def register_forward_pre_hook(self, hook):
        """Has hook(module, x) run before; its result replaces x. Returns a handle whose remove() takes it away."""
        raise NotImplementedError

    def register_forward_hook(self, hook):
        """Has hook(module, x, result) run after; its result replaces the result. Returns a handle as above."""
        raise NotImplementedError
'''

HINTS = (
    "In `__init__`, `self._parameters = {}` comes to your own `__setattr__`: it must find what it asks for. "
    "`object.__setattr__(self, name, value)` is Python's own.",
    "Write one walk, a generator of (path, module) that takes a set of those seen already, or None where it should not "
    "care; `named_modules`, `named_parameters`, `state_dict` and `train` are short by it.",
    "A hook's handle needs only the dictionary of the hooks and its key in it. In `__call__`, `None` from a hook means "
    "that nothing changes: `x = x if answer is None else answer`.",
)

GIVEN = """
class Parameter:
    def __init__(self, value):
        self.value = value
"""


# A tree, built twice --------------------------------------------------------------------------------------------------

NAMES = ("weight", "layer")


class Twins:
    """Modules and parameters of the student and the library's, which the same steps are done to."""

    def __init__(self, student: Any) -> None:
        self.student, self.steps = student, list[str]()
        self.modules = [(student("Module"), rd.nn.Module()) for _ in range(4)]
        self.parameters = [(student("Parameter", n), rd.nn.Parameter(rd.tensor(float(n)))) for n in range(4)]
        self.names: dict[Any, str] = {yours: f"p{n}" for n, (yours, _) in enumerate(self.parameters)}
        self.names.update((id(right), f"p{n}") for n, (_, right) in enumerate(self.parameters))
        self.names.update((yours, f"m{n}") for n, (yours, _) in enumerate(self.modules))
        self.names.update((id(right), f"m{n}") for n, (_, right) in enumerate(self.modules))

    def question(self, asked: str) -> str:
        return "; ".join([*self.steps, asked])

    def do(self, step: tuple[Any, ...]) -> None:
        """Does a step on both, which must succeed or fail alike. Steps that would make a circle are left out."""
        at, what, name, number = step
        yours, right = self.modules[at]
        if what == "module" and number <= at:
            return
        if what == "parameter":
            number %= 2
        values = {
            "module": self.modules[number],
            "parameter": self.parameters[number],
            "none": (None, None),
            "number": (number, number),
        }
        said = f"m{at}.{name} = {'p' * (what == 'parameter')}{'m' * (what == 'module')}{number}"
        self.steps.append(
            f"del m{at}.{name}" if what == "delete" else f"m{at}.{name} = None" if what == "none" else said
        )
        if what == "delete":
            self.both(lambda: yours.ask("__delattr__", name), lambda: delattr(right, name))
        else:
            self.both(
                lambda: yours.ask("__setattr__", name, values[what][0]), lambda: setattr(right, name, values[what][1])
            )

    def both(self, ours: Any, library: Any) -> None:
        same(self.question("the error"), outcome(ours), outcome(library))

    def name(self, one: Any) -> Any:
        """Returns p0 or m1 for a thing of either side, and other values as they are."""
        key = one if one in self.names else id(one)
        return self.names.get(key, one if one is None or isinstance(one, int) else "something else")

    def named(self, pairs: Any) -> list[tuple[str, str]]:
        return [(path, self.name(one)) for path, one in pairs]


def outcome(call: Any) -> str:
    """The name of the class of the error that a call raises, or "none"."""
    try:
        call()
    except Wrong:
        raise
    except Exception as error:
        return getattr(error, "kind", "") or type(error).__name__
    return "none"


def trees(st: Any) -> Any:
    """Steps that build a tree: each name of the upper modules holds something, often what another holds, too."""

    def built(chosen: Any) -> list[Any]:
        places = [(at, name) for at in (2, 1, 0) for name in NAMES]
        return [
            (at, "parameter" if number < 2 else "module", name, at + 1 if number == 2 else number)
            for (at, name), number in zip(places, chosen, strict=True)
            if number is not None
        ]

    # For each place: p0, p1, the module below, the last one, or nothing
    return st.tuples(*[st.sampled_from((0, 1, 2, 2, 3, None)) for _ in range(3 * len(NAMES))]).map(built)


def changes(st: Any, kinds: tuple[str, ...], most: int) -> Any:
    """Few names and few objects: what goes wrong goes wrong where something is there already."""
    one = st.tuples(st.just(0), st.sampled_from(kinds), st.sampled_from(NAMES), st.integers(0, 3))
    return st.lists(one, min_size=0, max_size=most)


# The parts ------------------------------------------------------------------------------------------------------------


def check_registry(student: Any, draw: Any) -> None:
    """One module, whose attributes are set, replaced and deleted: errors, and what is where afterwards."""

    def test(steps: Any) -> None:
        twins = Twins(student)
        yours, right = twins.modules[0]
        for step in steps:
            twins.do(step)
        for name in NAMES:
            question = twins.question(f"m0.{name}")
            asked = outcome(partial(yours.ask, "__getattribute__", name))
            way = "__getattr__" if asked == "AttributeError" else "__getattribute__"  # the latter first, as Python does
            same(question, outcome(partial(yours.ask, way, name)), outcome(partial(getattr, right, name)))
            if hasattr(right, name):
                same(question, twins.name(yours.ask(way, name)), twins.name(getattr(right, name)))
        for method in ("named_parameters", "named_modules"):
            found = twins.named(yours.ask(method))
            same(twins.question(f"m0.{method}()"), found, twins.named(getattr(right, method)()))

    draw(
        test, steps=changes(draw.st, ("parameter", "parameter", "module", "none", "number", "delete"), 8), examples=400
    )


def check_paths(student: Any, draw: Any) -> None:
    """Trees in which modules and parameters may hang in several places."""

    def test(tree: Any, steps: Any) -> None:
        twins = Twins(student)
        for step in [*tree, *steps]:
            twins.do(step)
        yours, right = twins.modules[0]
        for method in ("named_parameters", "named_modules"):
            found = twins.named(yours.ask(method))
            same(twins.question(f"m0.{method}()"), found, twins.named(getattr(right, method)()))

    draw(test, tree=trees(draw.st), steps=changes(draw.st, ("delete", "none", "parameter"), 1), examples=200)


def check_state(student: Any, draw: Any) -> None:
    st = draw.st

    def test(tree: Any, left_out: Any, more: Any, strict: bool) -> None:
        twins = Twins(student)
        for step in tree:
            twins.do(step)
        yours, right = twins.modules[0]
        state = {path: int(value) for path, value in right.state_dict().items()}
        found = yours.ask("state_dict")
        same(twins.question("list(m0.state_dict().items())"), list(found.items()), list(state.items()))
        paths = [path for n, path in enumerate(state) if n not in left_out]
        new = {path: 10 * (n + 1) for n, path in enumerate([*paths, *more])}
        tensors = {path: rd.tensor(float(value)) for path, value in new.items()}
        said = f"m0.load_state_dict({new}, strict={strict})"
        kinds = (
            outcome(lambda: yours.ask("load_state_dict", new, strict)),
            outcome(lambda: right.load_state_dict(tensors, strict=strict)),
        )
        same(twins.question(said), *kinds)
        if kinds[0] == "none":
            missing, unexpected = map(list, yours.ask("load_state_dict", new, strict))
            wanted = right.load_state_dict(tensors, strict=strict)
            same(twins.question(said), (missing, unexpected), (wanted.missing_keys, wanted.unexpected_keys))
            for n, (mine, theirs) in enumerate(twins.parameters):
                value = mine.ask("__getattribute__", "value")
                same(twins.question(f"{said}; p{n}.value"), float(value), float(theirs))

    draw(
        test,
        tree=trees(st),
        left_out=st.sets(st.integers(0, 4), max_size=1),
        more=st.lists(st.sampled_from(("extra", "layer.extra")), unique=True, max_size=1),
        strict=st.booleans(),
        examples=250,
    )


def check_train(student: Any, draw: Any) -> None:
    st = draw.st

    def test(tree: Any, order: Any) -> None:
        twins = Twins(student)
        for step in tree:
            twins.do(step)
        for at, mode in order:
            yours, right = twins.modules[at]
            twins.steps.append(f"m{at}.train({mode})")
            if yours.ask("train", mode) is not yours:
                raise Wrong(twins.question("train returns") + "\nyours   another thing\nright   the module")
            right.train(mode)
        found = [bool(yours.ask("__getattribute__", "training")) for yours, _ in twins.modules]
        same(twins.question("training of m0..m3"), found, [right.training for _, right in twins.modules])

    order = st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=4)
    draw(test, tree=trees(st), order=order, examples=250)


def check_hooks(student: Any, draw: Any) -> None:
    """Hooks before and after, which change their value or do not, in order; some are removed."""
    st = draw.st

    def test(hooks: Any, removed: Any) -> None:
        yours, right = student("Module"), Same()
        logs: tuple[list[Any], list[Any]] = ([], [])
        said = []
        handles = []
        for n, (after, change) in enumerate(hooks):
            said.append(
                f"hook {n} {'after' if after else 'before'}, {'adds ' + str(change) if change else 'no result'}"
            )
            name = "register_forward_hook" if after else "register_forward_pre_hook"
            handles.append(
                (
                    yours.ask(name, hook(logs[0], n, after, change)),
                    getattr(right, name)(hook(logs[1], n, after, change)),
                )
            )
        for n in sorted(removed):
            if n < len(handles):
                said.append(f"hook {n} removed")
                handles[n][0].ask("remove")
                handles[n][1].remove()
        same("; ".join([*said, "module(1)"]), yours(1), right(1))
        same("; ".join([*said, "order of the hooks, with the values that they get"]), *logs)

    hooks = st.lists(st.tuples(st.booleans(), st.sampled_from((0, 0, 1, 5))), min_size=1, max_size=4)
    draw(test, hooks=hooks, removed=st.sets(st.integers(0, 3), max_size=2), examples=80)


class Same(rd.nn.Module):
    """The library's module that returns its argument."""

    def forward(self, x: Any) -> Any:
        return x


def hook(log: list[Any], number: int, after: bool, change: int) -> Any:
    """A hook that notes the values it gets, and adds to the value or returns None."""

    def run(module: Any, *values: Any) -> Any:
        plain = [value[0] if isinstance(value, tuple) else value for value in values]  # the library packs arguments
        log.append((number, plain))
        return plain[-1] + change if change else None

    return run


LESSON = Lesson(
    row="D25",
    title="Module: __setattr__ is the registry",
    reading=10,
    writing=50,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("the registry", 4, check_registry),
        Part("paths", 3, check_paths),
        Part("state", 4, check_state),
        Part("train", 2, check_train),
        Part("hooks", 3, check_hooks),
    ),
    hints=HINTS,
    needs=("D42",),
    given=GIVEN,
)
