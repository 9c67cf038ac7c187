"""OpInfo: what is true of one operator, in a form that generic tests can drive.

    OpInfo("aten::add.Tensor", binary(), reference=lambda self, other, alpha=1: self + alpha * other)

Its samples are a function of a `Maker`, which makes tensors of the dtype asked for; the operator's in-place and out=
forms are found by their schemas, and the same samples serve them. Whoever defines an operator writes an OpInfo beside
it and gets the tests of tests/op_db/ for it.

Read next: op_db/common.py, for how samples are written; tests/op_db/.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from redispatch.dispatch import OPERATORS, OpOverload, operator_named
from redispatch.dispatch.tensor import Tensor, dtype, dtypes
from redispatch.kernels.declare.declare import DECLARED
from redispatch.kernels.ops.from_data import tensor
from redispatch.kernels.ops.functional_forms import MADE
from redispatch.kernels.ops.random import manual_seed
from redispatch.utils import _pytree as pytree

from .make_tensor import make_tensor

EVERY_DTYPE = (
    dtypes.bool, dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16,
    dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128,
)  # fmt: skip
FLOATS = (dtypes.float32, dtypes.float64)
NUMBERS = (*FLOATS, dtypes.int64)
ALL = (*NUMBERS, dtypes.bool)
WHOLE = (dtypes.int64, dtypes.bool)
INTEGERS = (dtypes.int64,)


@dataclass(frozen=True)
class SampleInput:
    """The arguments of one call: `input` first, then `args` and `kwargs`.

    forward: of a gradient's operator, the call whose gradient it computes.
    """

    input: Any
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    skips: Mapping[str, str] = field(default_factory=dict)  # as in OpInfo, for this call alone
    forward: SampleInput | None = None

    def but_not(self, what: str, reason: str) -> SampleInput:
        """Returns this call, left out of one generic test."""
        return replace(self, skips={**self.skips, what: reason})

    @property
    def arguments(self) -> tuple[Any, ...]:
        return (self.input, *self.args)

    def map(self, function: Callable[[Any], Any], kind: type = Tensor) -> SampleInput:
        """Returns the call with `function(x)` for each tensor (or other `kind`) x in it, those in lists included."""
        values, kwargs = pytree.tree_map_only(kind, function, (self.arguments, dict(self.kwargs)))
        forward = self.forward and self.forward.map(function, kind)
        return SampleInput(values[0], tuple(values[1:]), kwargs, self.skips, forward)

    def tensors(self) -> list[Tensor]:
        """The tensors of the call, those in lists included, in order."""
        return [x for x in pytree.tree_leaves((self.arguments, dict(self.kwargs))) if isinstance(x, Tensor)]

    def parted(
        self, which: Callable[[Tensor], bool] = lambda x: True
    ) -> tuple[Callable[..., SampleInput], list[Tensor]]:
        """Returns the call as a function of those of its tensors that are chosen, and these tensors."""
        leaves, spec = pytree.tree_flatten((self.arguments, dict(self.kwargs)))
        places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and which(x)]

        def filled(*tensors: Any) -> SampleInput:
            given = list(leaves)
            for place, x in zip(places, tensors, strict=True):
                given[place] = x
            args, kwargs = pytree.tree_unflatten(given, spec)
            return SampleInput(args[0], tuple(args[1:]), kwargs, self.skips)

        return filled, [leaves[place] for place in places]

    def copy(self) -> SampleInput:
        """Returns the call on copies, each with the strides of its tensor; leaves where those were."""
        return self.map(copy_of)

    def __str__(self) -> str:
        shown = [*map(describe, self.arguments), *(f"{k}={describe(v)}" for k, v in self.kwargs.items())]
        return f"({', '.join(shown)})"


def sample(*args: Any, **kwargs: Any) -> SampleInput:
    """`sample(x, 1, dim=0)`: a call written as it is made."""
    return SampleInput(args[0], args[1:], kwargs)


def each(result: Any) -> list[Any]:
    """The results of a call one by one, those in a list among them, too."""
    return [x for item in result for x in each(item)] if isinstance(result, tuple | list) else [result]


def metadata(result: Any) -> list[Any]:
    """Shape, strides and dtype of each tensor in a result; anything else as it is."""
    return [(tuple(x.shape), x.stride(), x.dtype) if isinstance(x, Tensor) else x for x in each(result)]


def as_array(x: Any) -> Any:
    """A tensor as a numpy array that numpy can compute with; anything else as it is."""
    if not isinstance(x, Tensor):
        return x.numpy if isinstance(x, dtype) else x
    x = x.detach().resolve_conj().resolve_neg()
    return (x.float() if x.dtype in (dtypes.bfloat16, dtypes.float16) else x).numpy().copy()


def copy_of(x: Tensor) -> Tensor:
    """A copy with the same strides, where no two elements share a place; a leaf that requires grad where x does."""
    with_strides = x.detach().clone()
    return with_strides.requires_grad_() if x.requires_grad else with_strides


def describe(value: Any) -> str:
    if isinstance(value, Tensor):
        return value._summary()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(describe, value))}]"
    return repr(value)


@dataclass(frozen=True)
class ErrorInput:
    """A call that must fail: with an error of class `error` whose text contains `text`."""

    sample: SampleInput
    error: type[Exception]
    text: str
    form: str = "functional"  # or "inplace"


class Maker:
    """Makes the tensors of samples: `make(2, 3)` has the dtype asked for. The same numbers every time.

    thorough: whether to try what needs other loops, too, such as broadcasting. See OpInfo.is_cheap.
    """

    def __init__(self, dtype: dtype, requires_grad: bool = False, thorough: bool = True, seed: int = 0) -> None:
        self.dtype, self.thorough = dtype, thorough
        self.requires_grad = requires_grad and (dtype.is_floating_point or dtype.is_complex)
        self._random = np.random.default_rng(seed)

    def __call__(self, *shape: int, low: float = -3, high: float = 4, **options: Any) -> Tensor:
        if not self.dtype.is_signed:
            low = max(low, 0)
            high = max(high, low + 1)
        made = self.dtype if "dtype" not in options else options.pop("dtype")
        if made is dtypes.bool:
            low, high = 0, 2
        grad = self.requires_grad and (made.is_floating_point or made.is_complex)
        return make_tensor(shape, dtype=made, low=low, high=high, requires_grad=grad, generator=self._random, **options)

    def distinct(self, *shape: int, step: float = 0.5) -> Tensor:
        """A tensor whose values all differ, so that a maximum or an order is unique; whole numbers for integers."""
        count = int(np.prod(shape))
        numbers: Any = self._random.permutation(count) - count // 2
        numbers = numbers * step if self.dtype.is_floating_point else numbers
        if self.dtype is dtypes.bool:
            numbers = numbers % 2
        made = tensor(numbers.reshape(shape).tolist(), dtype=self.dtype)
        if not count:
            made = make_tensor(shape, dtype=self.dtype)
        return made.requires_grad_() if self.requires_grad else made

    def values(self, numbers: Any, dtype: dtype | None = None) -> Tensor:
        """A tensor of these very numbers; without their signs, in a dtype that has none."""
        element = dtype or self.dtype
        unsigned = element is dtypes.uint8
        made = tensor(numbers, dtype=None if unsigned else element)
        made = made.abs().to(element) if unsigned else made
        return made.requires_grad_() if self.requires_grad and made._dtype.category >= dtypes.FLOATING else made

    def index(self, *shape: int, below: int, low: int = 0) -> Tensor:
        """Indices from [low, below)."""
        return make_tensor(shape, dtype=dtypes.int64, low=low, high=below, generator=self._random)

    def mask(self, *shape: int) -> Tensor:
        return make_tensor(shape, dtype=dtypes.bool, generator=self._random)


Samples = Callable[[Maker], Iterable[SampleInput]]
Errors = Callable[[Maker], Iterable[ErrorInput]]

# What skips may name: the generic tests of tests/op_db/
PROPERTIES = frozenset(
    "reference bfloat16 meta inplace out layouts expanded gradients second_gradients complex_gradients forward vmap "
    "dispatch_mode function_mode subclass functionalized trace inference parity errors recording".split()
)


@dataclass(frozen=True)
class OpInfo:
    """One operator and what is true of it.

    name:       qualified, "aten::add.Tensor"; "add.Tensor" means the same.
    samples:    calls that must work, made with a Maker, for each of `dtypes`.
    reference:  the same on numpy arrays (16-bit floats come as float32), None where nothing in numpy is; where samples
                name a forward call, a function of the incoming gradient and the arguments of that call.
    gradients:  whether it has a gradient at all; where it has none, nothing is recorded.
    constrained: what tests of gradients make of a call first, where a matrix is taken for symmetric or triangular.
    definite:   what tests of gradients look at, a function of the results: vectors that may have any sign have no
                gradient of their own.
    random:     whether results depend on the generator, which is then seeded before each call.
    representative: whether it stands for all pointwise operators in tests that would take too long with each.
    alike:      whether it is one of a family that is made by one rule, of which `make test` draws some.
    function:   where the public function is, "nn.functional.gelu"; by default `redispatch.<name>`, if it is this, or
                `redispatch.linalg.<name>` for "linalg_<name>", and so for fft and special.
    errors:     calls that must fail, and how.
    tolerance:  (rtol, atol) by dtype name, where the dtype's own is too strict; it carries its reason as a comment.
    skips:      a generic test that does not hold (PROPERTIES) -> the reason.
    """

    name: str
    samples: Samples
    reference: Callable[..., Any] | None = None
    dtypes: tuple[dtype, ...] = ALL
    gradients: bool = True
    constrained: Callable[[SampleInput], SampleInput] | None = None
    definite: Callable[[Any], Any] | None = None
    random: bool = False
    representative: bool = False
    alike: bool = False
    function: str | None = None
    errors: Errors | None = None
    tolerance: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    skips: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = self.skips.keys() - PROPERTIES
        if unknown:
            raise ValueError(f"{self.name}: no generic test is called {', '.join(sorted(unknown))}")
        if "::" not in self.name:
            object.__setattr__(self, "name", f"aten::{self.name}")
        room, under, function = str(self).partition(".")[0].partition("_")
        if self.function is None and under and room in ("linalg", "fft", "special"):
            object.__setattr__(self, "function", f"{room}.{function}")

    def __str__(self) -> str:
        return self.name.removeprefix("aten::")

    # The operator's forms and faces -------------------------------------------------------------------------------

    @cached_property
    def op(self) -> OpOverload:
        return operator_named(self.name)

    @cached_property
    def inplace(self) -> OpOverload | None:
        """The operator of the name with an underscore that takes arguments of the same types, if no other's it is."""
        stem, _, overload = self.name.partition(".")
        forms = {op.schema.overload_name: op for op in overloads(f"{stem}_") if types(op) == types(self.op)}
        others = {op.schema.overload_name for op in overloads(stem) if types(op) == types(self.op)} - {overload}
        return forms.get(overload, next((op for name, op in forms.items() if name not in others), None))

    @cached_property
    def out(self) -> OpOverload | None:
        """The overload that takes the same arguments and, behind them, the tensors to write to."""
        return out_form(self.op) or (out_form(self.made_functional) if self.made_functional else None)

    @property
    def covers(self) -> list[OpOverload]:
        return [op for op in (self.op, self.inplace, self.out, self.made_functional) if op is not None]

    @property
    def made_functional(self) -> OpOverload | None:
        """The functional form of an operator that writes, if a rule made it (kernels/ops/functional_forms.py)."""
        return MADE.get(self.op)

    @property
    def mutates(self) -> bool:
        """Whether the operator itself writes to an argument: one that has no functional form."""
        return self.op.schema.is_mutable

    @cached_property
    def face(self) -> Callable[..., Any] | None:
        """The public function, where there is one that can end in this operator."""
        library = importlib.import_module("redispatch")  # here: the public face is made of this room, too
        if self.function is not None:
            importlib.import_module("redispatch.nn.functional")
            return attrgetter(self.function)(library)
        return self._if_mine(getattr(library, self.op.schema.base_name, None))

    @cached_property
    def method(self) -> Callable[..., Any] | None:
        """The method of Tensor, where there is one that can end in this operator."""
        return self._if_mine(getattr(Tensor, self.op.schema.base_name, None))

    def _if_mine(self, face: Any) -> Callable[..., Any] | None:
        return face if self.op in getattr(face, "operators", ()) else None

    # Samples ------------------------------------------------------------------------------------------------------

    @property
    def refused(self) -> frozenset[str]:
        """The names of the dtypes that it has no kernel for. `dtypes` are those that are compared with numpy."""
        declared = DECLARED.get(self.op)
        return frozenset() if declared is None else frozenset(declared.refuses)

    @property
    def not_sampled(self) -> tuple[str, ...]:
        """The names of the dtypes that its samples cannot be made of."""
        return next((kinds for pattern, kinds in NOT_SAMPLED.items() if fnmatch(str(self), pattern)), ())

    @property
    def main_dtype(self) -> dtype:
        """The dtype for tests that need only one: float64 where there is, since gradients need it anyway."""
        return dtypes.float64 if dtypes.float64 in self.dtypes else self.dtypes[0]

    @property
    def is_cheap(self) -> bool:
        """Whether it stands for others, or is neither pointwise nor written in other operators.

        The loops of all pointwise operators come from one generator, which tests/kernels/ tries in all layouts and
        dtypes, and each of its loops takes a quarter of a second to compile. So what is true of the generator is tested
        with those that are `representative`, and with all of them by `make test-all`.
        """
        implicit = "CompositeImplicitAutograd" in {key.name for key in self.op.registrations}
        return self.representative or not ("pointwise" in self.op.tags or implicit)

    def run(self, sample: SampleInput, op: Any = None) -> Any:
        """The result of a call, or that of another form; an operator that draws numbers draws the same every time."""
        if self.random:
            manual_seed(0)
        return (op or self.op)(*sample.arguments, **sample.kwargs)

    def expected(self, sample: SampleInput) -> Any:
        """The result of a call by the reference."""
        assert self.reference is not None
        of = sample.forward
        arguments = sample.arguments if of is None else (sample.input, *of.arguments)
        args, kwargs = pytree.tree_map(as_array, (arguments, dict((of or sample).kwargs)))
        with np.errstate(all="ignore"):
            return self.reference(*args, **kwargs)

    def writing_to(self, targets: Sequence[Any], sample: SampleInput) -> SampleInput:
        """A call of the out= form, which takes these tensors one by one, or as a list, and not how to make them."""
        assert self.out is not None
        schema = self.out.schema
        taken = {argument.name for argument in schema.arguments}
        names = [schema.arguments[place].name for place in schema.out_positions]
        out = dict(zip(names, targets, strict=True)) if schema.returns else {names[0]: targets}
        return replace(sample, kwargs={k: v for k, v in sample.kwargs.items() if k in taken} | out)

    def sample_inputs(
        self, dtype: dtype, requires_grad: bool = False, thorough: bool | None = None
    ) -> list[SampleInput]:
        """The calls that must work, on new tensors; floating ones require grad where asked.

        thorough: as in Maker; by default in the main dtype of a cheap operator.
        """
        if thorough is None:
            thorough = dtype is self.main_dtype and self.is_cheap
        return list(self.samples(Maker(dtype, requires_grad, thorough)))

    def error_inputs(self) -> list[ErrorInput]:
        """The calls that must fail."""
        return list(self.errors(Maker(self.main_dtype))) if self.errors else []

    def but(self, name: str, **changes: Any) -> OpInfo:
        """Returns the entry for another operator: an alias, or the form that takes a number."""
        return replace(self, name=name, **changes)


