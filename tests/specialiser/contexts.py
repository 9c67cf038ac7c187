"""The circumstances in which operators are compared: what is done to the arguments before, and the region of the call.

Whatever may see a call on its way (modes, subclasses, layers at users' keys, kernels) writes into the world of the
run what it is given, and the dispatch state in which it is asked: this is what the order of hops can be told by.
"""

import warnings
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import redispatch as rd
from redispatch.dispatch import (
    STATE,
    Library,
    below,
    bind,
    define_key,
    describe,
    include,
    keyset,
    run,
    within,
)
from redispatch.dispatch.layers.layer import layer
from redispatch.dispatch.tensor import Tensor
from redispatch.overrides import TorchFunctionMode
from redispatch.subclasses.logging_tensor import Log, LoggingTensor
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.testing.op_info import copy_of
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import TorchDispatchMode

# Who sees calls -------------------------------------------------------------------------------------------------------


class Spy(TorchDispatchMode):
    """Writes down each call that it is asked about; then hands it on, or declines it."""

    def __init__(self, world, name="mode", declines=False):
        super().__init__()
        self.world, self.name, self.declines = world, name, declines

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.world.say(f"{self.name} sees {func}", types, args, kwargs)
        self.world.lines.append(self.world.state())
        if self.declines:
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        self.world.say(f"{self.name} got", result)
        return result

    def __repr__(self):
        return self.name


class FunctionSpy(TorchFunctionMode):
    """Writes down each public function that is called."""

    def __init__(self, world):
        super().__init__()
        self.world = world

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.world.say("function mode sees", func, types, args, kwargs)
        self.world.lines.append(self.world.state())
        return func(*args, **(kwargs or {}))

    def __repr__(self):
        return "function mode"


class Watched(rd.Tensor):
    """The memory of a tensor under a class whose handler writes down what it is given."""

    world: Any = None

    @staticmethod
    def __new__(cls, data):
        return rd.Tensor._make_subclass(cls, data, data.requires_grad)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if cls.world is not None:
            cls.world.say(f"{cls.__name__} sees {func}", types, args, kwargs)
            cls.world.lines.append(cls.world.state())
        with rd._C._DisableTorchDispatch():
            result = func(*args, **(kwargs or {}))
        return pytree.tree_map_only(
            rd.Tensor, lambda x: x if isinstance(x, cls) else rd.Tensor._make_subclass(cls, x), result
        )


class Closer(Watched):
    """A subclass of a subclass: it is asked first."""


class Plain(rd.Tensor):
    """A subclass with the default `__torch_function__`."""


UPPER, MIDDLE, LOWER = "UpperSpy", "MiddleSpy", "LowerSpy"
NOWHERE: list[Any] = []  # the world into which the layers write, while there is one


def define_keys() -> None:
    """Three keys, above Autograd, between it and ADInplaceOrView, and above the kernels, whose layers write down.

    Two of them are fallbacks, as users register them; the middle one is a layer as the library writes them.
    """
    lib = Library("_", "IMPL")
    define_key(UPPER, above="AutocastCUDA")
    lib.fallback(spying_fallback(UPPER), UPPER, with_keyset=True)
    define_key(LOWER, above="Dense")
    lib.fallback(spying_fallback(LOWER), LOWER, with_keyset=True)
    define_key(MIDDLE, above="ADInplaceOrView")
    kept, below_mine = keyset(MIDDLE), below(MIDDLE)

    @layer(MIDDLE)
    def middle(op, keyset, stack):
        tell(MIDDLE, op, keyset, stack)
        with within(STATE.get().excluding(kept)):
            result = run(op, keyset & below_mine, stack)
        tell_result(MIDDLE, result)
        return result

    KEPT_LIBRARIES.append(lib)


KEPT_LIBRARIES: list[Library] = []


def spying_fallback(name):
    lower = below(name)

    def fallback(keyset, op, *args, **kwargs):
        tell(name, op, keyset, (args, kwargs))
        result = op.redispatch(keyset & lower, *args, **kwargs)
        tell_result(name, result)
        return result

    return fallback


def tell(name, op, keyset, arguments):
    if NOWHERE:
        NOWHERE[-1].say(f"{name} gets {op} {describe(keyset)}", arguments)
        NOWHERE[-1].lines.append(NOWHERE[-1].state())


def tell_result(name, result):
    if NOWHERE:
        NOWHERE[-1].say(f"{name} got", result)


