"""Random numbers: generators, the factories and fills that draw from them.

The CPU's generator is PyTorch's, a Mersenne twister (kernels/cpu/twister.py): a seed gives the same numbers there as
here, one after another. Those of other devices, and of `Generator(kind="philox")`, are a seed and an offset. Element i
of a fill then is a function of (seed, offset, i) alone (kernels/cpu/random.py), and a fill moves the offset on, under a
lock, by the blocks of numbers that it may use. With either, two threads that share a generator never draw the same
numbers, and a seed gives the same ones on any number of threads.
"""

from __future__ import annotations

import contextlib
import math
import os
import struct
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ARGUMENT_TYPES, VALUE_CLASSES, OpOverload
from redispatch.dispatch.tensor import (
    CPU,
    KINDS,
    Tensor,
    as_device,
    as_numpy,
    contiguous_format,
    device,
    dtype,
    dtypes,
    empty,
    indexed,
)
from redispatch.kernels import Elementwise, Operand, Twister, numel

from ..declare.declare import Operator
from ..declare.numbers import storable
from ..declare.operator import SEEDED, kernel
from ..declare.out_forms import by
from ..declare.public import public
from ..declare.structured import c_name, check_no_internal_overlap, not_implemented
from .creation import LONG, Rule, as_integer_dtype, factory, like, shaped, written

# --- generators ------------------------------------------------------------------------------------------------------

_STATE = struct.Struct("<QQ")
_DEFAULT_SEED = 67280421310721
_MASK = 2**64 - 1


class State:
    """The position of a generator, or of several: a seed, and how many blocks of numbers were taken."""

    def __init__(self, seed: int = _DEFAULT_SEED, offset: int = 0) -> None:
        self.seed, self.offset, self.lock = seed, offset, threading.Lock()

    SIZE = _STATE.size

    def restart(self, seed: int) -> None:
        self.seed, self.offset = seed, 0

    def pack(self) -> bytes:
        with self.lock:
            return _STATE.pack(self.seed, self.offset)

    def unpack(self, state: bytes) -> None:
        with self.lock:
            self.seed, self.offset = _STATE.unpack(state)


STATES: dict[str, Any] = {"philox": State, "mt19937": Twister}


class Recording(NamedTuple):
    """Answers of a kind of devices about its generators while work is recorded, to be run later.

    take: what stands for seed and offset of so many blocks; None where nothing is recorded. check: raises for what may
    not be done to a generator meanwhile, by its name.
    """

    take: Callable[[Generator, int], tuple[int, int] | None]
    check: Callable[[Generator, str], None]


RECORDINGS: dict[str, Recording] = {}  # by type of device


