"""Random numbers: generators, the factories and fills that draw from them.

A generator is a seed and an offset. Element i of a fill is a function of (seed, offset, i) alone
(kernels/cpu/random.py), and a fill moves the offset on, under a lock, by the blocks of numbers that it may use. So a
seed gives the same numbers on one thread and on many, and two threads that share a generator never draw the same ones.

The numbers are not PyTorch's, whose CPU generator is a Mersenne twister; their distributions are.
"""

from __future__ import annotations

import contextlib
import math
import os
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from redispatch import kernels
from redispatch.dispatch import ARGUMENT_TYPES, VALUE_CLASSES
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
from redispatch.kernels import Elementwise, Operand, numel
from redispatch.kernels.declare.out_forms import copy_into_out

from ..declare.declare import Operator
from ..declare.numbers import storable
from ..declare.public import public
from ..declare.structured import c_name, check_no_internal_overlap, not_implemented
from .creation import FACTORY, LIKE, like, new, shaped, written

# --- generators ------------------------------------------------------------------------------------------------------

_STATE = struct.Struct("<QQ")
_DEFAULT_SEED = 67280421310721
_MASK = 2**64 - 1


class State:
    """Where a generator, or several, are: a seed, and how many blocks of numbers were taken."""

    def __init__(self, seed: int = _DEFAULT_SEED, offset: int = 0) -> None:
        self.seed, self.offset, self.lock = seed, offset, threading.Lock()


class Recording(NamedTuple):
    """What a kind of devices says of its generators while work is recorded, to be run later.

    take: what stands for seed and offset of so many blocks; None where nothing is recorded. check: raises for what may
    not be done to a generator meanwhile, by its name.
    """

    take: Callable[[Generator, int], tuple[int, int] | None]
    check: Callable[[Generator, str], None]


RECORDINGS: dict[str, Recording] = {}  # by type of device


class Generator:
    """A source of random numbers: `Generator().manual_seed(0)`. Threads may share it.

    Errors: RuntimeError for a device that is neither the CPU nor a user's: no other draws numbers.
    """

    __module__ = "redispatch"  # where users find it

    def __init__(self, device: Any = CPU) -> None:
        on = indexed(as_device(device))
        if on.type != "cpu" and on.type not in KINDS:
            raise RuntimeError(
                f"Cannot get a generator for device type {on.type}: the CPU has one here, and so have devices "
                "registered by backend.register."
            )
        self.device = on
        self._state = State()

    def take(self, count: int) -> tuple[int, int]:
        """(seed, offset) of the next `count` blocks, which are then used up."""
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
            self._state.seed, self._state.offset = seed & _MASK, 0
        return self

    def initial_seed(self) -> int:
        """The seed from which the present numbers come."""
        return self._state.seed

    def seed(self) -> int:
        """Starts over from a seed that the operating system chooses, and returns it."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._state.seed

    def get_state(self) -> Tensor:
        """Seed and offset as a tensor of bytes."""
        with self._state.lock:
            packed = _STATE.pack(self._state.seed, self._state.offset)
        state = empty((_STATE.size,), dtypes.uint8)
        as_numpy(state)[:] = np.frombuffer(packed, np.uint8)
        return state

    def set_state(self, new_state: Tensor) -> Generator:
        """Continues where `get_state` was called. Errors: TypeError or RuntimeError for what is no state."""
        if not isinstance(new_state, Tensor) or new_state._dtype is not dtypes.uint8 or new_state._array is None:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state._shape.numel() != _STATE.size:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.size} but found the input RNG state size to be "
                f"{new_state._shape.numel()}"
            )
        self._check("set_state")
        with self._state.lock:
            self._state.seed, self._state.offset = _STATE.unpack(as_numpy(new_state).tobytes())
        return self

    def graphsafe_get_state(self) -> Generator:
        """A generator that has the same state, and goes on with this one: what `graphsafe_set_state` takes.

        Errors: NotImplementedError on devices that record no graphs.
        """
        self._check_graphs("graphsafe_get_state")
        shared = Generator(self.device)
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
        return Generator(self.device).set_state(self.get_state())

    def __reduce__(self) -> Any:
        return _restored, (self._state.seed, self._state.offset, self.device)


class LentGenerator(Generator):
    """Another device's generator, for kernels of the CPU that draw numbers in its place."""

    def __init__(self, owner: Generator) -> None:
        super().__init__()
        self.owner = owner

    def take(self, count: int) -> tuple[int, int]:
        return self.owner.take(count)


