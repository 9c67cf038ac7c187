"""The checks of your own layer, subclass or mode, each of one operator: the properties that it must preserve.

A `Subject` says how a plain call becomes one that goes through the layer. Each check makes the call both ways, from
the same values, and compares. A check returns whether there was something to check, raises `Broken` where something
else comes out, and lets pass what the layer raises.

Read next: subclass_check.py, for the two kinds of subject; report.py.
"""

from __future__ import annotations

import copy
import functools
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from redispatch.autograd import grad
from redispatch.dispatch import Tag
from redispatch.dispatch.tensor import Tensor, can_cast, dtype, empty
from redispatch.dispatch.transforms.vmap import vmap
from redispatch.func import functionalize
from redispatch.kernels.ops.shape import stack
from redispatch.utils import _pytree as pytree

from .comparison import assert_close
from .op_info import OpInfo, SampleInput
from .report import Broken, Nothing


class Subject:
    """A layer, as the checks see it. The base class is one that does nothing."""

    name = "nothing"
    closed = True  # whether every tensor that comes of it is its own, too
    values = True  # whether there are values to compare, or only shapes, strides and dtypes
    strides = True  # whether strides are those of plain tensors
    mixes = True  # whether there are calls in which some tensors are its own, and others are plain

    def region(self) -> AbstractContextManager[Any]:
        """A block in which calls go through the layer."""
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

    def known(self, info: OpInfo) -> str:
        """The reason why no layer of this kind can have an operator, where the table gives one."""
        return ""


@dataclass(frozen=True)
class Trial:
    """One operator with one call of it, to be made through a layer and without."""

    subject: Subject
    info: OpInfo
    sample: SampleInput

    # The two calls ---------------------------------------------------------------------------------------------------

    def dressed(self, only_first: bool = False) -> SampleInput:
        """The call with the layer's tensors: all of them, or only the first. Nothing where it has none like them."""
        sample = self.sample.map(alone)
        first = next(iter(sample.tensors()), None)
        call = sample.map(lambda x: x if only_first and x is not first else self.subject.dress(x))
        if not any(self.subject.owns(x) for x in leaves(call)):
            raise Nothing
        return call

    def plain(self, dressed: SampleInput) -> SampleInput:
        """The call that a dressed one stands for, on memory of its own."""

        def one(x: Any) -> Any:
            return self.plain_of(x) if self.subject.owns(x) or isinstance(x, Tensor) else x

        values, kwargs = pytree.tree_map(one, (dressed.arguments, dict(dressed.kwargs)))
        return SampleInput(values[0], tuple(values[1:]), kwargs, dressed.skips)

    def plain_of(self, x: Any) -> Tensor:
        """The plain tensor that one stands for, laid out as that one says it is."""
        bare = alone(self.subject.bare(x))
        if not isinstance(x, Tensor) or bare.stride() == x.stride():
            return bare
        return empty(tuple(x.shape), bare.dtype, bare.device, x.stride()).copy_(bare)

    def through(self, call: SampleInput, op: Any = None) -> Any:
        """The operator's result through the layer."""
        with self.subject.region(), warnings_off():
            return self.run(call, op)

    def expected(self, call: SampleInput, op: Any = None) -> Any:
        """The operator's result without the layer; where it has none, there is nothing to check."""
        try:
            with warnings_off():
                return self.run(call, op)
        except Exception:
            raise Nothing from None

    def run(self, call: SampleInput, op: Any = None) -> Any:
        """The operator's result; one that draws numbers draws the same every time."""
        return self.info.run(call, op or self.info.face or self.info.method)

    # Comparing -------------------------------------------------------------------------------------------------------

    def same(self, found: Any, wanted: Any, what: str = "the result", strides: bool = False) -> None:
        """Broken unless what the layer gave stands for what is wanted."""
        ours, others = each(found, self.subject), each(wanted)
        if len(ours) != len(others):
            raise Broken(f"{what}: {len(ours)} values, where there should be {len(others)}")
        for mine, other in zip(ours, others, strict=True):
            stands_for(self.subject, mine, other, what, strides, values=has_defined_values(self.info))

    def __str__(self) -> str:
        return f"{self.info}{self.sample}"