class Generator:
    """A source of random numbers: `Generator().manual_seed(0)`. Threads may share it.

    kind: "mt19937", whose numbers are PyTorch's, on the CPU alone; or "philox", whose numbers go by position. The
    default is that of the device.
    Errors: RuntimeError for a device that is neither the CPU nor a user's: no other draws numbers. ValueError for a
    kind that the device has not.
    """

    __module__ = "redispatch"  # where users find it

    def __init__(self, device: Any = CPU, *, kind: str | None = None) -> None:
        on = indexed(as_device(device))
        kind = kind or ("mt19937" if on.type == "cpu" else "philox")
        if on.type != "cpu" and on.type not in KINDS:
            raise RuntimeError(
                f"Cannot get a generator for device type {on.type}: the CPU has one here, and so have devices "
                "registered by backend.register."
            )
        if kind not in STATES or (kind != "philox" and on.type != "cpu"):
            raise ValueError(f"Expected a kind of generator that device type {on.type} has, got {kind!r}")
        self.device, self.kind = on, kind
        self._state = STATES[kind](_DEFAULT_SEED)

    def take(self, count: int) -> tuple[Any, int]:
        """(seed, offset) of the next `count` blocks, which are then used up; of a twister itself, for the seed."""
        if isinstance(self._state, Twister):
            return self._state, 0
        recording = RECORDINGS.get(self.device.type)
        if recording is not None:
            stands = recording.take(self, count)
            if stands is not None:
                return stands
        state = self._state
        with state.lock:
            offset = state.offset
            state.offset = (offset + count) & _MASK
            return state.seed, offset

    def position(self, count: int) -> tuple[int, int]:
        """(seed, offset) as `take` gives it, for numbers that go by position; of a twister a word is the seed."""
        state, offset = self.take(count)
        return (state.word() if isinstance(state, Twister) else state), offset

    def _check(self, what: str) -> None:
        recording = RECORDINGS.get(self.device.type)
        if recording is not None:
            recording.check(self, what)

    def manual_seed(self, seed: int) -> Generator:
        """Starts over from a seed. ValueError for one that takes more than 64 bits."""
        seed = int(seed)
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        self._check("manual_seed")
        with self._state.lock:
            self._state.restart(seed & _MASK)
        return self

    def initial_seed(self) -> int:
        """The seed from which the present numbers come."""
        return self._state.seed

    def seed(self) -> int:
        """Starts over from a seed that the operating system chooses, and returns it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._state.seed

    def get_state(self) -> Tensor:
        """The state as a tensor of bytes: of a twister the 5,056 that PyTorch's has, else seed and offset."""
        packed = self._state.pack()
        state = empty((len(packed),), dtypes.uint8)
        as_numpy(state)[:] = np.frombuffer(packed, np.uint8)
        return state

    def set_state(self, new_state: Tensor) -> Generator:
        """Continues where `get_state` was called. Errors: TypeError or RuntimeError for what is no state."""
        if not isinstance(new_state, Tensor) or new_state._dtype is not dtypes.uint8 or new_state._array is None:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state._shape.numel() != self._state.SIZE:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {self._state.SIZE} but found the input RNG state size to be "
                f"{new_state._shape.numel()}"
            )
        self._check("set_state")
        self._state.unpack(as_numpy(new_state).tobytes())
        return self

    def graphsafe_get_state(self) -> Generator:
        """A generator that has the same state, and goes on with this one: what `graphsafe_set_state` takes.

        Errors: NotImplementedError on devices that record no graphs.
        """
        self._check_graphs("graphsafe_get_state")
        shared = Generator(self.device, kind=self.kind)
        shared._state = self._state
        return shared

    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Has this generator go on with the state of another one, which both have from here on."""
        self._check_graphs("graphsafe_set_state")
        if not isinstance(state, Generator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        self._state = state._state
        return self

    def _check_graphs(self, what: str) -> None:
        if self.device.type not in RECORDINGS:
            raise NotImplementedError(f"{what} is not supported in this Generator")

    def clone_state(self) -> Generator:
        """Another generator that will draw the same numbers."""
        return _revived(self.device, self.kind, self._state.pack())

    def __reduce__(self) -> Any:
        return _revived, (self.device, self.kind, self._state.pack())


class LentGenerator(Generator):
    """Another device's generator, for kernels of the CPU that draw numbers in its place."""

    def __init__(self, owner: Generator) -> None:
        super().__init__(kind=owner.kind)
        self.owner = owner

    def take(self, count: int) -> tuple[Any, int]:
        return self.owner.take(count)


def _revived(device: Any, kind: str, state: bytes) -> Generator:
    generator = Generator(device, kind=kind)
    generator._state.unpack(state)
    return generator


def _restored(seed: int, offset: int, device: Any = CPU) -> Generator:
    generator = Generator(device, kind="philox")
    generator._state = State(seed, offset)
    return generator


def _as_generator(value: Any) -> Generator:
    if isinstance(value, Generator):
        return value
    raise TypeError(f"Unable to cast {value!r} to a Generator")


ARGUMENT_TYPES["Generator"], VALUE_CLASSES["Generator"] = _as_generator, Generator
default_generator = Generator()


def manual_seed(seed: Any) -> Generator:
    """Seeds the default generator of the CPU, which is returned, and those of users' devices.

    >>> import redispatch as rd
    >>> _ = rd.manual_seed(0)
    >>> x = rd.rand(2)
    >>> _ = rd.manual_seed(0)
    >>> bool((rd.rand(2) == x).all())
    True
    """
    default_generator.manual_seed(int(seed))
    for kind in KINDS.values():
        for generator in kind.generators.values():
            generator.manual_seed(int(seed))
    _of_all[0] = int(seed)
    return default_generator