def _restored(seed: int, offset: int, device: Any = CPU) -> Generator:
    generator = Generator(device)
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


def generator_at(seed: int, offset: int, on: Any) -> Generator:
    """A generator of a device that goes on from an offset of a seed."""
    return _restored(seed & _MASK, offset & _MASK, on)


def drawn(generator: Generator | None, count: int, on: device = CPU) -> tuple[int, int]:
    """(seed, offset) of the next `count` numbers of `generator`, or of the device's default one."""
    if generator is None:
        own = KINDS[on.type].generators if on.type in KINDS else {}
        generator = own.get(indexed(on).index or 0, default_generator)
    elif generator.device.type != on.type:
        raise RuntimeError(f"Expected a '{on.type}' device type for generator but found '{generator.device.type}'")
    return generator.take(kernels.blocks(count))


def check_floating(kernel_name: str, dtype: dtype) -> None:
    if not dtype.is_floating_point:
        raise not_implemented(kernel_name, dtype)


# --- fills in place --------------------------------------------------------------------------------------------------

GENERATOR = "*, Generator? generator=None"


def seeded(schema: str, **options: Any) -> Operator:
    """Declares an operator that draws random numbers."""
    return Operator(schema, tags=("nondeterministic_seeded",), **options)


uniform_op = seeded(f"uniform_(Tensor(a!) self, float from=0, float to=1, {GENERATOR}) -> Tensor(a!)", refuses="whole")
normal_op = seeded(f"normal_(Tensor(a!) self, float mean=0, float std=1, {GENERATOR}) -> Tensor(a!)", refuses="whole")
exponential_op = seeded(
    f"exponential_(Tensor(a!) self, float lambd=1, {GENERATOR}) -> Tensor(a!)", refuses="whole complex"
)
bernoulli_float_op = seeded(f"bernoulli_.float(Tensor(a!) self, float p=0.5, {GENERATOR}) -> Tensor(a!)")
bernoulli_tensor_op = seeded(
    f"bernoulli_.Tensor(Tensor(a!) self, Tensor p, {GENERATOR}) -> Tensor(a!)", refuses="complex"
)
random_op = seeded(f"random_(Tensor(a!) self, {GENERATOR}) -> Tensor(a!)", refuses="complex")
random_from_op = seeded(
    f"random_.from(Tensor(a!) self, int from, int? to, {GENERATOR}) -> Tensor(a!)", refuses="bool uint8 complex"
)
random_to_op = seeded(f"random_.to(Tensor(a!) self, int to, {GENERATOR}) -> Tensor(a!)", refuses="bool complex")


@uniform_op.kernel("CPU", "Meta")
def uniform_kernel(self: Tensor, low: float, high: float, generator: Any) -> Tensor:
    if not self._dtype.is_complex:
        check_floating("check_uniform_bounds", self._dtype)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        numbers = parts(self)
        kernels.uniform(numbers, *drawn(generator, numel(numbers.shape), self._device), low, high)
    return self


def parts(self: Tensor) -> Operand:
    """The memory of a tensor, of a complex one as real numbers: its two parts stand along one more dimension."""
    x = self._operand
    if not self._dtype.is_complex:
        return x
    real, strides = self._dtype.to_real(), (*(2 * step for step in x.strides), 1)
    array: Any = x.array.view(real.array) if isinstance(x.array, np.ndarray) else x.array
    return Operand(array, real.name, (*x.shape, 2), strides, 2 * x.offset)


