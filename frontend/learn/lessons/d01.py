"""D01, the dispatcher: the highest bit wins."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redispatch as rd
from redispatch.dispatch import (
    OPERATORS,
    STATE,
    DispatchKey,
    Kernel,
    TensorBase,
    key_named,
    members,
    operator_named,
    runtime_keys,
)
from redispatch.dispatch.core.table import Entry, backends_of_autograd, resolve

from ..lesson import Lesson, Part, Wrong, on_library, same

TEXT = """
# The highest bit wins

A call of `x + y` could be answered by many: the CPU's kernel, autograd, a mode, vmap. Who is asked first is no `if`
in the operator: each of them is a *dispatch key*, and a key is a bit. A tensor carries the bits of what concerns
it; the set of them, an int, is its *keyset*. The keys of a call are

    (those of all tensors, with those that the state includes), without those that it excludes

and the highest bit that has something to do takes the call. It does its one thing and lets the call go on with the
bits below. `with no_grad()` and every handler work by excluding: what excludes must win, or autograd would record
what happens inside of autograd.

Who answers at a key, an operator's *table* says. Kernels are registered for a key, or for an *alias*, which stands
for several: a kernel at `CompositeImplicitAutograd`, which is written in other operators, answers at every backend
and above it at every autograd key. The first of these that holds answers:

1. the newest kernel registered for this very key;
2. the newest at an alias that has this key among its members, in this order:
   `CompositeExplicitAutogradNonFunctional`, `CompositeExplicitAutograd`, `CompositeImplicitAutograd`, `Autograd`.
   But `CompositeImplicitAutograd` only where there is no kernel at `CompositeExplicitAutograd`, and no backend under
   this autograd key has a kernel of its own: else it would be bypassed, and its gradient with it;
3. the newest fallback, which every operator has at this key;
4. nobody.

A key that has nothing to do is a *fallthrough*: the call passes it. Write these three functions; then the library
runs on them.
"""

DEMO = """
import redispatch as rd

x = rd.ones(2, requires_grad=True)
print(rd.explain("aten::mul.Tensor", x))
with rd.trace() as hops:
    x * 2
print(hops)
"""

TEMPLATE = '''"""D01: the highest bit wins. `python -m redispatch learn D01` has the text."""


def keyset(arguments, included, excluded):
    """Returns the keyset of a call, an int.

    arguments: the values of the call. A tensor has `.keys`, an int; other values are numbers or None; a list may hold
    tensors, too. `isinstance(value, Tensor)` tells. included, excluded: ints.
    """
    raise NotImplementedError


def resolve(registered, fallbacks, key, members, backends):
    """Returns who answers at `key`, the name of a kernel; None where nobody does.

    registered: key or alias -> names of kernels, the newest last. fallbacks: key -> the same. members: alias -> the set
    of keys that it stands for. backends: the keys of the backends under `key`, where that is an autograd key.
    """
    raise NotImplementedError


def stops_at(keys, passes):
    """Returns the key at which a call stops, of its `keys`, the highest first; "Undefined" where it stops at none.

    passes: the set of keys that are fallthroughs.
    """
    raise NotImplementedError
'''

HINTS = (
    "Draw the set on paper: union first, then take away. And ask `rd.explain(operator, tensor)` what it says of yours.",
    "`|` unites two keysets, `& ~` takes one away. The newest of a list is its last; most lists are not there.",
    "resolve: four `if`s in the order of the text. Before the third alias, ask whether any of `backends` is in "
    "`registered`, and whether 'CompositeExplicitAutograd' is.",
)

KEYS = [
    key_named(name)
    for name in ("CPU", "CUDA", "Meta", "AutogradCPU", "AutogradCUDA", "Python", "ADInplaceOrView", "AutocastCPU")
]
ALIASES = [
    "CompositeExplicitAutogradNonFunctional",
    "CompositeExplicitAutograd",
    "CompositeImplicitAutograd",
    "Autograd",
]


# Values, as the student's process sees them ---------------------------------------------------------------------------


Tensor = namedtuple("Tensor", "keys")


def spelled(value: Any) -> Any:
    """A value of a call as JSON has it: of a tensor its keys."""
    if isinstance(value, TensorBase):
        return Tensor(value._keyset)
    if isinstance(value, list | tuple):
        return [spelled(one) for one in value]
    return value if value is None or isinstance(value, int | float) else str(value)


def names(keyset: int) -> str:
    return "{" + ", ".join(key.name for key in runtime_keys(keyset)) + "}"


# The parts ------------------------------------------------------------------------------------------------------------


def check_keyset(student: Any, draw: Any) -> None:
    st = draw.st
    bits = st.sets(st.sampled_from(KEYS), max_size=3).map(union_of)
    tensor = bits.map(lambda keys: Tensor(keys))
    others = st.one_of(st.none(), st.integers(-3, 3), st.lists(st.one_of(st.none(), tensor), max_size=3))
    arguments = st.tuples(tensor, tensor, others, others).flatmap(st.permutations)

    def test(arguments: Any, included: int, excluded: int) -> None:
        flat = [one for value in arguments for one in (value if isinstance(value, list) else [value])]
        union = included
        for one in flat:
            union |= one.keys if isinstance(one, Tensor) else 0
        yours = student("keyset", arguments, included, excluded)
        said = [names(one.keys) if isinstance(one, Tensor) else one for one in flat]
        question = f"keyset: arguments with {said}, included {names(included)}, excluded {names(excluded)}"
        right = union & ~excluded
        if yours != right:
            shown = names(yours) if isinstance(yours, int) and yours >= 0 else yours
            raise Wrong(f"{question}\nyours   {shown}\nright   {names(right)}")

    draw(test, arguments=arguments.map(list), included=bits, excluded=bits)


def union_of(keys: Any) -> int:
    union = 0
    for key in keys:
        union |= key.bits
    return union


def asked(student: Any, registered: Any, fallbacks: Any, key: DispatchKey) -> str | None:
    """The student's answer about tables of kernels."""
    named = {at.name: [one.name for one in kernels] for at, kernels in registered.items()}
    others = {at.name: [one.name for one in kernels] for at, kernels in fallbacks.items()}
    alias = {name: {one.name for one in members(key_named(name))} for name in ALIASES}
    backends = sorted(one.name for one in backends_of_autograd(key))
    answer: str | None = student("resolve", named, others, key.name, alias, backends)
    return answer


