"""Parts of the library are swapped for parts of students', on every path, in one task, and come back."""

import asyncio
import gc
import inspect
import random
import re
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

import redispatch as rd
from redispatch._functorch.aot_autograd import aot_function
from redispatch._functorch.partitioners import min_cut_rematerialization_partition
from redispatch.dispatch import DEFAULT, STATE, explain, operator_named, parse_schema, trace
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.modes import FakeTensorMode
from redispatch.utils._python_dispatch import TorchDispatchMode

from . import students

POINTS = rd.swap.points()
ROOT = Path(__file__).parents[2]


def student(point):
    return getattr(students, point.replace(".", "_"))


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Plain(rd.Tensor):
    pass


class Wrapped(rd.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return rd.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        bare = [one.inner if isinstance(one, Wrapped) else one for one in args]
        return Wrapped(func(*bare, **(kwargs or {})))


def training_step():
    rd.manual_seed(0)
    model = rd.nn.Sequential(rd.nn.Linear(4, 8), rd.nn.ReLU(), rd.nn.Linear(8, 2))
    optimizer = rd.optim.SGD(model.parameters(), lr=0.1)
    loss = rd.nn.functional.cross_entropy(model(rd.randn(3, 4)), rd.tensor([0, 1, 1]))
    loss.backward()
    optimizer.step()
    return [parameter.tolist() for parameter in model.parameters()]


def per_example_gradients():
    rd.manual_seed(1)
    loss = lambda w, x: (w * x).sin().sum()
    return rd.func.vmap(rd.func.grad(loss), (None, 0))(rd.randn(4), rd.randn(3, 4)).tolist()


def views_and_writes():
    x = rd.ones(2, 3, requires_grad=True)
    y = x * 2
    y[0].mul_(3)
    saved = (y.exp() * y).sum()
    saved.backward()
    return x.grad.tolist(), y._version, y[0]._base is y


def around_the_dispatcher():
    """Modes, subclasses, autocast, functionalize, conjugates, fakes, joint graphs: the layers a step does not meet."""
    found = []
    with Passing():
        found.append((rd.ones(2) + 1).tolist())
    found.append((rd.ones(2).as_subclass(Plain) + 1).tolist())
    found.append((Wrapped(rd.ones(2)) + Wrapped(rd.ones(2))).inner.tolist())
    with rd.autocast("cpu", dtype=rd.bfloat16):
        found.append((rd.ones(2, 2) @ rd.ones(2, 2)).dtype)
    found.append(str(make_fx(rd.func.functionalize(lambda x: x.clone().add_(1)))(rd.ones(2)).code))
    found.append((rd.ones(2, dtype=rd.complex64).mul(1j).conj() * 2).tolist())
    with FakeTensorMode():
        found.append((rd.ones(2, 3) @ rd.ones(3, 4)).shape)
    x = rd.ones(3, requires_grad=True)
    joint = aot_function(
        lambda x: x.sin().exp().sum(), lambda g, i: g, partition_fn=min_cut_rematerialization_partition
    )
    joint(x).backward()
    found.append(x.grad.tolist())
    found.append(str(parse_schema("ours::f.of(Tensor x, int[] sizes, *, bool? late=None) -> Tensor")))
    found.append(rd.ops.aten.add.Tensor(rd.ones(2), rd.ones(2), alpha=2).tolist())
    return found


PROGRAMS = (training_step, per_example_gradients, views_and_writes, around_the_dispatcher)
EXPECTED = [program() for program in PROGRAMS]


@pytest.mark.parametrize("point", POINTS)
def test_a_part_of_students_size_goes_through_all_of_it(point):
    yours, calls = student(point), []
    assert len(inspect.getsource(yours).splitlines()) <= 100

    def counted(*args, **kwargs):
        calls.append(point)
        return yours(*args, **kwargs)

    with rd.swap(point, counted):
        assert [program() for program in PROGRAMS] == EXPECTED
        count = len(calls)
        with trace() as hops:
            (rd.ones(2, requires_grad=True)[:1] * 2).sum().backward()
        explained = explain("aten::mul.Tensor", rd.ones(2, requires_grad=True), places=True)
    assert count
    assert STATE.get() == DEFAULT and not STATE.get().swaps
    if POINTS[point].said:
        assert f"{point} by counted" in str(hops)
    if point in ("autograd.layer", "views"):
        assert "counted in the place of" in str(hops) and "counted" in {hop.code.co_name for hop in hops if hop.code}
    assert ("counted in the place of autograd" in explained) is (point == "autograd.layer")


def test_the_way_with_and_without_specialised_code_is_the_same():
    for specialize in (False, True):
        calls = []

        def engine(*args, **kwargs):
            calls.append(1)  # noqa: B023  (called in the loop)
            return students.autograd_engine(*args, **kwargs)

        before = rd.config.specialize
        rd.config.specialize = specialize
        try:
            x = rd.ones(2, requires_grad=True)
            for _ in range(5):  # so that code is made
                (x * 2).sum().backward()
            with rd.swap("autograd.engine", engine), rd.swap("keyset", students.keyset):
                (x * 2).sum().backward()
        finally:
            rd.config.specialize = before
        assert len(calls) == 1 and x.grad.tolist() == [12.0, 12.0]


def test_every_call_site_asks_yours():
    """Places that remember code, in kernels and in public functions, remember none of it here."""
    x = rd.ones(3, requires_grad=True)

    def calls():
        return x[0], x[1:], x + x, rd.add(x, other=x), rd.ops.aten.add.Tensor(x, x), x.sum(), rd.cat([x, x])

    for _ in range(5):
        calls()
    seen = []

    def keyset(schema, stack):
        seen.append(schema.name.removeprefix("aten::"))
        return students.keyset(schema, stack)

    with rd.swap("keyset", keyset):
        calls()
    assert seen == ["select", "slice", "add", "add", "add", "sum", "cat"]


def test_another_rule_is_another_library():
    def oldest_wins(registered, fallbacks, key):
        turned = {at: kernels[::-1] for at, kernels in registered.items()}
        return students.precedence(turned, fallbacks, key)

    with rd.library._scoped_library("aten", "IMPL") as lib:
        lib.impl("neg", lambda x: x.clone(), "CPU", allow_override=True)
        assert rd.ones(1).neg().item() == 1
        with rd.swap("precedence", oldest_wins):
            assert rd.ones(1).neg().item() == -1
            assert "pointwise" in explain("aten::neg", "CPU")
        assert rd.ones(1).neg().item() == 1


def test_the_points_are_a_table_that_can_be_read():
    assert len(POINTS) >= 15
    for name, point in POINTS.items():
        file, line = point.place.split(":")
        assert re.match(r"\s*(async )?(@|def )", (ROOT / file).read_text().splitlines()[int(line) - 1]), name
        assert point.contract.endswith(".") and all((ROOT / one).is_file() for one in point.tests), name
        assert point.tests, name
    text = repr(POINTS)
    assert "autograd.engine(roots, gradients, *, retain_graph=False" in text and "dispatch/autograd/engine.py:" in text


def test_what_no_task_swaps_has_its_own_code():
    function = POINTS["keyset"].target.function
    own = function.__code__
    with rd.swap("keyset", students.keyset):
        assert function.__code__ is not own
    gc.collect()
    assert function.__code__ is own and own.co_filename.endswith("interpreter.py")


def test_it_comes_back_on_every_exit():
    @rd.swap("keyset", students.keyset)
    def decorated():
        return len(STATE.get().swaps)

    @rd.swap("keyset", students.keyset)
    def steps():
        yield len(STATE.get().swaps)
        yield len(STATE.get().swaps)

    assert decorated() == 1 and decorated() == 1
    running = steps()
    assert next(running) == 1 and STATE.get() == DEFAULT
    assert next(running) == 1 and STATE.get() == DEFAULT
    running.close()
    with pytest.raises(KeyError), rd.swap("keyset", students.keyset):
        raise KeyError
    assert STATE.get() == DEFAULT
    first, second, third = rd.swap("keyset", students.keyset), rd.no_grad(), rd.swap("binding", students.binding)
    for one in (first, second, third):
        one.__enter__()
    for one in (first, third):
        one.__exit__(None, None, None)
    assert not STATE.get().swaps and not STATE.get().grad_enabled
    second.__exit__(None, None, None)
    assert STATE.get() == DEFAULT and not STATE.get().swaps


def test_an_error_of_yours_ends_the_block_alone():
    def broken(schema, stack):
        raise ZeroDivisionError("yours")

    with pytest.raises(ZeroDivisionError, match="yours"), rd.swap("keyset", broken):
        rd.ones(1) + 1
    assert (rd.ones(1) + 1).item() == 2


def test_the_innermost_holds():
    def say(word):
        def keyset(schema, stack):
            words.append(word)
            return rd.swap.default("keyset")(schema, stack)

        return keyset

    words = []
    x = rd.ones(1)
    with rd.swap("keyset", say("outer")):
        with rd.swap("keyset", say("inner")):
            x.neg()
        x.neg()
    x.neg()
    assert words == ["inner", "outer"]


def test_other_threads_have_the_librarys():
    seen, x = [], rd.ones(1)

    def keyset(schema, stack):
        seen.append(threading.current_thread().name)
        return students.keyset(schema, stack)

    with rd.swap("keyset", keyset):
        thread = threading.Thread(target=x.neg, name="other")
        thread.start()
        thread.join()
        x.neg()
    assert seen == [threading.current_thread().name]


def test_a_hundred_tasks_that_swap_do_not_meet():
    """Nested and interleaved: after each step a task finds who it is, whatever the others do meanwhile."""
    draw, x = random.Random(0), rd.ones(2, requires_grad=True)
    wrong = []

    def named(name, point):
        def yours(*args, **kwargs):
            heard.get().append(name)
            return student(point)(*args, **kwargs)

        return yours

    from contextvars import ContextVar

    heard = ContextVar("heard")

    async def one(number):
        heard.set([])
        with ExitStack() as stack:
            expected = {}
            for depth in range(draw.randint(1, 4)):
                point = draw.choice(["keyset", "autograd.engine", "autograd.layer", "overloads"])
                name = f"{number}.{depth} {point}"
                stack.enter_context(rd.swap(point, named(name, point)))
                expected[point] = name
                await asyncio.sleep(0)
                heard.get().clear()
                rd.autograd.grad((x * x).sum(), x)
                if set(heard.get()) != set(expected.values()):
                    wrong.append((number, set(heard.get()), expected))
                await asyncio.sleep(0)
        heard.get().clear()
        rd.autograd.grad((x * x).sum(), x)
        wrong.extend(heard.get())

    async def all_of_them():
        await asyncio.gather(*map(one, range(100)))

    asyncio.run(all_of_them())
    gc.collect()
    assert not wrong
    assert all(POINTS[name].target.holders == 0 for name in POINTS)


def test_a_task_that_is_started_inside_keeps_it():
    seen = []

    def keyset(schema, stack):
        seen.append(schema.name)
        return students.keyset(schema, stack)

    async def outer():
        with rd.swap("keyset", keyset):
            task = asyncio.create_task(inner())
        assert (rd.ones(1) + 1).item() == 2 and not seen
        await task

    async def inner():
        await asyncio.sleep(0)
        rd.ones(1)

    asyncio.run(outer())
    assert seen == ["aten::ones"]


def test_code_that_others_make_meanwhile_is_made_of_the_librarys():
    """The specialiser reads the functions that it inlines, and one of these is swapped elsewhere."""
    op, made = operator_named("aten::add.Tensor"), {}
    keys = rd.ones(2, requires_grad=True)
    before = op.source(keys)
    inside, done = threading.Event(), threading.Event()

    def elsewhere():
        with rd.swap("autograd.layer", students.autograd_layer), rd.swap("interpreter", students.interpreter):
            made["inside"] = op.source(keys)
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    inside.wait(10)
    op.forget_entries()
    made["meanwhile"] = op.source(keys)
    done.set()
    thread.join()
    strip = lambda text: re.sub(r"\d+", "", text)
    assert strip(made["meanwhile"]) == strip(before)
    assert made["inside"].startswith("# aten.add.Tensor runs boxed: autograd.layer is autograd_layer of ")


def test_what_cannot_be_swapped_is_said_before():
    with pytest.raises(ValueError, match="named 'autograd.engin'; did you mean autograd.engine"):
        rd.swap("autograd.engin", students.autograd_engine)
    with pytest.raises(TypeError, match=r"is called as \(schema, stack\).*\n  to fix       give it these parameters"):
        rd.swap("keyset", lambda stack: 0)
    with pytest.raises(TypeError, match="expected a function"):
        rd.swap("keyset", 3)