@normal_op.kernel("CPU", "Meta")
def normal_kernel(self: Tensor, mean: float, std: float, generator: Any) -> Tensor:
    check_std(std)
    if self._shape.numel():
        check_normal(self._dtype)
    check_no_internal_overlap(self)
    if self._device.type != "meta" and self._dtype.is_complex:  # each part has half of the variance
        numbers = parts(self)
        kernels.normal(numbers, *drawn(generator, numel(numbers.shape), self._device), 0.0, std / math.sqrt(2))
        if mean:
            as_numpy(self)[...] += mean
    elif self._device.type != "meta":
        kernels.normal(self._operand, *drawn(generator, self._shape.numel(), self._device), mean, std)
    return self


def check_normal(dtype: dtype) -> None:
    if not dtype.is_complex:
        check_floating("normal_kernel_cpu", dtype)


def check_std(std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


@exponential_op.kernel("CPU", "Meta")
def exponential_kernel(self: Tensor, lambd: float, generator: Any) -> Tensor:
    """Fills the tensor with random numbers of an exponential distribution of the rate `lambd`."""
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if self._shape.numel() and not self._dtype.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {self._dtype.tensor_name}"
        )
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        kernels.exponential(self._operand, *drawn(generator, self._shape.numel(), self._device), lambd)
    return self


def unit_interval(like: Tensor, generator: Any) -> Tensor:
    """Uniform float64 numbers in [0, 1), of the shape of `like`."""
    unit = empty(like._shape, dtypes.float64, like._device)
    kernels.uniform(unit._operand, *drawn(generator, like._shape.numel(), like._device))
    return unit


@bernoulli_float_op.kernel("CPU", "Meta")
def bernoulli_float_kernel(self: Tensor, p: float, generator: Any) -> Tensor:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if self._dtype.is_complex:
        raise not_implemented("bernoulli_scalar_cpu_", self._dtype)
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        kernels.bernoulli(self._operand, *drawn(generator, self._shape.numel(), self._device), p)
    return self


def below(unit, p):
    return unit < p


BELOW = Elementwise("below", below)


@bernoulli_tensor_op.kernel("CPU", "Meta")
def bernoulli_tensor_kernel(self: Tensor, p: Tensor, generator: Any) -> Tensor:
    """Fills the tensor with ones, each with probability `p`, and zeros."""
    if self._dtype.is_complex:
        raise not_implemented("bernoulli_tensor_cpu_self_", self._dtype)
    check_floating("bernoulli_tensor_cpu_p_", p._dtype)
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        check_probabilities(p)
        BELOW.run(self._operand, unit_interval(self, generator)._operand, p._operand, dtype="float64")
    return self


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


@random_from_op.kernel("CPU", "Meta")
def random_from_kernel(self: Tensor, low: int, high: int | None, generator: Any) -> Tensor:
    """Fills the tensor with random whole numbers from `from` up to `to`, without it."""
    if self._dtype.is_complex:
        if high is None:
            raise not_implemented("random_kernel_cpu", self._dtype)
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if high is None:
        high = largest_integer(self._dtype) + 1
    check_range(low, high, self._dtype)
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        kernels.randint(self._operand, *drawn(generator, self._shape.numel(), self._device), low, high)
    return self


@random_to_op.kernel("CPU", "Meta")
def random_to_kernel(self: Tensor, to: int, generator: Any) -> Tensor:
    return random_from_kernel(self, 0, to, generator)


@random_op.kernel("CPU", "Meta")
def random_kernel(self: Tensor, generator: Any) -> Tensor:
    return random_from_kernel(self, 0, None, generator)


def largest_integer(dtype: dtype) -> int:
    """The largest integer up to which a dtype holds all: 2**24 for float32. One less for int64, which has no more."""
    if dtype is dtypes.bool:
        return 1
    if dtype.is_floating_point:
        return {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24}.get(dtype.name, 2**53)
    return min(int(np.iinfo(dtype.numpy).max), 2**63 - 2)


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


def no_gradient(grad: Any) -> Any:
    """Nothing of the former value is left."""
    return grad.new_zeros(grad.shape)