WHOLE_NAMES = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX_NAMES = ("complex64", "complex128")

# Their samples need numbers that these dtypes do not hold.
NOT_SAMPLED: dict[str, tuple[str, ...]] = {
    "_neg_view*": ("bool",),
    "retain_grad": ("bool", *WHOLE_NAMES),
    "cov": ("bool",),
    "corrcoef": ("bool", *COMPLEX_NAMES),
    "binomial": ("bool", *WHOLE_NAMES, *COMPLEX_NAMES),  # a ValueError
    "searchsorted.*": COMPLEX_NAMES,
    "bucketize.*": COMPLEX_NAMES,
    "_pdist_forward": ("bool",),
    "_scaled_dot_product_flash_attention_for_cpu*": WHOLE_NAMES,
    "_scaled_dot_product_efficient_attention*": WHOLE_NAMES,
    "_safe_softmax": WHOLE_NAMES,
}

# What says how a new tensor is made; out= forms do not take it, since they are given the tensor.
FACTORY_OPTIONS = ("dtype", "layout", "device", "pin_memory")


def overloads(stem: str) -> list[OpOverload]:
    """The operators called "aten::add", whatever their overload."""
    return [op for name, op in OPERATORS.items() if name.partition(".")[0] == stem]


def out_form(functional: OpOverload) -> OpOverload | None:
    """The overload that takes the arguments of `functional` and, behind them, the tensors to write to."""
    for op in overloads(functional.qualified_name.partition(".")[0]):
        count = len(op.schema.out_positions)
        if count and names(op)[:-count] == names(functional) and types(op)[:-count] == types(functional):
            return op
    return None


def is_factory(op: OpOverload) -> bool:
    return not any("Tensor" in str(argument.type) for argument in op.schema.arguments if not argument.is_out)


def arguments(op: OpOverload) -> list[Any]:
    """The schema's arguments; of an operator that is told how to make its result, those that its out= form takes."""
    if all(argument.name != "pin_memory" for argument in op.schema.arguments):
        return list(op.schema.arguments)
    return [argument for argument in op.schema.arguments if argument.name not in FACTORY_OPTIONS]


def names(op: OpOverload) -> list[str]:
    return [argument.name for argument in arguments(op)]


def types(op: OpOverload) -> list[str]:
    return [str(argument.type) for argument in arguments(op)]
