"""What a layer of one's own, a subclass or a mode, must leave as it is: the checks, each of one operator.

A `Subject` says how a plain call becomes one that goes through the layer. Each check makes the call both ways, from
the same values, and compares. A check returns whether there was something to check, raises `Broken` where something
else comes out, and lets pass what the layer raises.

Read next: check_subclass.py and check_mode.py, the two kinds of subject; report.py.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from redispatch.autograd import grad, no_grad
from redispatch.dispatch import OpOverload, Tag
from redispatch.func import functionalize
from redispatch.func.vmap import vmap
from redispatch.ops.random import manual_seed
from redispatch.ops.shape import stack
from redispatch.tensor import Tensor, can_cast, dtype, dtypes, empty
from redispatch.utils import _pytree as pytree

from .comparison import assert_close
from .op_info import OpInfo, SampleInput
from .report import Broken


class Subject:
    """A layer, as the checks see it. The base class is one that does nothing."""

    name = "nothing"
    closed = True  # whether every tensor that comes of it is its own, too
    values = True  # whether there are values to compare, or only shapes, strides and dtypes
    strides = True  # whether strides are those of plain tensors

    def region(self) -> AbstractContextManager[Any]:
        """Where calls go through the layer."""
        return nullcontext()

    def dress(self, x: Tensor) -> Any:
        """A plain tensor as the layer has it; the tensor itself where it can have none like it."""
        return x

    def bare(self, x: Any) -> Tensor:
        """The plain tensor that one of the layer's stands for; a plain one itself."""
        return x

    def owns(self, x: Any) -> bool:
        """Whether a value is one of the layer's tensors."""
        return isinstance(x, Tensor)


@dataclass(frozen=True)
class Trial:
    """One operator with one call of it, to be made through a layer and without."""

    subject: Subject
    info: OpInfo
    sample: SampleInput

    # The two calls ---------------------------------------------------------------------------------------------------

    def dressed(self, only_first: bool = False, sample: SampleInput | None = None) -> SampleInput:
        """The call with the layer's tensors: all of them, or only the first."""
        sample = (sample or self.sample).map(lambda x: alone(x))
        dress: Callable[[Any], Any] = self.subject.dress
        if only_first:
            first = sample.tensors()[0]
            dress = lambda x: self.subject.dress(x) if x is first else x  # noqa: E731
        return sample.map(dress)

    def plain(self, dressed: SampleInput) -> SampleInput:
        """The call that a dressed one stands for, on memory of its own."""
        return owned_map(self.subject, dressed, lambda x: self.plain_of(x))

    def plain_of(self, x: Any) -> Tensor:
        """The plain tensor that one stands for, laid out as that one says it is."""
        bare = self.subject.bare(x).detach()
        if not isinstance(x, Tensor) or not self.subject.values:
            return alone(bare)
        made = empty(tuple(x.shape), bare.dtype, bare.device, x.stride())
        return made.copy_(bare.resolve_conj().resolve_neg())

    def applies(self, dressed: SampleInput) -> bool:
        """Whether the layer has anything to do with a call."""
        return any(self.subject.owns(x) for x in leaves(dressed))

    def through(self, call: SampleInput, op: Any = None) -> Any:
        """The operator's result through the layer."""
        with self.subject.region():
            return self.run(call, op)

    def run(self, call: SampleInput, op: Any = None) -> Any:
        """The operator's result; one that draws numbers draws the same every time."""
        if self.info.random:
            manual_seed(0)
        return (op or self.info.face or self.info.method or self.info.op)(*call.arguments, **call.kwargs)

    # Comparing -------------------------------------------------------------------------------------------------------

    def same(self, found: Any, wanted: Any, what: str = "the result", strides: bool = False) -> None:
        """Broken unless what the layer gave stands for what is wanted."""
        ours, others = each(found, self.subject), each(wanted)
        if len(ours) != len(others):
            raise Broken(f"{what}: {len(ours)} values, where there should be {len(others)}")
        for mine, other in zip(ours, others, strict=True):
            self.same_one(mine, other, what, strides and self.subject.strides)

    def same_one(self, mine: Any, other: Any, what: str, strides: bool) -> None:
        if not isinstance(other, Tensor):
            if self.subject.values or not isinstance(other, int | float | complex):
                close(mine, other, what)
            return
        if not (isinstance(mine, Tensor) or self.subject.owns(mine)):
            raise Broken(f"{what} is a {type(mine).__name__}, where there should be a tensor")
        if tuple(mine.shape) != tuple(other.shape) or mine.dtype != other.dtype:
            raise Broken(f"{what} says that it is {look(mine)}, and should be {look(other)}")
        if strides and mine.stride() != other.stride():
            raise Broken(f"{what} has strides {tuple(mine.stride())}, and should have {tuple(other.stride())}")
        if self.subject.values and has_defined_values(self.info):
            bare = self.subject.bare(mine) if self.subject.owns(mine) else mine
            close(bare.detach(), other.detach(), what)

    def __str__(self) -> str:
        return f"{self.info}{self.sample}"