uniform_op.derivative(self=no_gradient)
normal_op.derivative(self=no_gradient)
exponential_op.derivative(self=no_gradient)
bernoulli_tensor_op.derivative(self=no_gradient, p=no_gradient, node="BernoulliBackward1")
bernoulli_float_op.derivative(self=no_gradient, node="BernoulliBackward2")
random_from_op.derivative(self=no_gradient)
random_to_op.derivative(self=no_gradient, node="RandomBackward1")
random_op.derivative(self=no_gradient, node="RandomBackward2")

public(uniform_op, function=False, doc="Fills the tensor with random numbers that are uniform between `from` and `to`.")
public(normal_op, function=False, doc="Fills the tensor with random numbers of a normal distribution.")
public(exponential_op, function=False)
public(bernoulli_tensor_op, bernoulli_float_op, function=False)
public(random_from_op, random_to_op, random_op, function=False)

# --- factories -------------------------------------------------------------------------------------------------------

rand_op = seeded(f"rand(SymInt[] size, *, {FACTORY}) -> Tensor", refuses="whole", core=True)
rand_generator_op = seeded(f"rand.generator(SymInt[] size, *, Generator? generator, {FACTORY}) -> Tensor")
rand_out_op = seeded("rand.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")
randn_op = seeded(f"randn(SymInt[] size, *, {FACTORY}) -> Tensor", refuses="whole", core=True)
randn_generator_op = seeded(f"randn.generator(SymInt[] size, *, Generator? generator, {FACTORY}) -> Tensor")
randn_out_op = seeded("randn.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)")