def stands_for(subject: Subject, mine: Any, other: Any, what: str, strides: bool = False, values: bool = True) -> None:
    """Broken unless one of the layer's tensors looks like a plain one, and stands for the same elements."""
    values = values and subject.values
    if not isinstance(other, Tensor):
        if values or not isinstance(other, int | float | complex):
            close(mine, other, what)
        return
    if not (isinstance(mine, Tensor) or subject.owns(mine)):
        raise Broken(f"{what} is a {type(mine).__name__}, where there should be a tensor")
    if tuple(mine.shape) != tuple(other.shape) or mine.dtype != other.dtype:
        raise Broken(f"{what} says that it is {look(mine)}, and should be {look(other)}")
    if strides and subject.strides and mine.stride() != other.stride():
        raise Broken(f"{what} has strides {tuple(mine.stride())}, and should have {tuple(other.stride())}")
    if values:
        if not subject.owns(mine) and not mine._storage.has_data:
            raise Broken(f"{what} is a {type(mine).__name__}; what that stands for is not known")
        close(subject.bare(mine).detach(), other.detach(), what)


# --- the checks: whether there was something to check; Broken where it does not hold ---------------------------------


def values(trial: Trial) -> bool:
    """Results are those of the plain call, and are the layer's own; arguments hold afterwards what they should."""
    found = compared(trial, trial.dressed())
    strangers = [x for x in each(found, trial.subject) if isinstance(x, Tensor) and not trial.subject.owns(x)]
    if trial.subject.closed and strangers:
        raise Broken(f"the result is a plain {type(strangers[0]).__name__}; wrap it, or say closed=False")
    return True


def mixed(trial: Trial) -> bool:
    """So they are where the first tensor alone is of the layer's, and the others are plain."""
    if len(trial.sample.tensors()) < 2 or not trial.subject.mixes:
        return False
    compared(trial, trial.dressed(only_first=True))
    return True


def compared(trial: Trial, call: SampleInput) -> Any:
    """The result of a call, once it is what it should be."""
    plain = trial.plain(call)
    wanted = trial.expected(plain)
    found = trial.through(call)
    trial.same(found, wanted, strides=True)
    trial.same(leaves(call), leaves(plain), "an argument, after the call,")
    return found


def aliasing(trial: Trial) -> bool:
    """Results share memory with arguments, or do not, as they should; writing a view writes what it is a view of."""
    call = trial.dressed()
    plain = trial.plain(call)
    wanted, found = trial.expected(plain), trial.through(call)
    results, others = each(found, trial.subject), each(wanted)
    declared = any(trial.info.op.schema.return_aliases)
    for mine, other in zip(results, others, strict=True):
        for x, y in zip(leaves(call), leaves(plain), strict=True):
            if isinstance(other, Tensor) and isinstance(y, Tensor) and isinstance(x, Tensor) and type(x) is type(mine):
                check_alias(mine, other, x, y, declared, trial.info.mutates)
    if trial.info.op.schema.is_view and can_be_written(trial):
        written(trial, results, others)
        trial.same(leaves(call), leaves(plain), "what it is a view of, after the view was written,")
    return True


def check_alias(mine: Any, other: Tensor, x: Tensor, y: Tensor, declared: bool, mutates: bool) -> None:
    """Broken unless `mine` is to `x` what `other` is to `y`, as far as the schema promises it."""
    if mine is x and other is not y:
        raise Broken("the result is the argument itself, and should be another tensor")
    if other is y and mine is not x and mutates:
        raise Broken("the result is not the argument itself, which was written")
    if shares(mine, x) and not shares(other, y):
        raise Broken("the result shares its memory with an argument, and should have its own")
    if shares(other, y) and not shares(mine, x) and declared:
        raise Broken(
            "the result does not share its memory with the argument that it is a view of; a wrapper's handler ends "
            "with return_and_correct_aliasing"
        )