_of_all = [_DEFAULT_SEED]


def seed_of_all() -> int:
    """The last seed that was given for all devices, also for those that start later."""
    return _of_all[0]


def seed() -> int:
    """Seeds the default generator from the operating system; returns the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """Returns the seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Returns the state of the default generator, for `set_rng_state`."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Puts the default generator into a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """A region after which default generators are as they were before: the CPU's, and those of other devices; of the
    devices with these indices, where `devices` is given."""
    if not enabled:
        yield
        return
    states = default_states(None if devices is None else {indexed(as_device(one)).index or 0 for one in devices})
    try:
        yield
    finally:
        restore_states(states)


def default_states(indices: set[int] | None = None) -> list[tuple[Generator, Tensor]]:
    """The default generators, of the CPU and of other devices, and where they are."""
    others = [one for kind in KINDS.values() for i, one in kind.generators.items() if indices is None or i in indices]
    return [(one, one.get_state()) for one in (default_generator, *others)]


def restore_states(states: list[tuple[Generator, Tensor]]) -> None:
    """Puts generators where `default_states` found them."""
    for generator, state in states:
        generator.set_state(state)


@contextlib.contextmanager
def drawing_from(generator: Generator) -> Iterator[None]:
    """A region in which the CPU's default generator is in the state of another one, whose kind may differ."""
    before = default_generator._state
    default_generator._state = generator._state
    try:
        yield
    finally:
        default_generator._state = before


def generator_at(seed: int, offset: int, on: Any) -> Generator:
    """A generator of a device that goes on from an offset of a seed."""
    return _restored(seed & _MASK, offset & _MASK, on)


def drawn(generator: Generator | None, count: int, on: device = CPU) -> tuple[Any, int]:
    """(seed, offset) of the next `count` numbers of `generator`, or of the device's default one, as a fill takes it."""
    return source(generator, on).take(kernels.blocks(count))


def position(count: int, on: device) -> tuple[int, int]:
    """(seed, offset) of the next `count` numbers of a device's default generator, for numbers that go by position."""
    return source(None, on).position(kernels.blocks(count))


def source(generator: Generator | None, on: device) -> Generator:
    """The generator that is given for a device, or the device's default one."""
    if generator is None:
        own = KINDS[on.type].generators if on.type in KINDS else {}
        generator = own.get(indexed(on).index or 0, default_generator)
    elif generator.device.type != on.type:
        raise RuntimeError(f"Expected a '{on.type}' device type for generator but found '{generator.device.type}'")
    return generator


def twister_of(generator: Generator | None, on: device) -> Twister | None:
    """The twister from which a device's numbers come, if they come from one."""
    state = (generator or default_generator)._state
    return state if on.type == "cpu" and isinstance(state, Twister) else None


def check_floating(kernel_name: str, dtype: dtype) -> None:
    if not dtype.is_floating_point:
        raise not_implemented(kernel_name, dtype)


# --- fills in place --------------------------------------------------------------------------------------------------

GENERATOR = "*, Generator? generator=None"


def no_gradient(grad: Any) -> Any:
    """Nothing of the former value is left."""
    return grad.new_zeros(grad.shape)


def filling(schema: str, **facts: Any) -> Any:
    """A decorator that declares an operator by its kernel, which fills `self` with random numbers, at CPU and Meta."""
    known: Any = {"tags": SEEDED, "derivative": no_gradient, "function": False}
    return kernel(schema, "CPU", "Meta", **known | facts)


def fill(self: Tensor, generator: Any, loop: Callable[..., Any], *numbers: Any) -> Tensor:
    """Fills a tensor by a loop with a random number for each element, and each part of a complex one; returns it."""
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        memory = parts(self)
        loop(memory, *drawn(generator, numel(memory.shape), self._device), *numbers)
    return self


