"""D06, inference mode: fewer keys, hard errors."""

from __future__ import annotations

from collections import namedtuple
from contextlib import ExitStack
from typing import Any

import redispatch as rd
from redispatch.dispatch import STATE, keyset, operator_named, runtime_keys

from ..lesson import Lesson, Part, Wrong, same

TEXT = """
# Fewer keys, hard errors

`no_grad` says: do not record. The call still goes through the layers: Autograd looks and passes on; ADInplaceOrView
counts a write and ties a view to its base, for somebody who recorded *before* may have kept the tensor. Where nobody
ever will, that is wasted work. `inference_mode` makes the promise that nobody will, and then keeps you to it.

A normal tensor has the keys `CPU`, `ADInplaceOrView` and `Autograd`. The keys of a call are (those of the tensors,
united with those included), without those excluded. Normally `ADInplaceOrView` is included (so that a write reaches it
whoever is written) and nothing is excluded.

The regions, each relative to the state around it:

- `no_grad`, `enable_grad`: recording off, on. No key changes. (So `enable_grad` within `inference_mode` records
  nothing: the layer that would is not reached.)
- `inference_mode(True)`: includes `ADInplaceOrView` no more, excludes `Autograd`; recording is off.
- `inference_mode(False)`: the opposite of all three; within another region, it makes things normal again.

In inference mode *new* tensors are *inference tensors*: they have the key `CPU` alone, and no version counter. That
stays with them when the region ends. A view has the keys of its base, wherever it is made: it shows the same memory,
and has the same counter or none.

At `ADInplaceOrView` only calls stop that write or make a view; `Autograd` and `CPU` stop all. Recorded is what stops at
`Autograd`, while recording is on, with an input that requires grad. The result requires grad then, and is no leaf. What
else comes of missing keys is refused, by RuntimeErrors:

1. An inference tensor may not be *written* outside of inference mode: there is no counter to count with.
2. It may not be *kept* by a node: nobody could tell that it was written. `mul` keeps the input `b` if `a` requires
   grad, and `a` if `b` does (written in place it keeps a copy of its own old values, which is a normal tensor); `add`
   and `clone` keep nothing.
3. It may not be made to require grad outside of inference mode.

And as always a leaf that requires grad is not written where that would be recorded: where the call stops at `Autograd`
and recording is on.

In the library: `dispatch/autograd/grad_mode.py` has the regions, `dispatch/layers/ad_inplace_or_view.py` the first
refusal, `dispatch/autograd/saved.py` the second.
"""

DEMO = """
import redispatch as rd
from redispatch.dispatch import runtime_keys

x, w = rd.ones(2), rd.ones(2, requires_grad=True)
with rd.inference_mode():
    y, v = rd.ones(2), x.view(2)
for name, tensor in (("x", x), ("made inside", y), ("view of x, made inside", v)):
    keys = [key.name for key in runtime_keys(tensor._keyset) if not key.name.startswith("Autocast")]
    print(f"{name:<24}{keys}")
print("w + y:", (w + y).grad_fn is not None)
for what in (lambda: y.add_(1), lambda: w * y, lambda: y.requires_grad_()):
    try:
        what()
    except RuntimeError as error:
        print(str(error)[:100])
"""

TEMPLATE = '''"""D06: fewer keys, hard errors. `python -m redispatch learn D06` has the text.

Given are two namedtuples; keys are sets of "CPU", "ADInplaceOrView" and "Autograd".

    State(included, excluded, recording, inference)     sets of keys, two bools
    T(keys, requires_grad, is_leaf)                     a tensor
"""


def entered(state, region):
    """Returns the State inside a region: "no_grad", "enable_grad", "inference" or "normal" (inference_mode(False))."""
    raise NotImplementedError


def stops(state, name, inputs):
    """Returns the keys at which a call of `name` on tensors (at least one) stops, in a list, the highest first:
    "Autograd", "ADInplaceOrView", "CPU".

    name: "mul", "add", "clone"; "view", "detach", which make views; "mul_", "add_", which write the first input.
    """
    raise NotImplementedError


def result(state, name, inputs):
    """Returns the T that a call gives; RuntimeError where it is refused.

    name: as for stops; and "new", without inputs, a tensor that does not require grad; "requires_grad_" of a leaf,
    which stops nowhere and gives the tensor, requiring grad. What writes gives the first input as it is then.
    detach gives what does not require grad; a view says that it does where its base does, recorded or not. What is
    not recorded is a leaf, but a written tensor is as it was.
    """
    raise NotImplementedError
'''

HINTS = (
    "`state._replace(recording=False)` is a State with one thing changed. Sets: `|` and `-`.",
    "stops: unite the keys of all inputs with what is included, take away what is excluded; strike ADInplaceOrView "
    "unless the name is among four. result begins by asking it, for 'Autograd' tells whether the call may be recorded.",
    "result, in order: new and requires_grad_; the written leaf; the written inference tensor; is it recorded, and "
    "then what would be kept; then keys: of the base for a view, of the first input for a write, else by the state.",
)

State = namedtuple("State", "included excluded recording inference")
T = namedtuple("T", "keys requires_grad is_leaf")

