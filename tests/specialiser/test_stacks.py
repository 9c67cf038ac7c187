"""A program does the same specialised as boxed in any stack of layers, and after each registration.

Hypothesis draws the layers (keys of users' own at drawn places, whose layers change something and hand on), the
regions that a program enters and leaves, and the operators that it calls. The second half registers and takes back
kernels, fallbacks, keys and rules between calls: code made before must go exactly where it does not hold any more.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch.autograd import backward
from redispatch.dispatch import (
    STATE,
    Library,
    below,
    define_key,
    describe,
    exclude,
    fallthrough_kernel,
    include,
    keyset,
    run,
    undefine,
    within,
)
from redispatch.dispatch.core.registry import add_fallback
from redispatch.dispatch.layers.autocast import fp32, register_policy
from redispatch.dispatch.layers.layer import boxed_kernel
from redispatch.dispatch.layers.python import TORCH_DISPATCH
from redispatch.dispatch.tensor import Tensor
from redispatch.library import custom_op
from redispatch.subclasses.logging_tensor import Log, LoggingTensor
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.utils import _pytree as pytree

from .. import drawing
from .contexts import FunctionSpy, Spy, Watched
from .twice import assert_same, specialize

aten = rd.ops.aten

# Layers at keys of users' own -----------------------------------------------------------------------------------------

PLACES = [
    "Dense",
    "BackendSelect",
    "Python",
    "ADInplaceOrView",
    "AutogradFunctionality",
    "AutocastCUDA",
    "PythonTLSSnapshot",
]
SORTS = ["fallback", "excluding layer", "layer", "fallthrough", "kernel"]
DEEDS = ["hands on", "negates", "refuses mul", "calls another", "turns recording off"]
names = (f"Drawn{number}" for number in count())


@dataclass
class DrawnLayer:
    """A key just above `place`, and what its layer does."""

    place: str
    sort: str
    deed: str
    carried: bool  # whether tensors carry the key; else regions include it
    name: str = field(default_factory=lambda: next(names))

    def __str__(self):
        return f"{self.sort} above {self.place} {self.deed}"

    def __enter__(self):
        self.key = define_key(self.name, above=self.place)
        self.world = None
        self.undo = []
        if self.sort == "fallthrough":
            lib = Library("_", "IMPL")
            lib.fallback(fallthrough_kernel, self.name)
            self.undo.append(lib._destroy)
        elif self.sort == "fallback":
            lib = Library("_", "IMPL")
            lib.fallback(self.fallback, self.name, with_keyset=True)
            self.undo.append(lib._destroy)
        elif self.sort == "kernel":  # of one operator; the others have none here
            lib = Library("_", "IMPL")
            lib.fallback(fallthrough_kernel, self.name)
            own = Library("aten", "IMPL")
            own.impl(
                "mul.Tensor",
                lambda keyset, *args: self.fallback(keyset, aten.mul.Tensor, *args),
                self.name,
                with_keyset=True,
            )
            self.undo += [lib._destroy, own._destroy]
        else:
            self.undo.append(add_fallback(self.key, boxed_kernel(self.boxed())))
        return self

    def __exit__(self, *error):
        undefine(self.key)
        for undo in self.undo:
            undo()

    def fallback(self, keyset, op, *args, **kwargs):
        """Stands for a fallback that users register."""
        self.tell(op, keyset, (args, kwargs))
        return self.changed(op, op.redispatch(self.prepared(keyset), *args, **kwargs))

    def boxed(self):
        """A layer as the library writes them: a plain function that the specialiser works out."""
        mine, below_mine, excluding = self.key.bits, below(self.name), self.sort == "excluding layer"
        tell, changed, prepared = self.tell, self.changed, self.prepared

        def drawn_layer(op, keyset, stack):
            tell(op, keyset, stack)
            if excluding:
                with within(STATE.get().excluding(mine)):
                    result = run(op, prepared(keyset) & below_mine, stack)
            else:
                result = run(op, keyset & below_mine, stack)
            return changed(op, result)

        return drawn_layer

    def tell(self, op, keyset, arguments):
        if self.world is not None:
            self.world.say(f"{self.name} gets {op} {describe(keyset)}", arguments)
            self.world.lines.append(self.world.state())
            if self.deed == "refuses mul" and op is aten.mul.Tensor:
                raise RuntimeError("no products here")

    def prepared(self, keyset):
        return keyset & below(self.name)

    def changed(self, op, result):
        if self.world is None:
            return result
        if (
            self.deed == "negates"
            and isinstance(result, Tensor)
            and result.is_floating_point()
            and not op._schema.is_mutable
        ):
            with exclude(self.key.bits):
                return result.neg()
        if self.deed == "calls another":
            with exclude(self.key.bits):
                rd.zeros(2) + 1
        if self.deed == "turns recording off":
            with rd.no_grad():
                rd.ones(1, requires_grad=True) * 2
        return result


drawn_layers = st.lists(
    st.builds(DrawnLayer, st.sampled_from(PLACES), st.sampled_from(SORTS), st.sampled_from(DEEDS), st.booleans()),
    max_size=3,
    unique_by=lambda one: one.place,  # a gap between two keys has place for two
)

# Programs -------------------------------------------------------------------------------------------------------------

REGIONS = {
    "no_grad": lambda world, keys: rd.no_grad(),
    "enable_grad": lambda world, keys: rd.enable_grad(),
    "inference_mode": lambda world, keys: rd.inference_mode(),
    "autocast": lambda world, keys: rd.autocast("cpu"),
    "mode": lambda world, keys: Spy(world),
    "declining mode": lambda world, keys: Spy(world, "declining mode", declines=True),
    "function mode": lambda world, keys: FunctionSpy(world),
    "keys": lambda world, keys: include(keys),
    "no autograd": lambda world, keys: exclude(keyset("AutogradCPU", "ADInplaceOrView")),
    "trace": lambda world, keys: rd.trace(),
}

MAKERS = {
    "plain": lambda x: x,
    "leaf": lambda x: x.requires_grad_(),
    "float32": lambda x: x.float(),
    "parameter": rd.nn.Parameter,
    "result": lambda x: x.requires_grad_().clone(),
    "view": lambda x: x.requires_grad_().clone().t(),
    "integer": lambda x: x.long(),
    "two": lambda x: TwoTensor(x, x.clone()),
    "two that require grad": lambda x: TwoTensor(x, x.clone()).requires_grad_(),
    "logging": lambda x: LoggingTensor(x.requires_grad_(), Log()),
    "watched": lambda x: Watched(x.requires_grad_()),
    "meta": lambda x: x.to("meta"),
}

STEPS = {
    "add": lambda x, y: x + y,
    "add with alpha": lambda x, y: rd.add(x, y, alpha=2),
    "add a number": lambda x, y: x + 1,
    "mul": lambda x, y: aten.mul.Tensor(x, y),
    "square": lambda x, y: x * x,
    "matmul": lambda x, y: x @ y,
    "exp": lambda x, y: x.exp(),
    "sum": lambda x, y: x.sum(),
    "sum a dim": lambda x, y: x.sum(0),
    "max a dim": lambda x, y: x.max(-1),
    "view": lambda x, y: x.view(-1),
    "transpose": lambda x, y: x.t(),
    "select": lambda x, y: x[0],
    "split": lambda x, y: x.split(1),
    "cat": lambda x, y: rd.cat([x, y]),
    "detach": lambda x, y: x.detach(),
    "clone": lambda x, y: x.clone(),
    "to float32": lambda x, y: x.to(rd.float32),
    "ones": lambda x, y: rd.ones(2, 2),
    "ones like": lambda x, y: rd.ones_like(x, requires_grad=True),
    "where": lambda x, y: rd.where(x > y, x, y),
    "add_": lambda x, y: x.add_(y),
    "mul_": lambda x, y: x.mul_(2),
    "zero_": lambda x, y: x.zero_(),
    "copy_": lambda x, y: x.copy_(y),
    "set an item": lambda x, y: x.__setitem__(0, 5),
    "add into": lambda x, y: aten.add.out(x, y, out=x),
    "backward": lambda x, y: x.sum().backward(),
    "requires grad": lambda x, y: x.requires_grad_(),
}

step = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 7), st.integers(0, 7))
region = st.sampled_from(sorted(REGIONS))
programs = st.recursive(
    st.lists(step, min_size=1, max_size=3),
    lambda inner: st.tuples(region, inner) | st.lists(inner, min_size=1, max_size=3),
    max_leaves=4,
)


def execute(program, tensors, world, keys):
    """Runs a program: a step, a region around one, or several after each other. Results are tensors for later steps."""
    if isinstance(program, list):
        for part in program:
            execute(part, tensors, world, keys)
    elif len(program) == 2:
        name, inner = program
        world.lines.append(f"enters {name}")
        try:
            with REGIONS[name](world, keys):
                execute(inner, tensors, world, keys)
        except Exception as error:
            world.say("leaves by", error)
    else:
        name, first, second = program
        world.lines.append(name)
        try:
            result = STEPS[name](tensors[first % len(tensors)], tensors[second % len(tensors)])
        except Exception as error:
            world.say("raised", error)
            return
        world.say("gave", result)
        tensors += [x for x in pytree.tree_leaves(result) if isinstance(x, Tensor)]


def program_case(layers, makers, program):
    def prepare():
        tensors = [
            MAKERS[name](rd.tensor([[1.0, -2.0], [3.0, 4.0 + i]], dtype=rd.float64)) for i, name in enumerate(makers)
        ]
        keys = 0
        for one in layers:
            keys |= one.key.bits
            if one.carried:
                tensors[0]._keyset |= one.key.bits

        def run_program(world):
            first = list(tensors)
            for one in layers:
                one.world = world
            try:
                execute(program, tensors, world, keys)
                outputs = [x for x in tensors[len(first) :] if x._requires_grad()]
                world.describe("tensors", tensors)
                for x in outputs:
                    try:
                        backward([x], [rd.ones_like(x.detach())], retain_graph=True)
                    except Exception as error:
                        world.say("backward raised", error)
                later = type(world)()
                later.describe("after backward", tensors)
                world.lines += later.lines
            finally:
                for one in layers:
                    one.world = None

        return run_program

    return prepare


def compare(layers, makers, program):
    with ExitStack() as entered:
        for one in layers:
            entered.enter_context(one)
        assert_same({f"{[str(one) for one in layers]} {makers} {program}": program_case(layers, makers, program)})


@drawing.at_length(3000)
@given(drawn_layers, st.lists(st.sampled_from(sorted(MAKERS)), min_size=1, max_size=3), programs)
def test_a_program_does_the_same_in_any_stack_of_layers(layers, makers, program):
    compare(layers, makers, program)


# Registering between calls --------------------------------------------------------------------------------------------

KERNEL_KEYS = [
    "CPU",
    "AutogradCPU",
    "Autograd",
    "CompositeExplicitAutograd",
    "ADInplaceOrView",
    "Meta",
    "BackendSelect",
    "Python",
]
ACTIONS = st.one_of(
    st.tuples(st.just("kernel"), st.sampled_from(KERNEL_KEYS)),
    st.tuples(st.just("kernel of g"), st.sampled_from(KERNEL_KEYS)),
    st.tuples(st.just("skip"), st.sampled_from(KERNEL_KEYS)),
    st.tuples(st.just("take back"), st.integers(0, 9)),
    st.tuples(st.just("key"), st.sampled_from(PLACES)),
    st.tuples(st.just("kernel at key"), st.integers(0, 3)),
    st.tuples(st.just("derivative"), st.sampled_from([2.0, 5.0])),
    st.tuples(st.just("autocast policy"), st.none()),
    st.tuples(st.just("rule for TwoTensor"), st.none()),
    st.tuples(st.just("another g"), st.none()),
)


class Registry:
    """Operators t::f and t::g, which calls it, and all that is done to them; leaving it takes everything back."""

    def __init__(self, world):
        self.world, self.undo, self.keys, self.numbers = world, [], [], count()

    def __enter__(self):
        self.lib = Library("t", "FRAGMENT")
        self.lib.define("f(Tensor x, int n=1) -> Tensor")
        self.lib.impl("f", lambda x, n=1: x.detach() * 2 + n, "CPU")
        self.lib.impl("f", lambda x, n=1: x, "Meta")
        self.define_g(0)
        return self

    def __exit__(self, *error):
        for undo in self.undo[::-1]:
            undo()
        self.g._destroy()
        self.lib._destroy()

    def define_g(self, number):
        self.g = Library("t", "FRAGMENT")
        self.g.define("g(Tensor x) -> Tensor")
        self.g.impl("g", lambda x: rd.ops.t.f(x) * rd.ops.t.f(x, 3 + number), "CompositeImplicitAutograd")

    def kernel(self, op, key):
        """A kernel that says that it runs, and lets the call go on below if there is a below."""
        number = next(self.numbers)

        def kernel(keyset, x, n=1):
            self.world.say(f"kernel {number} of {op} at {key}", x, n)
            self.world.lines.append(self.world.state())
            if key in ("CPU", "Meta", "CompositeExplicitAutograd"):
                return x.detach() + number
            below_mine = keyset & below("AutogradOther" if key == "Autograd" else key)
            return op.redispatch(below_mine, x, n) if op._opname == "f" else op.redispatch(below_mine, x)

        lib = Library("t", "IMPL")
        lib.impl(op, kernel, key, with_keyset=True)
        self.undo.append(lib._destroy)

    def act(self, what, argument):
        f, g = rd.ops.t.f.default, rd.ops.t.g.default
        match what:
            case "kernel":
                self.kernel(f, argument)
            case "kernel of g":
                self.kernel(g, argument)
            case "skip":
                lib = Library("t", "IMPL")
                lib.impl(f, fallthrough_kernel, argument)
                self.undo.append(lib._destroy)
            case "take back" if self.undo:
                self.undo.pop(argument % len(self.undo))()
            case "key":
                name = f"Between{len(self.keys)}"
                define_key(name, above=argument)
                self.keys.append(name)
                lib = Library("_", "IMPL")
                lib.fallback(self.fallback(name), name, with_keyset=True)
                self.undo.append(lambda: (lib._destroy(), self.undefined(name)))
            case "kernel at key" if self.keys:
                self.kernel(f, self.keys[argument % len(self.keys)])
            case "derivative":
                self.undo.append(
                    rd.autograd.register_function_derivative(
                        f, lambda ctx, grad: (grad * argument, None), None, place="here"
                    )
                )
            case "autocast policy":
                self.undo.append(register_policy(f, "cpu", fp32))
            case "rule for TwoTensor":
                self.undo.append(TORCH_DISPATCH.add((f, TwoTensor), self.rule, "here"))
            case "another g":
                self.g._destroy()
                self.define_g(next(self.numbers))

    def fallback(self, name):
        def fallback(keyset, op, *args, **kwargs):
            self.world.say(f"{name} gets {op}", args, kwargs)
            return op.redispatch(keyset & below(name), *args, **kwargs)

        return fallback

    def undefined(self, name):
        if name in self.keys:
            undefine(rd.DispatchKey.__members__[name])
            self.keys.remove(name)

    def rule(self, kind, op, types, args, kwargs):
        self.world.say(f"rule for {op}", args, kwargs)
        return args[0].a

    def calls(self):
        """The calls after each action."""
        f, g, x = rd.ops.t.f, rd.ops.t.g, rd.tensor([1.0, 2.0], dtype=rd.float64)
        leaf, pair, low = x.clone().requires_grad_(), TwoTensor(x, x.clone()), x.bfloat16()

        def gradient():
            y = f(leaf) * 3
            y.sum().backward()
            return y, leaf.grad

        def in_region(region, *args):
            with region:
                return f(*args)

        yield "f", lambda: f(x)
        yield "f with n", lambda: f(x, 5)
        yield "g", lambda: g(leaf)
        yield "gradient", gradient
        yield "meta", lambda: f(x.to("meta"))
        yield "pair", lambda: f(pair)
        yield "no_grad", lambda: in_region(rd.no_grad(), leaf)
        yield "inference", lambda: in_region(rd.inference_mode(), x)
        yield "mode", lambda: in_region(Spy(self.world), leaf)
        yield "autocast", lambda: in_region(rd.autocast("cpu"), low)
        yield "keys", lambda: in_region(include(keyset(*self.keys)), leaf)
        yield "mul at keys", lambda: in_region(include(keyset(*self.keys)), x * x)


def registering(actions):
    def prepare():
        def run_actions(world):
            with Registry(world) as registry:
                for what, argument in [("nothing", None), *actions]:
                    world.lines.append(f"{what} {argument}")
                    try:
                        registry.act(what, argument)
                    except Exception as error:
                        world.say("raised", error)
                    for name, called in registry.calls():
                        try:
                            world.describe(name, called())
                        except Exception as error:
                            world.say(f"{name} raised", error)

        return run_actions

    return prepare


@given(st.lists(ACTIONS, min_size=1, max_size=4))
def test_each_registration_holds_from_the_next_call_on(actions):
    assert_same({str(actions): registering(actions)})


# What is dropped, and what survives -----------------------------------------------------------------------------------


def code_of(op):
    """All code of an operator, {(facts, keys): function}: equal where each function is the very same."""
    return {(facts, keys): made for facts, table in op.tables.items() for keys, made in table.items()}


@pytest.fixture
def operators():
    """Two operators with code, one of which the tests change."""
    with specialize("strict"):
        lib = Library("t", "FRAGMENT")
        for name in ("changed", "other"):
            lib.define(f"{name}(Tensor x) -> Tensor")
            lib.impl(name, lambda x: x.detach() + 1, "CPU")
        changed, other = rd.ops.t.changed.default, rd.ops.t.other.default
        changed(rd.ones(2)), other(rd.ones(2)), rd.ones(2) + 1
        yield lib, changed, other


CHANGES_OF_ONE = {
    "a kernel at another key": lambda lib, op: lib.impl(op, lambda x: x, "Meta"),
    "a kernel at its key": lambda lib, op: Library("t", "IMPL").impl(op, lambda x: x, "CPU", allow_override=True),
    "a kernel at an alias key": lambda lib, op: lib.impl(op, lambda x: x, "CompositeExplicitAutograd"),
    "a derivative": lambda lib, op: rd.library.register_autograd(op, lambda ctx, grad: grad, lib=lib),
    "an autocast policy": lambda lib, op: register_policy(op, "cpu", fp32),
    "a rule": lambda lib, op: TORCH_DISPATCH.add((op, TwoTensor), lambda *args: None, "here"),
}


@pytest.mark.parametrize("change", CHANGES_OF_ONE.values(), ids=CHANGES_OF_ONE)
def test_code_of_other_operators_survives(operators, change):
    lib, changed, other = operators
    before, addition = code_of(other), code_of(aten.add.Tensor)
    assert code_of(changed) and before and addition
    change(lib, changed)
    assert code_of(other) == before and code_of(aten.add.Tensor) == addition
    other(rd.ones(2)), rd.ones(2) + 1
    assert code_of(other) == before and code_of(aten.add.Tensor) == addition


def test_the_code_of_the_operator_itself_goes(operators):
    lib, changed, _ = operators
    lib.impl(changed, lambda x: x.detach() * 10, "Autograd")
    assert not code_of(changed)
    assert changed(rd.ones(2)).tolist() == [10, 10]


def test_a_fallback_at_a_key_that_no_call_has_met_drops_nothing(operators):
    _, changed, other = operators
    before = code_of(changed), code_of(other)
    key = define_key("Unmet", above="Python")
    lib = Library("_", "IMPL")
    lib.fallback(fallthrough_kernel, key)
    assert (code_of(changed), code_of(other)) == before
    lib._destroy()
    assert (code_of(changed), code_of(other)) == before


def test_a_fallback_drops_the_code_of_calls_that_have_met_its_key(operators):
    _, changed, other = operators
    seen, x = [], rd.ones(2)
    key = define_key("Met", above="Python")
    lib = Library("_", "IMPL")
    lib.fallback(fallthrough_kernel, key)
    with include(key.bits):
        changed(x)
    plain = {where: code for where, code in code_of(changed).items() if not where[1] & key.bits}
    assert len(plain) == 1 and len(code_of(changed)) == 2
    lib._destroy()
    assert code_of(changed) == plain

    def fallback(keyset, op, *args, **kwargs):
        seen.append(str(op))
        return op.redispatch(keyset & below(key), *args, **kwargs)

    lib = Library("_", "IMPL")
    lib.fallback(fallback, key, with_keyset=True)
    with include(key.bits):
        changed(x)
    assert "t.changed.default" in seen and plain.items() <= code_of(changed).items()


def test_a_key_whose_bit_means_another_one_later_is_no_trap():
    """The bit of a key that was taken back is given out again."""
    x = rd.ones(2)
    with specialize("strict"):
        seen = []
        for number in range(3):
            key = define_key("Again", above="Python")
            lib = Library("_", "IMPL")

            def fallback(keyset, op, *args, number=number, key=key):
                seen.append(number)
                return op.redispatch(keyset & below(key), *args)

            lib.fallback(fallback, key, with_keyset=True)
            with include(key.bits):
                aten.neg.default(x)
            undefine(key)
        assert seen == [0, 1, 2]


def test_an_operator_that_is_defined_again_is_another_one():
    with specialize("strict"):
        for number in (1, 2):
            lib = Library("t", "FRAGMENT")
            lib.define("again(Tensor x) -> Tensor")
            lib.define("outer(Tensor x) -> Tensor")
            lib.impl("again", lambda x, number=number: x.detach() + number, "CPU")
            lib.impl("outer", lambda x: rd.ops.t.again(x), "CompositeImplicitAutograd")
            assert rd.ops.t.outer(rd.zeros(1)).tolist() == [number]
            lib._destroy()


def test_a_custom_operator_can_be_given_more_while_it_is_used():
    def answers():
        @custom_op("t::grows", mutates_args=())
        def grows(x: rd.Tensor) -> rd.Tensor:
            return x.detach() * 2

        found = []

        def ask():
            x = rd.ones(2, requires_grad=True)
            for call in (
                lambda: grows(x).requires_grad,
                lambda: grows(rd.ones(2, device="meta")).shape,
                lambda: grow_back(x),
            ):
                try:
                    found.append(str(call()))
                except Exception as error:
                    found.append(f"{type(error).__name__}: {error}".splitlines()[0])

        def grow_back(x):
            grows(x).sum().backward()
            return x.grad

        ask()
        grows.register_fake(lambda x: rd.empty_like(x))
        ask()
        grows.register_autograd(lambda ctx, grad: grad * 7)
        ask()
        with grows.set_kernel_enabled("cpu", False):
            ask()
        grows._lib._destroy()
        return found

    with specialize(False):
        boxed = answers()
    with specialize("strict"):
        assert answers() == boxed


def test_switching_drops_all_code_and_changes_no_result():
    x = rd.ones(2, requires_grad=True)
    results = []
    for value in (True, False, "strict", False, True):
        with specialize(value):
            for _ in range(4):  # the first calls run boxed
                result = (x * 2 + 1).tolist()
            results.append(result)
            assert bool(code_of(aten.mul.Tensor)) is bool(value)
    assert results == [[3.0, 3.0]] * 5
    with pytest.raises(ValueError, match="config.specialize must be True, False or 'strict', not 'maybe'"):
        rd.config.specialize = "maybe"