def fill_by(
    self: Tensor, generator: Any, loops: Elementwise, numbers_of: Callable[[Tensor, Any], Tensor], *others: Any
) -> Tensor:
    """Fills a tensor with a scalar function's results for random numbers of float64 and `others`, and returns it."""
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        own = getattr(twister_of(generator, self._device), loops.name, None)
        if own is not None:
            own(self._operand, *(doubles(one, self) if isinstance(one, Tensor) else one for one in others))
            return self
        given = [value._operand if isinstance(value, Tensor) else value for value in others]
        loops.run(self._operand, numbers_of(self, generator)._operand, *given, dtype="float64")
    return self


def doubles(x: Tensor, like: Tensor) -> np.ndarray:
    """The elements of `x`, broadcast to the shape of a contiguous tensor, as float64 in the order of memory."""
    return np.ascontiguousarray(np.broadcast_to(as_numpy(x), like._shape), np.float64).reshape(-1)


def numbers_like(self: Tensor, dtype: Any, generator: Any, loop: Callable[..., Any]) -> Tensor:
    """Random numbers in a tensor whose dimensions lie in the order of those of `self`."""
    return fill(like(self, dtype, None, False, None), generator, loop)


def unit_interval(self: Tensor, generator: Any) -> Tensor:
    """Uniform float64 numbers in [0, 1), of the shape of `self`."""
    return numbers_like(self, dtypes.float64, generator, kernels.uniform)


def single_interval(self: Tensor, generator: Any) -> Tensor:
    """Uniform float32 numbers in [0, 1), of the shape of `self`."""
    return numbers_like(self, dtypes.float32, generator, kernels.uniform)


def exponential_numbers(self: Tensor, generator: Any) -> Tensor:
    """Exponential numbers of the dtype and shape of `self`."""
    return numbers_like(self, None, generator, kernels.exponential)


def standard_normal(self: Tensor, generator: Any) -> Tensor:
    """Normal float64 numbers, of the shape of `self`."""
    return numbers_like(self, dtypes.float64, generator, kernels.normal)


def parts(self: Tensor) -> Operand:
    """The memory of a tensor, of a complex one as real numbers: its two parts stand along one more dimension."""
    x = self._operand
    if not self._dtype.is_complex:
        return x
    real, strides = self._dtype.to_real(), (*(2 * step for step in x.strides), 1)
    array: Any = x.array.view(real.array) if isinstance(x.array, np.ndarray) else x.array
    return Operand(array, real.name, (*x.shape, 2), strides, 2 * x.offset)


@filling(f"uniform_(Tensor(a!) self, float from=0, float to=1, {GENERATOR}) -> Tensor(a!)", refuses="whole")
def uniform_(self: Tensor, low: float, high: float, generator: Any) -> Tensor:
    """Fills the tensor with random numbers that are uniform between `from` and `to`."""
    if not self._dtype.is_complex:
        check_floating("check_uniform_bounds", self._dtype)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    return fill(self, generator, kernels.uniform, low, high)


@filling(f"normal_(Tensor(a!) self, float mean=0, float std=1, {GENERATOR}) -> Tensor(a!)", refuses="whole")
def normal_(self: Tensor, mean: float, std: float, generator: Any) -> Tensor:
    """Fills the tensor with random numbers of a normal distribution."""
    check_std(std)
    if self._dtype.is_complex:  # each part has the mean, as in PyTorch, and half of the variance
        return fill(self, generator, kernels.normal, mean, std / math.sqrt(2))
    if self._shape.numel():
        check_floating("normal_kernel_cpu", self._dtype)
    return fill(self, generator, kernels.normal, mean, std)


def check_std(std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


@filling(f"exponential_(Tensor(a!) self, float lambd=1, {GENERATOR}) -> Tensor(a!)", refuses="whole complex")
def exponential_(self: Tensor, lambd: float, generator: Any) -> Tensor:
    """Fills the tensor with random numbers of an exponential distribution of the rate `lambd`."""
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if self._shape.numel() and not self._dtype.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {self._dtype.tensor_name}"
        )
    return fill(self, generator, kernels.exponential, lambd)


def below(unit, p):
    return unit < p


BELOW = Elementwise("below", below)