# Each by the bit that says what is to be done, without that of the backend, which CPU and AutogradCPU share.
BACKEND = keyset("CPU") & keyset("AutogradCPU")
KEYS = {
    name: keyset(key) & ~BACKEND
    for name, key in (("Autograd", "AutogradCPU"), ("ADInplaceOrView", "ADInplaceOrView"), ("CPU", "CPU"))
}
REGIONS = {
    "no_grad": rd.no_grad,
    "enable_grad": rd.enable_grad,
    "inference": rd.inference_mode,
    "normal": lambda: rd.inference_mode(False),
}
OPERATORS = {
    "mul": "aten::mul.Tensor", "add": "aten::add.Tensor", "clone": "aten::clone", "view": "aten::view",
    "detach": "aten::detach", "mul_": "aten::mul_.Tensor", "add_": "aten::add_.Tensor",
}  # fmt: skip
TWO = ("mul", "add", "mul_", "add_")
KINDS = {
    "a normal tensor": lambda: rd.ones(2),
    "a leaf that requires grad": lambda: rd.ones(2, requires_grad=True),
    "a result that requires grad": lambda: rd.ones(2, requires_grad=True) + 1,
    "an inference tensor": lambda: inside(lambda: rd.ones(2)),
    "an inference tensor's view": lambda: inside(lambda: rd.ones(2)).view(2),
    "a normal tensor's view, made inside": lambda: viewed(rd.ones(2)),
}


def inside(make: Any) -> Any:
    with rd.inference_mode():
        return make()


def viewed(tensor: Any) -> Any:
    return inside(lambda: tensor.view(2))


def named(keys: int) -> set[str]:
    return {name for name, bits in KEYS.items() if keys & bits == bits}


def state_here() -> Any:
    state = STATE.get()
    return State(
        named(state.included) - {"CPU"}, named(state.excluded) - {"CPU"}, state.grad_enabled, state.inference
    )  # fmt: skip


def described(tensor: Any) -> Any:
    return T(named(tensor._keyset), tensor.requires_grad, tensor.is_leaf)


def entering(regions: Any) -> ExitStack:
    held = ExitStack()
    for region in regions:
        held.enter_context(REGIONS[region]())
    return held


def regions(st: Any) -> Any:
    return st.lists(st.sampled_from(list(REGIONS)), max_size=3)


# The parts ------------------------------------------------------------------------------------------------------------


def check_regions(student: Any, draw: Any) -> None:
    def test(outside: Any, region: str) -> None:
        with entering(outside):
            before = state_here()
            with REGIONS[region]():
                right = state_here()
        same(f"entered: {region}, the state around it is {before}", student("entered", before, region), right)

    draw(test, examples=60, outside=regions(draw.st), region=draw.st.sampled_from(list(REGIONS)))


def stack_of(name: str, tensors: Any) -> list[Any]:
    """The stack of a call: `tensors`, and what else the schema wants."""
    others: dict[str, list[Any]] = {"view": [[2]], "clone": [None], "add": [1], "add_": [1]}
    rest = others.get(name, [])
    return [*tensors, *rest]


def drawn(st: Any, names: Any) -> dict[str, Any]:
    kind = st.sampled_from(list(KINDS))
    return {"around": regions(st), "name": st.sampled_from(names), "kinds": st.tuples(kind, kind)}


def check_stops(student: Any, draw: Any) -> None:
    def test(around: Any, name: str, kinds: Any) -> None:
        tensors = [KINDS[kind]() for kind in kinds[: 2 if name in TWO else 1]]
        op = operator_named(OPERATORS[name])
        with entering(around):
            state = state_here()
            keys = rd.swap.default("keyset")(op.schema, stack_of(name, tensors))
        order = [key.name for key in runtime_keys(keys) if not op.entry_at(key).kernel.is_fallthrough]
        right = [one.removesuffix("CPU") or one for one in order if one.removesuffix("CPU") in ("", *KEYS)]
        given = [described(one) for one in tensors]
        same(f"stops: {name} of {given}, in {around}: {state}", student("stops", state, name, given), right)

    draw(test, examples=200, **drawn(draw.st, list(OPERATORS)))


def asked(student: Any, state: Any, name: str, given: Any, question: str) -> Any:
    """The student's answer, or the RuntimeError that it raises."""
    try:
        return student("result", state, name, given)
    except Exception as error:  # of the student's: `kind` names its class
        if getattr(error, "kind", "") == "RuntimeError":
            return "RuntimeError"
        raise


def check_result(
    student: Any, draw: Any, names: Any = ("new", "mul", "add", "clone", "view", "view", "view", "detach")
) -> None:
    """The result of a call, or that it is refused: as the library does."""

    def test(around: Any, name: str, kinds: Any) -> None:
        many = 0 if name == "new" else 2 if name in TWO else 1
        tensors = [KINDS[kind]() for kind in kinds[:many]]
        if name == "requires_grad_" and not tensors[0].is_leaf or name in ("mul_", "add_") and "view, made" in kinds[0]:
            return  # a write of such a view is refused for what the view remembers, which T does not tell
        given = [described(one) for one in tensors]
        with entering(around):
            state = state_here()
            try:
                found = rd.ones(2) if name == "new" else called(name, tensors)
                right = described(found)
            except RuntimeError:
                right = "RuntimeError"
        question = f"result: {name} of {', '.join(kinds[:many])}: {given}, in {around}: {state}"
        yours = asked(student, state, name, given, question)
        if yours != right:
            raise Wrong(f"{question}\nyours   {yours}\nright   {right}")

    draw(test, examples=250, **drawn(draw.st, list(names)))


def called(name: str, tensors: Any) -> Any:
    if name == "view":
        return tensors[0].view(2)
    return getattr(tensors[0], name)(*tensors[1:])


def check_refusals(student: Any, draw: Any) -> None:
    check_result(student, draw, ("mul_", "add_", "requires_grad_", "mul", "mul_"))


LESSON = Lesson(
    row="D06",
    title="Fewer keys, hard errors",
    reading=7,
    writing=40,
    text=TEXT,
    demo=DEMO,
    template=TEMPLATE,
    parts=(
        Part("regions", 3, check_regions),
        Part("stops", 3, check_stops),
        Part("result", 3, check_result),
        Part("refusals", 4, check_refusals),
    ),
    hints=HINTS,
    needs=("D01", "D11"),
    records=(State, T),
)
