"""Random numbers: the operators that fill tensors with them, and the factories.

Each distribution is declared by what chooses the loop for a tensor and checks the numbers; draws.py makes a kernel of
that. The loops are in kernels/cpu/random.py and kernels/cpu/twister.py. Read next: distributions.py.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch import kernels
from redispatch.dispatch import Memo
from redispatch.dispatch.specialiser.annotations import inline, leaf
from redispatch.dispatch.tensor import Tensor, as_numpy, contiguous_format, dtype, dtypes, empty, result_type
from redispatch.kernels import Elementwise, Twister

from ..declare.declare import Operator
from ..declare.numbers import storable
from ..declare.operator import SEEDED, kernel
from ..declare.out_forms import by
from ..declare.plan import PLANS, metadata
from ..declare.public import public
from ..declare.structured import c_name, not_implemented
from .creation import FACTORY, LONG, Rule, as_integer_dtype, like, shaped, written
from .draws import (
    DRAWS,
    FILLING,
    GENERATOR,
    Draw,
    Filling,
    fill,
    fill_by,
    filling,
    no_gradient,
    sampling,
    seeded_factory,
    single_interval,
    unit_interval,
)
from .generators import (  # noqa: F401  # as `torch.random` has them, and pickles of generators
    Generator,
    _restored,
    _revived,
    default_generator,
    drawing_from,
    drawn,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
    twister_of,
)


def check_floating(kernel_name: str, dtype: dtype) -> None:
    if not dtype.is_floating_point:
        raise not_implemented(kernel_name, dtype)


# --- fills in place --------------------------------------------------------------------------------------------------


@filling(f"uniform_(Tensor(a!) self, float from=0, float to=1, {GENERATOR}) -> Tensor(a!)", refuses="whole")
def uniform_(self: Tensor, low: float, high: float) -> Any:
    """Fills the tensor with random numbers that are uniform between `from` and `to`."""
    if not self._dtype.is_complex:
        check_floating("check_uniform_bounds", self._dtype)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    return kernels.uniform, low, high


@filling(f"normal_(Tensor(a!) self, float mean=0, float std=1, {GENERATOR}) -> Tensor(a!)", refuses="whole")
def normal_(self: Tensor, mean: float, std: float) -> Any:
    """Fills the tensor with random numbers of a normal distribution."""
    check_std(std)
    if self._dtype.is_complex:  # each part has the mean, as in PyTorch, and half of the variance
        return kernels.normal, mean, std / math.sqrt(2)
    if self._shape.numel():
        check_floating("normal_kernel_cpu", self._dtype)
    return kernels.normal, mean, std


def check_std(std: float) -> None:
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


@filling(f"exponential_(Tensor(a!) self, float lambd=1, {GENERATOR}) -> Tensor(a!)", refuses="whole complex")
def exponential_(self: Tensor, lambd: float) -> Any:
    """Fills the tensor with random numbers of an exponential distribution of the rate `lambd`."""
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if self._shape.numel() and not self._dtype.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {self._dtype.tensor_name}"
        )
    return kernels.exponential, lambd


def below(unit, p):
    return unit < p


BELOW = Elementwise("below", below)


def bernoulli_number(self: Tensor, p: float) -> Any:
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if self._dtype.is_complex:
        raise not_implemented("bernoulli_scalar_cpu_", self._dtype)
    return kernels.bernoulli, p


CHANCES = Memo(PLANS)  # metadata of what is filled and of the chances -> the loop


@leaf
@inline
def bernoulli_tensor(self: Tensor, p: Tensor, generator: Any) -> Tensor:
    """Fills the tensor as the loop for tensors that look so does, which is found once; returns it."""
    source = default_generator if generator is None else generator
    state, facts = source._state, (metadata(self), metadata(p))
    choose, array, given = CHANCES.get(facts), self._array, p._array
    if choose is None or type(state) is not Twister or array is None or given is None:
        return bernoulli_first(facts, self, p, generator)
    if choose(state, array, self._offset, given, p._offset):  # refused: nothing was drawn
        return bernoulli_first(facts, self, p, generator)
    return self


def bernoulli_first(facts: Any, self: Tensor, p: Tensor, generator: Any) -> Tensor:
    """Fills the tensor the long way; the loop is remembered. RuntimeError for what is no probability."""
    if self._dtype.is_complex:
        raise not_implemented("bernoulli_tensor_cpu_self_", self._dtype)
    check_floating("bernoulli_tensor_cpu_p_", p._dtype)
    if self._device.type != "meta":
        check_probabilities(p)
    twisted = twister_of(generator, self._device)  # takes a word for each number, and two for one of 64 bits
    choose = twisted and kernels.chances(self._operand, p._operand)
    if choose and self._array is not None and p._array is not None:
        choose(twisted, self._array, self._offset, p._array, p._offset)
        CHANCES[facts] = choose
        return self
    units = single_interval if twisted and p._dtype is not dtypes.float64 else unit_interval
    return fill_by(self, generator, BELOW, units, p)


bernoulli_float_op = filling(
    f"bernoulli_.float(Tensor(a!) self, float p=0.5, {GENERATOR}) -> Tensor(a!)",
    node="BernoulliBackward2",
    face=False,
)(bernoulli_number)
bernoulli_facts = FILLING | {"derivative": {"self": no_gradient, "p": no_gradient}}
bernoulli_ = kernel(
    f"bernoulli_.Tensor(Tensor(a!) self, Tensor p, {GENERATOR}) -> Tensor(a!)",
    "CPU",
    "Meta",
    node="BernoulliBackward1",
    also=(bernoulli_float_op,),
    refuses="complex",
    doc="Fills the tensor with ones, each with probability `p`, and zeros.",
    **bernoulli_facts,
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


def integers(self: Tensor, low: int, high: int | None, whole: bool = False) -> Any:
    """From `low` up to `high`, exclusive; up to the largest that the dtype holds where there is no `high`. `whole`: no
    bound is given."""
    if self._dtype.is_complex:
        if high is None:
            raise not_implemented("random_kernel_cpu", self._dtype)
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    if high is None:
        high = largest_integer(self._dtype) + 1
    check_range(low, high, self._dtype)
    return kernels.randint, low, high, whole


random_to_op = filling(
    f"random_.to(Tensor(a!) self, int to, {GENERATOR}) -> Tensor(a!)",
    node="RandomBackward1",
    refuses="bool complex",
    face=False,
)(lambda self, to: integers(self, 0, to))
random_op = filling(
    f"random_(Tensor(a!) self, {GENERATOR}) -> Tensor(a!)",
    node="RandomBackward2",
    refuses="complex",
    face=False,
)(lambda self: integers(self, 0, None, whole=True))
random_ = filling(
    f"random_.from(Tensor(a!) self, int from, int? to, {GENERATOR}) -> Tensor(a!)",
    also=(random_to_op, random_op),
    refuses="bool uint8 complex",
    doc="Fills the tensor with random whole numbers from `from` up to `to`, without it.",
)(integers)
uniform_op, normal_op, exponential_op = uniform_.op, normal_.op, exponential_.op
bernoulli_tensor_op, random_from_op = bernoulli_.op, random_.op
UNIFORM, NORMAL, BERNOULLI, INTEGERS = (
    DRAWS[op.functional] for op in (uniform_op, normal_op, bernoulli_float_op, random_from_op)
)


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
    return size, dtype, Filling(UNIFORM, (0.0, 1.0), generator)


def randn_rule(dtype: Any, size: Any, generator: Any = None) -> Rule:
    return size, dtype, Filling(NORMAL, (0.0, 1.0), generator)


def randint_from(dtype: Any, low: int, high: int, size: Any, generator: Any = None) -> Rule:
    return size, as_integer_dtype(dtype), Filling(INTEGERS, (low, high), generator)


def randint_below(dtype: Any, high: int, size: Any, generator: Any = None) -> Rule:
    return randint_from(dtype, 0, high, size, generator)


def randperm_rule(dtype: Any, n: int, generator: Any = None) -> Rule:
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    dtype = as_integer_dtype(dtype)
    if dtype is dtypes.bool or dtype.is_complex:
        raise not_implemented("randperm", dtype)
    storable(max(n - 1, 0), dtype)  # else an error: two of the numbers would be the same
    return (n,), dtype, Filling(PERMUTATION, (), generator)


def permutation_of(result: Tensor) -> Any:
    return (kernels.permutation,) if result._dtype is dtypes.int64 else None


def permuted(result: Tensor, generator: Any) -> Tensor:
    """Fills a tensor of one dimension with the numbers from 0 on, in random order, and returns it."""
    if result._device.type == "meta":
        return result
    n = result._shape.numel()
    return written(result, kernels.permutation(n, *drawn(generator, n, result._device)))


PERMUTATION = Draw(permutation_of)
PERMUTATION.op = permuted
BELOW_HIGH: dict[str, Any] = {"refuses": "bool complex"}
FROM_LOW: dict[str, Any] = {"refuses": "bool uint8 complex"}
SIZE, LIKE, FROM = "SymInt[] size", "Tensor self", ", *, Generator? generator"
GENERATED = SIZE + FROM


def size_last(rule: Callable[..., Rule]) -> Callable[..., Rule]:
    """Returns the rule of a factory in the shape of a tensor: the size comes behind the generator."""

    @functools.wraps(rule)
    def of_shape(dtype: Any, *args: Any) -> Rule:
        *given, generator, size = args
        return rule(dtype, *given, size, generator)

    return of_shape


def floats(name: str, rule: Callable[..., Rule], numbers: str) -> tuple[Operator, Any, Any]:
    """A factory of random floats: its operator, and the functions that take a size and a tensor of that size."""
    op = seeded_factory(rule, f"{name}({SIZE})", out="out", core=True, refuses="whole")
    generated = seeded_factory(rule, f"{name}.generator({GENERATED})", out="generator_out", refuses="whole")
    like = seeded_factory(rule, f"{name}_like(Tensor self)", refuses="whole")
    generated_like = seeded_factory(size_last(rule), f"{name}_like.generator({LIKE}{FROM})", refuses="whole")
    return (
        op,
        public(op, generated, doc=f"Returns random numbers {numbers}, of the given size."),
        public(like, generated_like, method=False, doc=f"Returns random numbers {numbers}, in the shape of `self`."),
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
randint_like_ops = [
    seeded_factory(randint_below, f"randint_like({LIKE}, SymInt high)", **BELOW_HIGH),
    seeded_factory(randint_from, f"randint_like.low_dtype({LIKE}, SymInt low, SymInt high)", **FROM_LOW),
    seeded_factory(size_last(randint_below), f"randint_like.generator({LIKE}, SymInt high{FROM})", **BELOW_HIGH),
    seeded_factory(
        size_last(randint_from),
        f"randint_like.low_generator_dtype({LIKE}, SymInt low, SymInt high{FROM})",
        **FROM_LOW,
    ),
]


def below_tensor(overload: str, given: str, like_op: Operator) -> Operator:
    """The overload of `randint_like` whose upper bound is a tensor of one number."""
    schema = f"randint_like.{overload}({LIKE}, Tensor high, *, {given}{FACTORY}, MemoryFormat? memory_format=None)"

    @kernel(f"{schema} -> Tensor", derivative=False, tags=SEEDED, face=False, **BELOW_HIGH)
    def randint_like_kernel(self: Tensor, high: Tensor, *args: Any) -> Tensor:
        if high.dim() or high._device.type != "cpu":
            raise RuntimeError("high must be a scalar tensor and on CPU")
        options = dict(zip(op.names[2:], args, strict=True))
        drawn: Tensor = like_op.functional(self, int(high.item()), **options)
        return drawn

    op: Operator = getattr(randint_like_kernel, "op", randint_like_kernel)
    return op


randint_like = public(
    *randint_like_ops,
    below_tensor("Tensor", "", randint_like_ops[0]),
    below_tensor("Tensor_generator", "Generator? generator, ", randint_like_ops[2]),
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


@sampling(
    f"bernoulli(Tensor self, {GENERATOR}) -> Tensor",
    lambda result, self: kernels.chances(result._operand, self._operand),
    derivative=no_gradient,
    out="out",
    also=(bernoulli_p_op,),
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
    if result._device.type != "meta":  # each step is rounded, as in PyTorch, and so is one mean for all
        mean = mean if isinstance(mean, Tensor) else written(empty((), kind, result._device), mean)
        for step, value in ((PRODUCT, std), (TOTAL, mean)):
            if isinstance(value, Tensor):
                step.run(result._operand, result._operand, value._operand, dtype=result_type(result, value).name)
    return result


def normals(result: Tensor, mean: Any, std: Any) -> Any:
    both = isinstance(mean, Tensor) and isinstance(std, Tensor) and not result._dtype.is_complex
    return kernels.normals(result._operand, mean._operand, std._operand) if both else None


def normal_overload(number: int, mean: str, std: str) -> Operator:
    """The overload for a mean and a standard deviation that are tensors, or one of them a number."""
    kinds = [one.partition(" ")[0] for one in (mean, std)]
    zeros = {
        "mean": lambda grad, mean_shape: grad.new_zeros(mean_shape),
        "std": lambda grad, std_shape: grad.new_zeros(std_shape),
    }
    overload = "_".join(kinds)
    return sampling(
        f"normal.{overload}({mean}, {std}, {GENERATOR}) -> Tensor",
        normals,
        out=f"{overload}_out",
        derivative={name: zeros[name] for name, kind in zip(zeros, kinds, strict=True) if kind == "Tensor"},
        node=f"NormalBackward{number}",
        refuses="whole complex",
    )(normal_of)


def normal_rule(dtype: Any, mean: float, std: float, size: Any, generator: Any) -> Rule:
    return size, dtype, Filling(NORMAL, (mean, std), generator)


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