# --- the checks: whether there was something to check; Broken where it does not hold ---------------------------------


def values(trial: Trial) -> bool:
    """Results are those of the plain call, and are the layer's own; arguments hold afterwards what they should."""
    tried = False
    for only_first in (False, True) if len(trial.sample.tensors()) > 1 else (False,):
        call = trial.dressed(only_first)
        if not trial.applies(call):
            continue
        plain = trial.plain(call)
        wanted = trial.run(plain)
        with warnings_off():
            found = trial.through(call)
        which = "the result, with the first tensor alone of its kind," if only_first else "the result"
        trial.same(found, wanted, which, strides=True)
        trial.same(leaves(call), leaves(plain), "an argument, after the call,")
        strangers = [x for x in each(found, trial.subject) if isinstance(x, Tensor) and not trial.subject.owns(x)]
        if trial.subject.closed and strangers:
            raise Broken(f"{which} is a plain {type(strangers[0]).__name__}")
        tried = True
    return tried


def aliasing(trial: Trial) -> bool:
    """What is an argument, or shares memory with one, does so; a view that is written writes to what it is a view of."""
    call = trial.dressed()
    if not trial.applies(call):
        return False
    plain = trial.plain(call)
    wanted, found = trial.run(plain), trial.through(call)
    results, others = each(found, trial.subject), each(wanted)
    for number, (mine, other) in enumerate(zip(results, others, strict=True)):
        if not isinstance(other, Tensor) or not isinstance(mine, Tensor):
            continue
        which = f"result {number}" if len(results) > 1 else "the result"
        for x, y in zip(leaves(call), leaves(plain), strict=True):
            if not isinstance(y, Tensor) or not isinstance(x, Tensor) or type(x) is not type(mine):
                continue
            if (mine is x) != (other is y):
                raise Broken(f"{which} is {'' if mine is x else 'not '}the argument itself")
            if shares(mine, x) != shares(other, y):
                raise Broken(f"{which} {'shares' if shares(mine, x) else 'does not share'} its memory with an argument")
    if trial.info.op.schema.is_view and can_be_written(trial):
        written_through(trial, results, others)
        trial.same(leaves(call), leaves(plain), "what the view is of, after the view was written,")
    return True


def inplace(trial: Trial) -> bool:
    """The in-place form writes what the other gives, into its argument, which it returns and whose version it counts."""
    op = trial.info.inplace
    if op is None:
        return False
    call = trial.dressed()
    if not trial.subject.owns(call.input) or not isinstance(call.input, Tensor):
        return False
    plain = trial.plain(call)
    if not fits_in_place(trial, plain):
        return False
    before, plain_before = call.input._version, plain.input._version
    trial.run(plain, op)
    found = trial.through(call, op)
    if found is not call.input:
        raise Broken("the in-place form returns another tensor than its argument")
    trial.same(call.input, plain.input, "the argument, after the call in place,", strides=True)
    counted, should = call.input._version - before, plain.input._version - plain_before
    if bool(counted) != bool(should):
        raise Broken(f"the version of the written tensor went up by {counted}, and should have gone up by {should}")
    return True