def spy_on_kernel(op):
    """Puts a kernel that writes what it is given before the one that `op` has on the CPU; returns the library."""
    former = op.entry(keyset("CPU")).kernel
    lib = Library(op.namespace, "IMPL")

    def spying(keyset, *args, **kwargs):
        tell("kernel", op, keyset, (args, kwargs))
        return former.boxed(op, keyset, bind(op.schema, args, kwargs))

    lib.impl(op, spying, "CPU", with_keyset=True)
    return lib


# Regions: world -> context manager ------------------------------------------------------------------------------------


@contextmanager
def at_keys(world, *names):
    """With users' keys included."""
    NOWHERE.append(world)
    try:
        with include(keyset(*names)):
            yield
    finally:
        NOWHERE.pop()


@contextmanager
def watched(world):
    Watched.world = world
    try:
        yield
    finally:
        Watched.world = None


@contextmanager
def spied_kernel(world):
    NOWHERE.append(world)
    try:
        yield
    finally:
        NOWHERE.pop()


@contextmanager
def saving_through_hooks(world):
    """Saved tensors go through hooks, and anomaly mode is on."""

    def pack(tensor):
        world.say("packs", tensor)
        return tensor.detach().clone()

    def unpack(tensor):
        world.say("unpacks", tensor)
        return tensor

    with rd.autograd.graph.saved_tensors_hooks(pack, unpack), rd.autograd.detect_anomaly(check_nan=False):
        with warnings.catch_warnings():  # anomaly mode prints where in forward an error comes from
            warnings.simplefilter("ignore")
            yield


def all_of(*regions):
    """The regions inside each other, the first outermost."""

    @contextmanager
    def region(world):
        with ExitStack() as stack:
            for one in regions:
                stack.enter_context(one(world))
            yield

    return region


def mode(world):
    return Spy(world)


def outer_mode(world):
    return Spy(world, "outer mode")


def declining_mode(world):
    return Spy(world, "declining mode", declines=True)


def function_mode(world):
    return FunctionSpy(world)


def no_grad(world):
    return rd.no_grad()


def inference(world):
    return rd.inference_mode()


def autocast(world):
    return rd.autocast("cpu", dtype=rd.bfloat16)


def nothing(world):
    return nullcontext()


# Arguments: sample -> sample ------------------------------------------------------------------------------------------


def plain(sample):
    """New tensors, none of which requires grad."""
    fresh = sample.map(lambda x: copy_of(x.detach()))
    return fresh.map(lambda g: rd.Generator().manual_seed(g.initial_seed()), rd.Generator)


def is_floating(x):
    return x.is_floating_point() or x.is_complex()


def leaves(sample):
    """Each tensor that can require grad does."""
    return plain(sample).map(lambda x: x.requires_grad_() if is_floating(x) else x)


def results(sample):
    """Each tensor that can require grad is a result, so that it may be written in place."""
    return leaves(sample).map(lambda x: x.clone() if is_floating(x) else x)


def views(sample):
    """Each tensor is a view of one that requires grad, if it can, and is a result."""
    return results(sample).map(lambda x: x.unsqueeze(0).select(0, 0))


def parameters(sample):
    return plain(sample).map(lambda x: rd.nn.Parameter(x) if is_floating(x) else x)


def one_tensor(sample):
    """One and the same tensor wherever shapes and dtypes allow it."""
    seen: list[Tensor] = []

    def same(x):
        for known in seen:
            if known.shape == x.shape and known.dtype is x.dtype:
                return known
        seen.append(x)
        return x

    return results(sample).map(same)


def only(number):
    """The tensor of this number requires grad, the others do not."""

    def adapt(sample):
        fresh = plain(sample)
        tensors = fresh.tensors()
        if number < len(tensors) and is_floating(tensors[number]):
            tensors[number].requires_grad_()
        return fresh

    return adapt


def on_meta(sample):
    meta = rd.device("meta")
    return plain(sample).map(lambda x: x.to(meta)).map(lambda device: meta, rd.device)


def inference_tensors(sample):
    """Tensors made in inference mode, of which the last one is a normal one that requires grad, if it can."""
    with rd.inference_mode():
        made = plain(sample).map(lambda x: x.clone())
    count = len(made.tensors())
    numbers = iter(range(count))

    def last_is_normal(x):
        if next(numbers, 0) < count - 1:  # 0: of the forward call, of which a gradient's sample knows
            return x
        x = x.clone()
        return x.requires_grad_() if is_floating(x) else x

    return made.map(last_is_normal)


def two_tensors(sample):
    return plain(sample).map(lambda x: TwoTensor(x, x.clone()))


