"""FunctionalRNGMode: random operators draw from a key that is passed, and a function of the key is pure.

    def noisy(x):
        return F.dropout(x) + rd.randn(3)

    with FunctionalRNGMode(key):        # the same key: the same numbers, whatever was drawn before
        y = noisy(x)
    y = with_key(noisy)(key, x)         # the same, as a function of the key
    left, right = split(key, 2)         # two keys, whose numbers have nothing to do with each other

What it teaches: hidden state as an argument. A generator is a number that everybody changes; a key is a number that
nobody does. Here the n-th draw of a region comes from a key of its own, made of the region's key and n, so results
depend on the order of draws in the region and on nothing outside of it, and the state outside stays as it was. How
serious it is: for every day. What is recomputed piecewise (checkpoints) counts its draws anew: give each piece a key.

Source: the idea is that of JAX's keys; the mixing function is that of SplitMix64 (Steele, Lea and Flood, "Fast
Splittable Pseudorandom Number Generators", 2014). Read next: kernels/ops/random.py, where a generator is a seed and an
offset.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import TorchDispatchMode

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15  # 2**64 by the golden ratio, odd: its multiples visit all of 64 bits
PASSED = ("refuse", "replace", "draw")  # what may be done with a generator that was passed
SEEDED = ContextVar("SEEDED", default=False)  # whether an inner region has seen to the call: outer ones let it through


class FunctionalRNGMode(TorchDispatchMode):
    """A region whose random numbers are a function of `key`, an integer of 64 bits.

    Operators that take a generator get one of their own, of the device on which they draw; for the others (`rand_like`,
    `dropout`) the default generator, the CPU's, is lent a seed, and has its state back after the call: no other thread
    may draw meanwhile. Each entry of the region starts with the first draw again; `draws` says how many there were.
    generators: what is done at an operator that was passed one by the program, whose state the key knows nothing of:
    "refuse" it; "replace" it by one of the key's on the same device; or let it "draw" as it would outside.
    Errors: TypeError for a key that is no integer, ValueError for one beyond 64 bits, or another word; RuntimeError at
    an operator that was passed a generator where that is refused.
    """

    def __init__(self, key: int, *, generators: str = "refuse") -> None:
        super().__init__()
        if generators not in PASSED:
            raise ValueError(f"FunctionalRNGMode: generators is one of {', '.join(PASSED)}, got {generators!r}")
        self.key, self.generators = checked(key), generators
        self.draws = 0

    def __enter__(self) -> FunctionalRNGMode:
        self.draws = 0
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if rd.Tag.nondeterministic_seeded not in func.tags or SEEDED.get():
            return func(*args, **kwargs)
        given = any(isinstance(leaf, rd.Generator) for leaf in pytree.tree_leaves((args, kwargs)))
        if given and self.generators == "draw":
            return func(*args, **kwargs)
        if given and self.generators == "refuse":
            raise RuntimeError(
                f"{func} was passed a generator, and in this region numbers come from the key alone; leave the "
                'generator out, or pass generators="replace" or "draw" to FunctionalRNGMode'
            )
        seed = fold_in(self.key, self.draws)
        self.draws += 1
        token = SEEDED.set(True)
        try:
            return drawn_from(seed, func, args, kwargs)
        finally:
            SEEDED.reset(token)


def drawn_from(seed: int, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of an operator whose random numbers come from `seed`."""
    names = [argument.name for argument in func._schema.arguments]
    if "generator" in names:
        generator, position = source(seed, device_of(args, kwargs)), names.index("generator")
        if position < len(args):
            return func(*args[:position], generator, *args[position + 1 :], **kwargs)
        return func(*args, **{**kwargs, "generator": generator})
    with rd.random.drawing_from(source(seed, "cpu")):
        return func(*args, **kwargs)


def source(seed: int, device: Any) -> rd.Generator:
    """A generator whose numbers depend on all 64 bits of a seed, and are the same on all devices."""
    return rd.Generator(device, kind="philox").manual_seed(seed)


def device_of(args: Any, kwargs: dict[str, Any]) -> Any:
    """The device on which a call draws: its generator's, the one that it names, or that of its first tensor."""
    leaves = pytree.tree_leaves((args, kwargs))
    for kind in (rd.Generator, rd.device, rd.Tensor):
        found = next((leaf for leaf in leaves if isinstance(leaf, kind)), None)
        if found is not None:
            on = found if isinstance(found, rd.device) else found.device
            return rd.device("cpu") if on.type == "meta" else on  # where nothing is drawn
    return rd.device("cpu")


def with_key(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with a key as one more argument, the first: its random numbers depend on that alone."""

    @wraps(function)
    def keyed(key: int, *args: Any, **kwargs: Any) -> Any:
        with FunctionalRNGMode(key):
            return function(*args, **kwargs)

    return keyed


def fold_in(key: int, data: int) -> int:
    """A key made of a key and an integer, such as the number of a step: other data, other numbers.

    Errors: TypeError and ValueError as for the mode's key.
    """
    return mixed(mixed(checked(key)) + (checked(data) + 1) * GOLDEN)


def split(key: int, count: int = 2) -> tuple[int, ...]:
    """`count` keys made of one: `fold_in(key, 0)`, `fold_in(key, 1)` and so on."""
    return tuple(fold_in(key, number) for number in range(count))


def mixed(bits: int) -> int:
    """64 bits of which each depends on all of `bits`; no two results are the same (SplitMix64's finalizer)."""
    bits &= MASK
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & MASK
    return bits ^ bits >> 31


def checked(key: Any) -> int:
    """A key as a number from 0 to 2**64 - 1; negative ones of 64 bits are taken as seeds are."""
    try:
        number = operator.index(key)
    except TypeError:
        raise TypeError(f"FunctionalRNGMode: a key is an integer of 64 bits, got {type(key).__name__}") from None
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"FunctionalRNGMode: a key is an integer of 64 bits, got {number}")
    return number & MASK


NOT_SUPPORTED = {
    "#nondeterministic_seeded/values,inplace,out,autograd,functionalization": "numbers come from the key, not the seed",
}