def out(trial: Trial) -> bool:
    """The out= form writes the result into the tensors that it is given, and returns them."""
    op = trial.info.out
    if op is None:
        return False
    call = trial.dressed()
    if not trial.applies(call):
        return False
    plain = without_factory_options(op, trial.plain(call))
    call = without_factory_options(op, call)
    results = [x for x in each(trial.run(plain)) if isinstance(x, Tensor)]
    targets = [trial.subject.dress(x.detach().clone().fill_(1)) for x in results]
    if not all(map(trial.subject.owns, targets)):
        return False
    wanted = [trial.plain_of(x) for x in targets]
    trial.run(with_out(op, plain, wanted), op)
    trial.through(with_out(op, call, targets), op)
    trial.same(targets, wanted, "what out= is given, after the call,")
    return True


def autograd(trial: Trial) -> bool:
    """Gradients through the layer are those of the plain call."""
    places = [i for i, x in enumerate(leaves(trial.sample)) if isinstance(x, Tensor) and x.requires_grad]
    if not places or not trial.info.gradients or trial.info.mutates or "gradients" in trial.info.skips:
        return False
    call, inputs = entered(trial, places)
    if call is None:
        return False
    plain = trial.plain(call)
    plain_inputs = [x.requires_grad_() for i, x in enumerate(leaves(plain)) if i in places]
    wanted = differentiable(each(trial.run(plain)))
    if not wanted:
        return False
    found = [x for x in each(trial.through(call), trial.subject) if floats(x)]
    exits = [left(trial.subject, x) for x in found]
    seeds = [seed(x) for x in exits]
    own = [trial.subject.dress(s) if trial.subject.owns(x) else s for x, s in zip(exits, seeds, strict=True)]
    kept = [(x, s) for x, s in zip(exits, own, strict=True) if x.requires_grad]
    if len(kept) != len(wanted):
        raise Broken(f"{len(kept)} results have a gradient, where {len(wanted)} should")
    plain_seeds = [trial.plain_of(s) if trial.subject.owns(s) else s for _, s in kept]
    grads = grad(wanted, plain_inputs, plain_seeds, allow_unused=True)
    with trial.subject.region():
        mine = grad([x for x, _ in kept], inputs, [s for _, s in kept], allow_unused=True)
    for x, y, leaf in zip(mine, grads, plain_inputs, strict=True):
        filled = y if y is not None else leaf.detach().clone().zero_()
        trial.same(x if x is not None else leaf.detach().clone().zero_(), filled, "a gradient")
    return True


def functionalization(trial: Trial) -> bool:
    """Functionalized, the call gives the same, and its in-place form writes the same."""
    info, call = trial.info, trial.dressed()
    if not trial.applies(call):
        return False
    plain = trial.plain(call)
    writes = info.inplace is not None and isinstance(plain.input, Tensor) and fits_in_place(trial, plain)

    def program(args: Any, kwargs: Any) -> Any:
        if writes:
            target = args[0].clone()
            return [trial.run(SampleInput(target, args[1:], kwargs), info.inplace), target]
        return trial.run(SampleInput(args[0], args[1:], kwargs))

    try:
        wanted = functionalize(program)(plain.copy().arguments, dict(plain.kwargs))
    except Exception:
        return False  # nor does it go without the layer
    with trial.subject.region():
        found = functionalize(program)(call.arguments, dict(call.kwargs))
    trial.same(found, wanted, "the result, functionalized,")
    return True


def batching(trial: Trial) -> bool:
    """Under vmap a batch gives what it gives without the layer."""
    info, sample = trial.info, trial.sample.map(lambda x: x.detach())
    if info.random or info.mutates or not sample.tensors():
        return False
    spec_leaves, spec = pytree.tree_flatten((sample.arguments, dict(sample.kwargs)))
    places = [i for i, x in enumerate(spec_leaves) if isinstance(x, Tensor)]

    def program(*tensors: Any) -> Any:
        filled = list(spec_leaves)
        for place, x in zip(places, tensors, strict=True):
            filled[place] = x
        args, kwargs = pytree.tree_unflatten(filled, spec)
        results = trial.run(SampleInput(args[0], args[1:], kwargs))
        return tuple(x for x in each(results, trial.subject) if isinstance(x, Tensor) or trial.subject.owns(x))

    batches = [trial.subject.dress(stack([x, x.flip(0) if x.dim() else x.clone()])) for x in sample.tensors()]
    if not any(map(trial.subject.owns, batches)):
        return False
    plain = [trial.plain_of(x) if trial.subject.owns(x) else alone(x) for x in batches]
    with warnings_off():  # that an operator is called once for each example
        try:
            wanted = vmap(program)(*plain)
        except Exception:
            return False
        with trial.subject.region():
            found = vmap(program)(*batches)
    trial.same(found, wanted, "the result under vmap")
    return bool(wanted)