def inplace(trial: Trial) -> bool:
    """The in-place form writes what the other gives into its argument, returns that, and counts its version."""
    op, call = trial.info.inplace, trial.dressed()
    if op is None or not trial.subject.owns(call.input) or not isinstance(call.input, Tensor):
        return False
    plain = trial.plain(call)
    if not fits_in_place(trial, plain):
        return False
    before, plain_before = call.input._version, plain.input._version
    trial.expected(plain, op)
    if trial.through(call, op) is not call.input:
        raise Broken("the in-place form returns another tensor than its argument")
    trial.same(call.input, plain.input, "the argument, after the call in place,", strides=True)
    if (call.input._version > before) != (plain.input._version > plain_before):
        raise Broken(f"the version of the tensor went from {before} to {call.input._version} as it was written")
    return True


def out(trial: Trial) -> bool:
    """The out= form writes the result into the tensors that it is given."""
    op, call = trial.info.out, trial.dressed()
    if op is None:
        return False
    plain = trial.plain(call)
    results = [x for x in each(trial.expected(plain)) if isinstance(x, Tensor)]
    targets = [trial.subject.dress(alone(x).fill_(1)) for x in results]
    if not all(map(trial.subject.owns, targets)):
        return False
    wanted = [trial.plain_of(x) for x in targets]
    trial.expected(trial.info.writing_to(wanted, plain), op)
    trial.through(trial.info.writing_to(targets, call), op)
    trial.same(targets, wanted, "what out= is given, after the call,")
    return True


def autograd(trial: Trial) -> bool:
    """Gradients through the layer are those of the plain call."""
    places = [i for i, x in enumerate(leaves(trial.sample)) if isinstance(x, Tensor) and x.requires_grad]
    if not places or not trial.info.gradients or trial.info.mutates or "gradients" in trial.info.skips:
        return False
    call, inputs = entered(trial, places)
    plain = trial.plain(call)
    plain_inputs = [x.requires_grad_() for i, x in enumerate(leaves(plain)) if i in places]
    wanted = differentiable(each(trial.expected(plain)))
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
    for x, y, leaf, entry in zip(mine, grads, plain_inputs, inputs, strict=True):
        filled = y if y is not None else leaf.detach().clone().zero_()
        if not trial.subject.owns(entry):  # by a door: no gradient comes from where that let no value in
            filled = filled.masked_fill(entry.detach() != leaf.detach(), 0)
        trial.same(x if x is not None else leaf.detach().clone().zero_(), filled, "a gradient")
    return True


def functionalization(trial: Trial) -> bool:
    """Functionalized, the call gives the same, and its in-place form writes the same."""
    info, call = trial.info, trial.dressed()
    plain = trial.plain(call)
    writes = info.inplace is not None and isinstance(plain.input, Tensor) and fits_in_place(trial, plain)

    def program(args: Any, kwargs: Any) -> Any:
        if writes:
            target = args[0].clone()
            return [trial.run(SampleInput(target, args[1:], kwargs), info.inplace), target]
        return trial.run(SampleInput(args[0], args[1:], kwargs))

    with warnings_off():
        wanted = without_it(lambda: functionalize(program)(plain.arguments, dict(plain.kwargs)))
        with trial.subject.region():
            found = functionalize(program)(call.arguments, dict(call.kwargs))
    trial.same(found, wanted, "the result, functionalized,")
    return True


def batching(trial: Trial) -> bool:
    """Under vmap a batch gives what it gives without the layer."""
    info, sample = trial.info, trial.sample.map(lambda x: x.detach())
    if info.random or info.mutates or "vmap" in info.skips or not sample.tensors():
        return False
    filled, tensors = sample.parted()

    def program(*given: Any) -> Any:
        results = trial.run(filled(*given))
        return tuple(x for x in each(results, trial.subject) if isinstance(x, Tensor) or trial.subject.owns(x))

    batches = [trial.subject.dress(stack([x, x.flip(0) if x.dim() else x.clone()])) for x in tensors]
    if not any(map(trial.subject.owns, batches)):
        return False
    plain = [trial.plain_of(x) if trial.subject.owns(x) else alone(x) for x in batches]
    with warnings_off():  # that an operator is called once for each example
        wanted = without_it(lambda: vmap(program)(*plain))
        with trial.subject.region():
            found = vmap(program)(*batches)
    trial.same(found, wanted, "the result under vmap")
    return bool(wanted)