@rand_generator_op.explicit
def rand_kernel(size: Any, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return uniform_op.functional(new(size, dtype, device, pin_memory), generator=generator)


@rand_op.explicit
def rand_plain_kernel(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return rand_kernel(size, None, dtype, layout, device, pin_memory)


@rand_out_op.explicit
def rand_out_kernel(size: Any, out: Tensor) -> Tensor:
    return uniform_op.functional(shaped(out, size))


@randn_generator_op.explicit
def randn_kernel(size: Any, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return normal_op.functional(new(size, dtype, device, pin_memory), generator=generator)


@randn_op.explicit
def randn_plain_kernel(size: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    """Returns random numbers of the standard normal distribution, of the given size."""
    return randn_kernel(size, None, dtype, layout, device, pin_memory)


@randn_out_op.explicit
def randn_out_kernel(size: Any, out: Tensor) -> Tensor:
    return normal_op.functional(shaped(out, size))


rand_op.out = rand_out_op.functional
randn_op.out = randn_out_op.functional
rand = public(rand_op, rand_generator_op, doc="Returns random numbers that are uniform in [0, 1), of the given size.")
randn = public(randn_op, randn_generator_op)

LONG = FACTORY.replace("dtype=None", "dtype=long")
randint_op = seeded(f"randint(SymInt high, SymInt[] size, *, {LONG}) -> Tensor", out="out", refuses="bool complex")
randint_low_op = seeded(
    f"randint.low(SymInt low, SymInt high, SymInt[] size, *, {LONG}) -> Tensor",
    out="low_out",
    refuses="bool uint8 complex",
)
randint_generator_op = seeded(
    f"randint.generator(SymInt high, SymInt[] size, *, Generator? generator, {LONG}) -> Tensor", out="generator_out"
)
randint_low_generator_op = seeded(
    f"randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, {LONG}) -> Tensor",
    out="low_generator_out",
    refuses="bool uint8 complex",
)


@randint_low_generator_op.explicit
def randint_kernel(
    low: int, high: int, size: Any, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Tensor:
    result = new(size, as_integer_dtype(dtype), device, pin_memory)
    return random_from_op.functional(result, low, high, generator=generator)


def as_integer_dtype(dtype: Any) -> dtype:
    """The dtype of random integers: int64 where none is given. A default comes as the schema has it."""
    return dtypes.int64 if dtype is None else ARGUMENT_TYPES["ScalarType"](dtype)


@randint_low_op.explicit
def randint_low_kernel(low: int, high: int, size: Any, dtype: Any, layout: Any, device: Any, pin: Any) -> Tensor:
    return randint_kernel(low, high, size, None, dtype, layout, device, pin)


@randint_generator_op.explicit
def randint_generator_kernel(
    high: int, size: Any, generator: Any, dtype: Any, layout: Any, device: Any, pin: Any
) -> Tensor:
    return randint_kernel(0, high, size, generator, dtype, layout, device, pin)


@randint_op.explicit
def randint_plain_kernel(high: int, size: Any, dtype: Any, layout: Any, device: Any, pin: Any) -> Tensor:
    """Returns random whole numbers from `low` up to `high`, without it, of the given size."""
    return randint_kernel(0, high, size, None, dtype, layout, device, pin)


copy_into_out(randint_op, randint_low_op, randint_generator_op, randint_low_generator_op)
randint = public(randint_op, randint_low_op, randint_generator_op, randint_low_generator_op)

randperm_op = seeded(f"randperm(SymInt n, *, {LONG}) -> Tensor", out="out", refuses="bool complex", core=True)
randperm_generator_op = seeded(
    f"randperm.generator(SymInt n, *, Generator? generator, {LONG}) -> Tensor", out="generator_out"
)


@randperm_generator_op.explicit
def randperm_kernel(n: int, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    dtype = as_integer_dtype(dtype)
    if dtype is dtypes.bool or dtype.is_complex:
        raise not_implemented("randperm", dtype)
    storable(max(n - 1, 0), dtype)  # else an error: two of the numbers would be the same
    result = new((n,), dtype, device, pin_memory)
    if result._device.type == "meta":
        return result
    return written(result, kernels.permutation(n, *drawn(generator, n, result._device)))


@randperm_op.explicit
def randperm_plain_kernel(n: int, dtype: Any, layout: Any, device: Any, pin_memory: Any) -> Tensor:
    return randperm_kernel(n, None, dtype, layout, device, pin_memory)


copy_into_out(randperm_op, randperm_generator_op)
randperm = public(randperm_op, randperm_generator_op, doc="Returns the whole numbers from 0 to n - 1 in random order.")

rand_like_op = seeded(f"rand_like({LIKE}) -> Tensor", refuses="whole")
randn_like_op = seeded(f"randn_like({LIKE}) -> Tensor", refuses="whole")
randint_like_op = seeded(f"randint_like({LIKE.replace('*', 'SymInt high, *')}) -> Tensor", refuses="bool complex")
randint_like_low_op = seeded(
    f"randint_like.low_dtype({LIKE.replace('*', 'SymInt low, SymInt high, *')}) -> Tensor", refuses="bool uint8 complex"
)


@rand_like_op.explicit
def rand_like_kernel(self: Tensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, format: Any) -> Tensor:
    """Returns random numbers that are uniform in [0, 1), in the shape of `self`."""
    return uniform_op.functional(like(self, dtype, device, pin_memory, format))


@randn_like_op.explicit
def randn_like_kernel(self: Tensor, dtype: Any, layout: Any, device: Any, pin_memory: Any, format: Any) -> Tensor:
    """Returns random numbers of the standard normal distribution, in the shape of `self`."""
    return normal_op.functional(like(self, dtype, device, pin_memory, format))


@randint_like_low_op.explicit
def randint_like_low_kernel(
    self: Tensor, low: int, high: int, dtype: Any, layout: Any, device: Any, pin_memory: Any, format: Any
) -> Tensor:
    return random_from_op.functional(like(self, dtype, device, pin_memory, format), low, high)


@randint_like_op.explicit
def randint_like_kernel(
    self: Tensor, high: int, dtype: Any, layout: Any, device: Any, pin_memory: Any, format: Any
) -> Tensor:
    """Returns random whole numbers from `low` up to `high`, without it, in the shape of `self`."""
    return randint_like_low_kernel(self, 0, high, dtype, layout, device, pin_memory, format)


rand_like = public(rand_like_op, method=False)
randn_like = public(randn_like_op, method=False)
randint_like = public(randint_like_op, randint_like_low_op, method=False)

for _op in (
    rand_op, rand_generator_op, randn_op, randn_generator_op, randint_op, randint_low_op, randint_generator_op,
    randint_low_generator_op, randperm_op, randperm_generator_op, rand_like_op, randn_like_op, randint_like_op,
    randint_like_low_op,
):  # fmt: skip
    _op.not_differentiable()

# --- bernoulli and normal, out of place ------------------------------------------------------------------------------

bernoulli_op = seeded(f"bernoulli(Tensor self, {GENERATOR}) -> Tensor", out="out", refuses="whole complex")
bernoulli_p_op = seeded(f"bernoulli.p(Tensor self, float p, {GENERATOR}) -> Tensor", refuses="complex", late_out=False)


@bernoulli_op.kernel("CPU", "Meta")
def bernoulli_kernel(self: Tensor, generator: Any) -> Tensor:
    """Returns ones and zeros: each is one with the probability that stands in its place, or `p`."""
    return bernoulli_tensor_kernel(like(self, None, None, False, None), self, generator)


@bernoulli_p_op.explicit
def bernoulli_p_kernel(self: Tensor, p: float, generator: Any) -> Tensor:
    dense = like(self, None, None, False, contiguous_format)
    return bernoulli_float_op.functional(dense, p, generator=generator)


bernoulli_op.derivative(self=no_gradient)
copy_into_out(bernoulli_op, casts=True)
bernoulli = public(bernoulli_op, bernoulli_p_op)

normal_tensor_float_op = seeded(
    f"normal.Tensor_float(Tensor mean, float std=1, {GENERATOR}) -> Tensor",
    out="Tensor_float_out",
    refuses="whole complex",
)
normal_float_tensor_op = seeded(
    f"normal.float_Tensor(float mean, Tensor std, {GENERATOR}) -> Tensor", out="float_Tensor_out"
)
normal_tensors_op = seeded(
    f"normal.Tensor_Tensor(Tensor mean, Tensor std, {GENERATOR}) -> Tensor", out="Tensor_Tensor_out"
)
normal_floats_op = seeded(
    f"normal.float_float(float mean, float std, SymInt[] size, {GENERATOR}, {FACTORY}) -> Tensor",
    out="float_float_out",
    refuses="whole",
)


def scaled(unit, mean, std):
    return mean + std * unit


SCALED = Elementwise("scaled", scaled)


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
    if result._device.type != "meta":
        unit = empty(shape, dtypes.float64, result._device)
        kernels.normal(unit._operand, *drawn(generator, result._shape.numel(), result._device))
        operands = [value._operand if isinstance(value, Tensor) else float(value) for value in (mean, std)]
        SCALED.run(result._operand, unit._operand, *operands, dtype="float64")
    return result


@normal_tensor_float_op.kernel("CPU", "Meta")
def normal_tensor_float_kernel(mean: Tensor, std: float, generator: Any) -> Tensor:
    return normal_of(mean, std, generator)


@normal_float_tensor_op.kernel("CPU", "Meta")
def normal_float_tensor_kernel(mean: float, std: Tensor, generator: Any) -> Tensor:
    return normal_of(mean, std, generator)


@normal_tensors_op.kernel("CPU", "Meta")
def normal_tensors_kernel(mean: Tensor, std: Tensor, generator: Any) -> Tensor:
    """Returns random numbers of normal distributions with these means and standard deviations."""
    return normal_of(mean, std, generator)


@normal_floats_op.explicit
def normal_floats_kernel(
    mean: float, std: float, size: Any, generator: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> Tensor:
    return normal_op.functional(new(size, dtype, device, pin_memory), mean, std, generator=generator)


normal_tensor_float_op.derivative(mean=lambda grad, mean_shape: grad.new_zeros(mean_shape), node="NormalBackward1")
normal_float_tensor_op.derivative(std=lambda grad, std_shape: grad.new_zeros(std_shape), node="NormalBackward2")
normal_tensors_op.derivative(
    mean=lambda grad, mean_shape: grad.new_zeros(mean_shape),
    std=lambda grad, std_shape: grad.new_zeros(std_shape),
    node="NormalBackward3",
)
normal_floats_op.not_differentiable()
copy_into_out(normal_tensors_op, normal_tensor_float_op, normal_float_tensor_op, normal_floats_op)
normal = public(normal_tensors_op, normal_tensor_float_op, normal_float_tensor_op, normal_floats_op)