def bernoulli_number(self: Tensor, p: float, generator: Any) -> Tensor:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if self._dtype.is_complex:
        raise not_implemented("bernoulli_scalar_cpu_", self._dtype)
    return fill(self, generator, kernels.bernoulli, p)


def bernoulli_tensor(self: Tensor, p: Tensor, generator: Any) -> Tensor:
    if self._dtype.is_complex:
        raise not_implemented("bernoulli_tensor_cpu_self_", self._dtype)
    check_floating("bernoulli_tensor_cpu_p_", p._dtype)
    if self._device.type != "meta":
        check_probabilities(p)
    twisted = twister_of(generator, self._device)  # takes a word for each number, and two for one of 64 bits
    units = single_interval if twisted and p._dtype is not dtypes.float64 else unit_interval
    return fill_by(self, generator, BELOW, units, p)


bernoulli_float_op = filling(
    f"bernoulli_.float(Tensor(a!) self, float p=0.5, {GENERATOR}) -> Tensor(a!)",
    node="BernoulliBackward2",
    face=False,
)(bernoulli_number)
bernoulli_ = filling(
    f"bernoulli_.Tensor(Tensor(a!) self, Tensor p, {GENERATOR}) -> Tensor(a!)",
    node="BernoulliBackward1",
    also=(bernoulli_float_op,),
    refuses="complex",
    doc="Fills the tensor with ones, each with probability `p`, and zeros.",
    derivative={"self": no_gradient, "p": no_gradient},
)(bernoulli_tensor)