def of_results(check: Callable[[Subject, Any], None]) -> Callable[[Trial], bool]:
    """Makes a check of a call of one that looks at each of the layer's tensors in the result."""

    @functools.wraps(check)
    def checked(trial: Trial) -> bool:
        call = trial.dressed()
        trial.expected(trial.plain(call))
        results = [x for x in each(trial.through(call), trial.subject) if trial.subject.owns(x)]
        with trial.subject.region():
            for x in results:
                check(trial.subject, x)
        return bool(results)

    return checked


@of_results
def deepcopying(subject: Subject, x: Any) -> None:
    """A deep copy of a result is of its class, stands for the same, and shares no memory."""
    made = copy.deepcopy(x)
    if type(made) is not type(x):
        raise Broken(f"a deep copy of the result is a {type(made).__name__}")
    if isinstance(x, Tensor) and shares(made, x):
        raise Broken("a deep copy of the result shares its memory")
    stands_for(subject, made, subject.bare(x), "a deep copy of the result")


@of_results
def pickling(subject: Subject, x: Any) -> None:
    """A result comes back from a pickle as what it was."""
    made = pickle.loads(pickle.dumps(x))
    if type(made) is not type(x):
        raise Broken(f"what comes back from a pickle of the result is a {type(made).__name__}")
    stands_for(subject, made, subject.bare(x), "what comes back from a pickle of the result")


@of_results
def printing(subject: Subject, x: Any) -> None:
    """A result prints, and that it was printed changes nothing."""
    before = alone(subject.bare(x))
    if not all([repr(x), str(x), f"{x}"]):
        raise Broken("the result prints as an empty text")
    stands_for(subject, x, before, "the result, after it was printed,")


CHECKS: dict[str, Callable[[Trial], bool]] = {
    "values": values,
    "mixed": mixed,
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
    """The first few calls of an operator with elements, of a dtype if it can, else of its main one.

    One of them has keyword arguments, if any call has: a handler that drops them is right in all others.
    """
    made = info.main_dtype
    if kind is not None and kind.name not in info.refused and kind.name not in info.not_sampled:
        made = kind
    samples = info.sample_inputs(made, requires_grad and not info.mutates, thorough=False)
    full = [one for one in samples if all(x.numel() for x in one.tensors())]
    some, others = full[:most], full[most:]
    if len(some) > 1 and not any(one.kwargs for one in some):
        some[-1] = next((one for one in others if one.kwargs), some[-1])
    return some


def leaves(call: SampleInput) -> list[Any]:
    return pytree.tree_leaves((call.arguments, dict(call.kwargs)))


def alone(x: Tensor) -> Tensor:
    """A copy: a leaf, with the same strides as far as a copy can have them."""
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
    if not isinstance(plain.input, Tensor):
        return False
    wanted = trial.expected(plain.copy())
    if not isinstance(wanted, Tensor):
        return False
    op = trial.info.inplace
    turns = op is not None and Tag.inplace_view in op.tags
    return turns or wanted.shape == plain.input.shape and can_cast(wanted.dtype, plain.input.dtype)


def can_be_written(trial: Trial) -> bool:
    """Whether the layer lets its tensors be written at all."""
    x = next((x for x in leaves(trial.dressed()) if trial.subject.owns(x) and isinstance(x, Tensor)), None)
    try:
        with trial.subject.region():
            return x is not None and x.zero_() is x
    except Exception:
        return False


def written(trial: Trial, results: list[Any], others: list[Any]) -> None:
    """Writes zeros into all results, of either call."""
    with trial.subject.region():
        for x in results:
            if isinstance(x, Tensor):
                x.zero_()
    for y in others:
        if isinstance(y, Tensor):
            y.zero_()


def without_it(call: Callable[[], Any]) -> Any:
    """Runs a call without the layer; where it raises, there is nothing to check."""
    try:
        return call()
    except Exception:
        raise Nothing from None


def entered(trial: Trial, places: list[int]) -> tuple[SampleInput, list[Any]]:
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
    if not owned:
        raise Nothing
    args, kwargs = pytree.tree_unflatten(filled, spec)
    return SampleInput(args[0], tuple(args[1:]), kwargs), inputs


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