def deepcopying(trial: Trial) -> bool:
    """A deep copy of a result is of its class, stands for the same, and shares no memory."""

    def check(x: Any) -> None:
        made = copy.deepcopy(x)
        if type(made) is not type(x):
            raise Broken(f"a deep copy of the result is a {type(made).__name__}")
        if isinstance(x, Tensor) and shares(made, x):
            raise Broken("a deep copy of the result shares its memory")
        trial.same(made, trial.subject.bare(x), "a deep copy of the result")

    return of_results(trial, check)


def pickling(trial: Trial) -> bool:
    """A result comes back from a pickle as what it was."""

    def check(x: Any) -> None:
        made = pickle.loads(pickle.dumps(x))
        if type(made) is not type(x):
            raise Broken(f"what comes back from a pickle of the result is a {type(made).__name__}")
        trial.same(made, trial.subject.bare(x), "what comes back from a pickle of the result")

    return of_results(trial, check)


def printing(trial: Trial) -> bool:
    """A result prints, and that it was printed changes nothing."""

    def check(x: Any) -> None:
        before = trial.plain_of(x)
        texts = [repr(x), str(x), f"{x}"]
        if not all(texts):
            raise Broken("the result prints as an empty text")
        trial.same(x, before, "the result, after it was printed,")

    return of_results(trial, check)


CHECKS: dict[str, Callable[[Trial], bool]] = {
    "values": values,
    "aliasing": aliasing,
    "inplace": inplace,
    "out": out,
    "autograd": autograd,
    "functionalization": functionalization,
    "vmap": batching,
    "deepcopy": deepcopying,
    "pickle": pickling,
    "printing": printing,
}
THOROUGH = ("values", "inplace")  # those that try more than one sample


# --- helpers ---------------------------------------------------------------------------------------------------------


def small_samples(info: OpInfo, kind: dtype | None, requires_grad: bool, most: int = 2) -> list[SampleInput]:
    """The first few calls of an operator with elements, of a dtype if it can, else of its main one."""
    made = info.main_dtype
    if kind is not None and kind.name not in info.refused and kind.name not in info.not_sampled:
        made = kind
    samples = info.sample_inputs(made, requires_grad and not info.mutates, thorough=False)
    full = [one for one in samples if all(x.numel() for x in one.tensors())]
    return full[:most]


def leaves(call: SampleInput) -> list[Any]:
    return pytree.tree_leaves((call.arguments, dict(call.kwargs)))


def owned_map(subject: Subject, call: SampleInput, function: Callable[[Any], Any]) -> SampleInput:
    """The call with `function(x)` for each of the layer's tensors, and copies of the plain ones."""

    def one(x: Any) -> Any:
        if subject.owns(x):
            return function(x)
        return alone(x) if isinstance(x, Tensor) else x

    values, kwargs = pytree.tree_map(one, (call.arguments, dict(call.kwargs)))
    return SampleInput(values[0], tuple(values[1:]), kwargs, call.skips)


def alone(x: Tensor) -> Tensor:
    """A tensor with memory of its own, and the same strides as far as a copy can have them."""
    return x.detach().clone()


def each(result: Any, subject: Subject | None = None) -> list[Any]:
    """The values in a result, one by one; None is one."""
    if isinstance(result, tuple | list) and not (subject is not None and subject.owns(result)):
        return [x for item in result for x in each(item, subject)]
    return [result]


def look(x: Any) -> str:
    return f"{str(x.dtype).rpartition('.')[2]}{list(x.shape)}"


def close(found: Any, wanted: Any, what: str) -> None:
    try:
        assert_close(found, wanted, equal_nan=True)
    except (AssertionError, TypeError) as problem:
        raise Broken(f"{what} is not what it should be: {' '.join(str(problem).split())}") from problem


def has_defined_values(info: OpInfo) -> bool:
    """Whether its result is more than what the memory happened to hold."""
    return "dispatch_mode" not in info.skips


def shares(one: Tensor, other: Tensor) -> bool:
    return one._storage is other._storage