def check_probabilities(p: Tensor) -> None:
    """RuntimeError for what is no probability; on a device nobody waits to see."""
    if p._array is None:
        return
    values = as_numpy(p)
    if not ((values >= 0) & (values <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If "
            "so, please report an enhancement request to PyTorch.)"
        )


def integers(self: Tensor, low: int, high: int | None, generator: Any, whole: bool = False) -> Tensor:
    """From `low` up to `high`, exclusive; up to the largest that the dtype holds where there is no `high`. `whole`: no
    bound is given."""
    if self._dtype.is_complex:
        if high is None:
            raise not_implemented("random_kernel_cpu", self._dtype)
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if high is None:
        high = largest_integer(self._dtype) + 1
    check_range(low, high, self._dtype)
    return fill(self, generator, kernels.randint, low, high, whole)


random_to_op = filling(
    f"random_.to(Tensor(a!) self, int to, {GENERATOR}) -> Tensor(a!)",
    node="RandomBackward1",
    refuses="bool complex",
    face=False,
)(lambda self, to, generator: integers(self, 0, to, generator))
random_op = filling(
    f"random_(Tensor(a!) self, {GENERATOR}) -> Tensor(a!)",
    node="RandomBackward2",
    refuses="complex",
    face=False,
)(lambda self, generator: integers(self, 0, None, generator, whole=True))
random_ = filling(
    f"random_.from(Tensor(a!) self, int from, int? to, {GENERATOR}) -> Tensor(a!)",
    also=(random_to_op, random_op),
    refuses="bool uint8 complex",
    doc="Fills the tensor with random whole numbers from `from` up to `to`, without it.",
)(integers)
uniform_op, normal_op, exponential_op = uniform_.op, normal_.op, exponential_.op
bernoulli_tensor_op, random_from_op = bernoulli_.op, random_.op


def largest_integer(dtype: dtype) -> int:
    """The largest integer up to which a dtype holds all: 2**24 for float32."""
    if dtype is dtypes.bool:
        return 1
    if dtype.is_floating_point:
        return {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24}.get(dtype.name, 2**53)
    return min(int(np.iinfo(dtype.numpy).max), 2**63 - 1)


def check_range(low: int, high: int, dtype: dtype) -> None:
    """Raises RuntimeError where there is no integer from `low` up to `high`, exclusive, or `dtype` cannot hold it."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if dtype.is_floating_point:
        return
    least, most = (0, 1) if dtype is dtypes.bool else (int(np.iinfo(dtype.numpy).min), int(np.iinfo(dtype.numpy).max))
    for name, value in (("from", low), ("to - 1", high - 1)):
        if not least <= value <= most:
            raise RuntimeError(f"{name} is out of bounds for {c_name(dtype)}")


# --- factories -------------------------------------------------------------------------------------------------------


def rand_rule(dtype: Any, size: Any, generator: Any = None) -> Rule:
    return size, dtype, given(uniform_op.functional, generator)


def randn_rule(dtype: Any, size: Any, generator: Any = None) -> Rule:
    return size, dtype, given(normal_op.functional, generator)


def given(fill: OpOverload, generator: Any) -> Callable[..., Tensor]:
    """Returns what fills a tensor with numbers of a generator, or of the default one."""
    return fill if generator is None else partial(fill, generator=generator)


def randint_from(dtype: Any, low: int, high: int, size: Any, generator: Any = None) -> Rule:
    fill = given(random_from_op.functional, generator)
    return size, as_integer_dtype(dtype), lambda result: fill(result, low, high)


def randint_below(dtype: Any, high: int, size: Any, generator: Any = None) -> Rule:
    return randint_from(dtype, 0, high, size, generator)


def randperm_rule(dtype: Any, n: int, generator: Any = None) -> Rule:
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    dtype = as_integer_dtype(dtype)
    if dtype is dtypes.bool or dtype.is_complex:
        raise not_implemented("randperm", dtype)
    storable(max(n - 1, 0), dtype)  # else an error: two of the numbers would be the same

    def fill(result: Tensor) -> Tensor:
        if result._device.type == "meta":
            return result
        return written(result, kernels.permutation(n, *drawn(generator, n, result._device)))

    return (n,), dtype, fill


seeded_factory = partial(factory, tags=SEEDED)
BELOW_HIGH: dict[str, Any] = {"refuses": "bool complex"}
FROM_LOW: dict[str, Any] = {"refuses": "bool uint8 complex"}
SIZE, GENERATED = "SymInt[] size", "SymInt[] size, *, Generator? generator"


def floats(name: str, rule: Callable[..., Rule], numbers: str) -> tuple[Operator, Any, Any]:
    """A factory of random floats: its operator, and the functions that take a size and a tensor of that size."""
    op = seeded_factory(rule, f"{name}({SIZE})", out="out", core=True, refuses="whole")
    generated = seeded_factory(rule, f"{name}.generator({GENERATED})", refuses="whole")
    like = seeded_factory(rule, f"{name}_like(Tensor self)", refuses="whole")
    return (
        op,
        public(op, generated, doc=f"Returns random numbers {numbers}, of the given size."),
        public(like, method=False, doc=f"Returns random numbers {numbers}, in the shape of `self`."),
    )


rand_op, rand, rand_like = floats("rand", rand_rule, "that are uniform in [0, 1)")
randn_op, randn, randn_like = floats("randn", randn_rule, "of the standard normal distribution")
randint = public(
    seeded_factory(randint_below, f"randint(SymInt high, {SIZE})", LONG, out="out", **BELOW_HIGH),
    seeded_factory(randint_from, f"randint.low(SymInt low, SymInt high, {SIZE})", LONG, out="low_out", **FROM_LOW),
    seeded_factory(randint_below, f"randint.generator(SymInt high, {GENERATED})", LONG, out="generator_out"),
    seeded_factory(
        randint_from,
        f"randint.low_generator(SymInt low, SymInt high, {GENERATED})",
        LONG,
        out="low_generator_out",
        **FROM_LOW,
    ),
    doc="Returns random whole numbers from `low` up to `high`, without it, of the given size.",
)
randint_like = public(
    seeded_factory(randint_below, "randint_like(Tensor self, SymInt high)", **BELOW_HIGH),
    seeded_factory(randint_from, "randint_like.low_dtype(Tensor self, SymInt low, SymInt high)", **FROM_LOW),
    method=False,
    doc="Returns random whole numbers from `low` up to `high`, without it, in the shape of `self`.",
)
randperm = public(
    seeded_factory(randperm_rule, "randperm(SymInt n)", LONG, out="out", core=True, **BELOW_HIGH),
    seeded_factory(randperm_rule, "randperm.generator(SymInt n, *, Generator? generator)", LONG, out="generator_out"),
    doc="Returns the whole numbers from 0 to n - 1 in random order.",
)

# --- bernoulli and normal, out of place ------------------------------------------------------------------------------


@kernel(
    f"bernoulli.p(Tensor self, float p, {GENERATOR}) -> Tensor",
    tags=SEEDED,
    late_out=False,
    refuses="complex",
)
def bernoulli_p_op(self: Tensor, p: float, generator: Any) -> Tensor:
    dense = like(self, None, None, False, contiguous_format)
    return bernoulli_float_op.functional(dense, p, generator=generator)


@kernel(
    f"bernoulli(Tensor self, {GENERATOR}) -> Tensor",
    "CPU",
    "Meta",
    derivative=no_gradient,
    out="out",
    also=(bernoulli_p_op,),
    tags=SEEDED,
    out_by=by(lambda self, generator, out: bernoulli_tensor(shaped(out, self._shape), self, generator)),
    refuses="whole complex",
)
def bernoulli(self: Tensor, generator: Any) -> Tensor:
    """Returns ones and zeros: each is one with the probability that stands in its place, or `p`."""
    return bernoulli_tensor(like(self, None, None, False, contiguous_format), self, generator)


def product(x, y):
    return x * y


def total(x, y):
    return x + y


PRODUCT, TOTAL = Elementwise("product", product), Elementwise("total", total)


def normal_of(mean: Any, std: Any, generator: Any) -> Tensor:
    """Normal numbers, each with its mean and standard deviation; either may be one number for all."""
    tensors = [value for value in (mean, std) if isinstance(value, Tensor)]
    shape = kernels.broadcast_shapes(*(tuple(t._shape) for t in tensors))
    kind = tensors[0]._dtype
    if any(tensor._shape.numel() for tensor in tensors):
        check_floating("normal_kernel_cpu", kind)
    if isinstance(std, Tensor):
        if std._array is not None and not (as_numpy(std) >= 0).all():
            raise RuntimeError("normal expects all elements of std >= 0.0")
    else:
        check_std(std)
    result = empty(shape, kind, tensors[0]._device)
    fill(result, generator, kernels.normal, 0.0, 1.0 if isinstance(std, Tensor) else std)
    if result._device.type != "meta":  # each step is rounded, as in PyTorch
        for step, value in ((PRODUCT, std), (TOTAL, mean)):
            if step is TOTAL or isinstance(value, Tensor):
                given = value._operand if isinstance(value, Tensor) else float(value)
                step.run(result._operand, result._operand, given, dtype=kind.name)
    return result


def normal_overload(number: int, mean: str, std: str) -> Operator:
    """The overload for a mean and a standard deviation that are tensors, or one of them a number."""
    kinds = [one.partition(" ")[0] for one in (mean, std)]
    zeros = {
        "mean": lambda grad, mean_shape: grad.new_zeros(mean_shape),
        "std": lambda grad, std_shape: grad.new_zeros(std_shape),
    }
    overload = "_".join(kinds)
    return kernel(
        f"normal.{overload}({mean}, {std}, {GENERATOR}) -> Tensor",
        "CPU",
        "Meta",
        out=f"{overload}_out",
        derivative={name: zeros[name] for name, kind in zip(zeros, kinds, strict=True) if kind == "Tensor"},
        node=f"NormalBackward{number}",
        refuses="whole complex",
        tags=SEEDED,
    )(normal_of)


def normal_rule(dtype: Any, mean: float, std: float, size: Any, generator: Any) -> Rule:
    fill = given(normal_op.functional, generator)
    return size, dtype, lambda result: fill(result, mean, std)


normal = public(
    normal_overload(3, "Tensor mean", "Tensor std"),
    normal_overload(1, "Tensor mean", "float std=1"),
    normal_overload(2, "float mean", "Tensor std"),
    seeded_factory(
        normal_rule,
        f"normal.float_float(float mean, float std, SymInt[] size, {GENERATOR})",
        out="float_float_out",
        refuses="whole",
    ),
    doc="Returns random numbers of normal distributions with these means and standard deviations.",
)