def nothing(op: Any, keyset: int, stack: list[Any]) -> None:
    """Stands for what a kernel does: here they are only told apart."""


def kernel(name: str) -> Kernel:
    return Kernel(nothing, nothing, "boxed", "", name=name)


def check_resolve(student: Any, draw: Any) -> None:
    st = draw.st
    # Each may be there or not, as often as not: what hides what shows where several are.
    places = map(key_named, ("CPU", "CUDA", "AutogradCPU", *ALIASES))
    counts = st.fixed_dictionaries({at: st.sampled_from([0, 1, 2]) for at in places})
    few = st.sets(st.sampled_from(KEYS), max_size=3)

    def test(counted: Any, fallen: Any, key: DispatchKey) -> None:
        counted = {at: count for at, count in counted.items() if count}
        registered = {at: [kernel(f"{at.name} #{i}") for i in range(count)] for at, count in counted.items()}
        fallbacks = {at: [kernel(f"fallback of {at.name}")] for at in fallen}
        entry = resolve(registered, fallbacks, key)
        plain = {at.name: count for at, count in counted.items()}
        question = f"resolve: registered {plain}, fallbacks {[at.name for at in fallen]}, asked at {key.name}"
        same(question, asked(student, registered, fallbacks, key), None if entry is None else entry.kernel.name)

    draw(test, counted=counts, fallen=few, key=st.sampled_from(KEYS))


def check_stops(student: Any, draw: Any) -> None:
    st = draw.st

    def test(name: str, keys: Any) -> None:
        op, keyset = operator_named(name), union_of(keys)
        order = list(runtime_keys(keyset))
        passes = [key.name for key in order if op.entry_at(key).kernel.is_fallthrough]
        right = next((key.name for key in order if key.name not in passes), "Undefined")
        question = f"stops_at: {[key.name for key in order]}, of which {passes} are fallthroughs"
        same(question, student("stops_at", [key.name for key in order], set(passes)), right)

    names = sorted(OPERATORS)[::50]
    draw(test, name=st.sampled_from(names), keys=st.sets(st.sampled_from(KEYS), max_size=5))


def programs() -> list[Any]:
    """A training step and gradients of examples, to compare."""
    rd.manual_seed(0)
    model = rd.nn.Sequential(rd.nn.Linear(3, 4), rd.nn.ReLU(), rd.nn.Linear(4, 2))
    optimizer = rd.optim.SGD(model.parameters(), lr=0.1)
    rd.nn.functional.cross_entropy(model(rd.randn(3, 3)), rd.tensor([0, 1, 1])).backward()
    optimizer.step()
    gradients = rd.func.vmap(rd.func.grad(lambda w, x: (w * x).sin().sum()), (None, 0))(rd.randn(3), rd.randn(2, 3))
    return [*(parameter.tolist() for parameter in model.parameters()), gradients.tolist()]


@contextmanager
def installed(student: Any) -> Iterator[None]:
    """Has the library ask the student for keysets and for who answers."""
    answers = dict[Any, Any]()

    def keyset(schema: Any, stack: list[Any]) -> int:
        state = STATE.get()
        return int(student("keyset", spelled(stack), state.included, state.excluded))

    def precedence(registered: Any, fallbacks: Any, key: DispatchKey) -> Entry | None:
        sizes = tuple((at, len(kernels)) for at, kernels in registered.items())
        question = (sizes, tuple((at, len(kernels)) for at, kernels in fallbacks.items()), key)
        if question not in answers:
            numbered = {at: [kernel(f"{at.name} #{i}") for i in range(len(one))] for at, one in registered.items()}
            others = {at: [kernel(f"{at.name} fallback {i}") for i in range(len(one))] for at, one in fallbacks.items()}
            answers[question] = asked(student, numbered, others, key)
        answer = answers[question]
        if answer is None:
            return None
        name, _, number = answer.replace(" fallback ", " #").partition(" #")
        table = fallbacks if " fallback " in answer else registered
        rule = "backend fallback" if table is fallbacks else "kernel" if name == key.name else "alias"
        try:
            return Entry(key, table[key_named(name)][int(number)], rule)
        except (KeyError, IndexError, ValueError):
            raise Wrong(f"resolve: {answer!r} is no kernel that was registered") from None

    with rd.swap("keyset", keyset), rd.swap("precedence", precedence):
        yield


def check_swapped(student: Any, draw: Any) -> None:
    """The library runs on the student's functions."""
    on_library(installed(student), programs, "a training step")


LESSON = Lesson(
    row="D01",
    title="The highest bit wins",
    reading=12,
    writing=45,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("keyset", 3, check_keyset),
        Part("resolve", 4, check_resolve),
        Part("stops_at", 2, check_stops),
        Part("the library on it", 3, check_swapped),
    ),
    hints=HINTS,
    records=(Tensor,),
    installed=installed,
)