def fits_in_place(trial: Trial, plain: SampleInput) -> bool:
    """Whether the in-place form takes a call: its result has the shape of the argument, and a dtype that fits it."""
    if not isinstance(plain.input, Tensor) or plain.input.requires_grad:
        return False
    try:
        wanted = trial.run(plain.copy())
    except Exception:
        return False
    if not isinstance(wanted, Tensor):
        return False
    op = trial.info.inplace
    turns = op is not None and Tag.inplace_view in op.tags
    return turns or wanted.shape == plain.input.shape and can_cast(wanted.dtype, plain.input.dtype)


def without_factory_options(op: OpOverload, call: SampleInput) -> SampleInput:
    """A call without the options that the out= form does not take."""
    taken = {argument.name for argument in op.schema.arguments}
    return SampleInput(call.input, call.args, {k: v for k, v in call.kwargs.items() if k in taken})


def with_out(op: OpOverload, call: SampleInput, targets: list[Any]) -> SampleInput:
    """A call that writes into these tensors, given one by one, or as one list."""
    keywords = [op.schema.arguments[i].name for i in op.schema.out_positions]
    given = dict(zip(keywords, targets, strict=True)) if op.schema.returns else {keywords[0]: targets}
    return SampleInput(call.input, call.args, {**call.kwargs, **given})


def can_be_written(trial: Trial) -> bool:
    """Whether the layer lets its tensors be written at all."""
    x = next((x for x in leaves(trial.dressed()) if trial.subject.owns(x) and isinstance(x, Tensor)), None)
    try:
        with trial.subject.region():
            return x is not None and x.zero_() is x
    except Exception:
        return False


def written_through(trial: Trial, results: list[Any], others: list[Any]) -> None:
    with trial.subject.region(), no_grad():
        for x in results:
            if isinstance(x, Tensor):
                x.zero_()
    for y in others:
        if isinstance(y, Tensor):
            y.zero_()


def of_results(trial: Trial, check: Callable[[Any], None]) -> bool:
    """Runs a check on each of the layer's tensors in the result."""
    call = trial.dressed()
    if not trial.applies(call):
        return False
    results = [x for x in each(trial.through(call), trial.subject) if trial.subject.owns(x)]
    with trial.subject.region():
        for x in results:
            check(x)
    return bool(results)


def entered(trial: Trial, places: list[int]) -> tuple[SampleInput | None, list[Any]]:
    """The dressed call for autograd, and the tensors whose gradients are asked for.

    Where dressing is itself differentiable these are the plain tensors, as when values enter by an autograd.Function;
    else they are the layer's, which then are leaves.
    """
    filled, spec = pytree.tree_flatten((trial.sample.arguments, dict(trial.sample.kwargs)))
    inputs: list[Any] = []
    owned = False
    for place, x in enumerate(filled):
        if not isinstance(x, Tensor):
            continue
        x = alone(x)
        made = trial.subject.dress(x)
        if place in places:
            x.requires_grad_()
            made = trial.subject.dress(x)
            if isinstance(made, Tensor) and made.grad_fn is None:
                made = x = trial.subject.dress(alone(x)).requires_grad_()
            inputs.append(x)
        owned = owned or trial.subject.owns(made)
        filled[place] = made
    args, kwargs = pytree.tree_unflatten(filled, spec)
    return (SampleInput(args[0], tuple(args[1:]), kwargs) if owned else None), inputs


def left(subject: Subject, x: Any) -> Any:
    """A result as it leaves the layer: plain, where that is differentiable."""
    if not subject.owns(x):
        return x
    bare = subject.bare(x)
    return bare if bare.requires_grad and bare.grad_fn is not None else x


def floats(x: Any) -> bool:
    """Whether a value is a tensor, or like one, of a dtype that has gradients."""
    kind = getattr(x, "dtype", None)
    return isinstance(kind, dtype) and (kind.is_floating_point or kind.is_complex)


def differentiable(results: list[Any]) -> list[Tensor]:
    return [x for x in results if isinstance(x, Tensor) and x.requires_grad]


def seed(x: Any) -> Tensor:
    """A gradient for a result: its elements differ."""
    made = empty(tuple(x.shape), x.dtype).fill_(1)
    return made.cumsum(-1).cos() if made.dim() and made.numel() else made


@contextmanager
def warnings_off() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