def two_tensors_with_grad(sample):
    wrapped = two_tensors(sample)
    return wrapped.map(lambda x: x.requires_grad_() if is_floating(x) else x)


def first_is_two_tensor(sample):
    """The first tensor alone is a wrapper."""
    numbers = iter(range(1 << 20))
    return plain(sample).map(lambda x: TwoTensor(x, x.clone()) if next(numbers) == 0 else x)


def logging_tensors(sample):
    log = Log()
    return plain(sample).map(lambda x: LoggingTensor(x.requires_grad_() if is_floating(x) else x, log))


def watched_tensors(sample):
    """The first is of a class, the others of a subclass of it."""
    numbers = iter(range(1 << 20))
    return leaves(sample).map(lambda x: (Closer if next(numbers) else Watched)(x))


def plain_subclass(sample):
    return leaves(sample).map(lambda x: x.as_subclass(Plain))


# The contexts ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Context:
    """Arguments and a region.

    graph:    whether the gradient is asked for with `create_graph`, and its own graph compared, too.
    backward: the region in which the backward pass runs.
    dtype:    of the samples, where it is not the operator's main one.
    keys:     whether it needs `define_keys`.
    spied:    whether the operator's kernel is to be a spying one.
    subclass: whether arguments are of a subclass (see OpInfo.skips).
    """

    name: str
    arguments: Callable[[Any], Any] = plain
    region: Callable[[Any], Any] = nothing
    graph: bool = False
    backward: Callable[[Any], Any] = nothing
    dtype: str | None = None
    keys: bool = False
    spied: bool = False
    subclass: bool = False

    def __str__(self):
        return self.name


def at_upper(world):
    return at_keys(world, UPPER)


def at_lower(world):
    return at_keys(world, LOWER)


def at_all(world):
    return at_keys(world, UPPER, MIDDLE, LOWER)


CONTEXTS = [
    Context("plain"),
    Context("requires grad", leaves),
    Context("results that require grad", results, graph=True),
    Context("first requires grad", only(0)),
    Context("second requires grad", only(1)),
    Context("third requires grad", only(2)),
    Context("views that require grad", views),
    Context("one tensor", one_tensor),
    Context("parameters", parameters),
    Context("inference tensors", inference_tensors),
    Context("no_grad", results, no_grad),
    Context("inference_mode", plain, inference),
    Context("inference_mode, views", views, inference),
    Context("autocast", plain, autocast, dtype="float32"),
    Context("autocast, parameters", parameters, autocast, dtype="float32"),
    Context("autocast, no_grad, mode", parameters, all_of(autocast, no_grad, mode), dtype="float32"),
    Context("mode", plain, mode),
    Context("mode, requires grad", results, mode, backward=mode),
    Context("two modes, no_grad", results, all_of(outer_mode, no_grad, mode)),
    Context("two modes, inference_mode", plain, all_of(outer_mode, inference, mode)),
    Context("declining mode", results, declining_mode),
    Context("function mode", results, function_mode),
    Context("function mode, mode", leaves, all_of(function_mode, mode)),
    Context("two tensors", two_tensors, subclass=True),
    Context("two tensors that require grad", two_tensors_with_grad, mode, backward=mode, subclass=True),
    Context("one two tensor, declining mode", first_is_two_tensor, declining_mode, subclass=True),
    Context("logging tensors", logging_tensors, subclass=True),
    Context("watched tensors", watched_tensors, watched, backward=watched, subclass=True),
    Context("watched tensors, modes", watched_tensors, all_of(watched, outer_mode, declining_mode), subclass=True),
    Context("plain subclass", plain_subclass),
    Context("meta", on_meta),
    Context("meta, mode, no_grad", on_meta, all_of(mode, no_grad)),
    Context("upper key", results, at_upper, keys=True),
    Context("lower key", results, at_lower, keys=True),
    Context("all keys", results, at_all, backward=at_all, keys=True),
    Context("all keys, mode", leaves, all_of(at_all, mode), keys=True),
    Context("all keys, inference_mode", plain, all_of(inference, at_all), keys=True),
    Context("all keys, two tensors", two_tensors_with_grad, at_all, keys=True, subclass=True),
    Context("all keys, autocast", parameters, all_of(at_all, autocast), keys=True, dtype="float32"),
    Context("spying kernel", results, spied_kernel, spied=True),
    Context("spying kernel, mode", plain, all_of(spied_kernel, mode), spied=True),
    Context("spying kernel, all keys", plain, at_all, spied=True, keys=True),
    Context("hooks", results, saving_through_hooks, backward=saving_through_hooks),
]
