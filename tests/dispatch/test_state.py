"""The dispatch state: regions, threads and tasks, and what is remembered of it."""

import asyncio
import random
import threading
from contextlib import ExitStack, nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch.dispatch import (
    DEFAULT,
    STATE,
    DispatchKey,
    Setting,
    State,
    TorchDispatchMode,
    describe,
    exclude,
    force,
    has,
    include,
    keyset,
    within,
    without,
)
from redispatch.dispatch.core.keyset import FUNCTIONALITY_MASK
from redispatch.dispatch.specialiser.site import UNKNOWN, Memo

from ..seeing import Seen, SeenFunctions
from .fakes import CPU_KEYS, Fake, operator


def no_grad():
    return Setting(grad_enabled=False)


def grad_enabled():
    return STATE.get().grad_enabled


def test_a_state_cannot_be_changed():
    with pytest.raises(AttributeError, match=r"use replace\(grad_enabled=...\)"):
        STATE.get().grad_enabled = False
    with pytest.raises(AttributeError, match="immutable"):
        del STATE.get().grad_enabled
    with pytest.raises(AttributeError):
        STATE.get().another = 1
    assert STATE.get() == DEFAULT


def test_replace_gives_another_state_and_knows_its_fields():
    changed = DEFAULT.replace(grad_enabled=False)
    assert (changed.grad_enabled, DEFAULT.grad_enabled) == (False, True)
    assert changed != DEFAULT and changed.replace(grad_enabled=True) == DEFAULT
    assert repr(changed) == "State(grad_enabled=False)" and repr(DEFAULT) == "State()"
    with pytest.raises(TypeError, match="State has no field colour; it has included, excluded, modes"):
        DEFAULT.replace(colour="red")
    assert DEFAULT != "another thing"


def test_the_default_state_is_pytorchs():
    assert describe(DEFAULT.included) == "DispatchKeySet(BackendSelect, ADInplaceOrView)"
    assert describe(DEFAULT.excluded) == (
        "DispatchKeySet(AutocastCPU, AutocastMTIA, AutocastMAIA, AutocastXPU, AutocastIPU, AutocastHPU, AutocastXLA, "
        "AutocastMPS, AutocastCUDA, AutocastPrivateUse1)"
    )


@given(st.lists(st.sampled_from([key for key in DispatchKey if key.bits]), max_size=4))
def test_excluding_remembers_what_it_answered(keys):
    bits = keyset(*keys)
    state = DEFAULT.replace()
    excluded = state.excluding(bits)
    assert excluded is state.excluding(bits) or excluded is state
    assert excluded.excluded == DEFAULT.excluded | bits & FUNCTIONALITY_MASK
    assert excluded.replace(excluded=DEFAULT.excluded) == DEFAULT
    assert excluded.excluding(bits) is excluded
    assert excluded not in excluded.memo.values()  # a cycle, which only the garbage collector would free


def test_what_is_excluded_wins_over_what_is_included_and_never_takes_a_backend():
    seen = []
    op = operator(
        "t::f(Tensor x) -> ()", CPU=lambda x: seen.append("CPU"), Conjugate=lambda x: seen.append("Conjugate")
    )
    below_autograd = exclude(keyset("AutogradCPU"))
    with below_autograd:
        op(Fake())
        with include(keyset("Conjugate")):
            op(Fake())
            with exclude(keyset("Conjugate")):
                op(Fake())
    assert seen == ["CPU", "Conjugate", "CPU"]
    with force(0, keyset("AutogradCPU", "CPU")):
        assert (STATE.get().included, describe(STATE.get().excluded)) == (0, "DispatchKeySet()")
        with pytest.raises(NotImplementedError, match="no tensor arguments"):
            op(Fake())


def test_a_setting_puts_back_its_own_fields_and_those_alone():
    setting = no_grad()
    setting.__enter__()
    STATE.set(STATE.get().replace(inference=True))  # something else, that lasts
    setting.__exit__(None, None, None)
    assert (grad_enabled(), STATE.get().inference) == (True, True)
    STATE.set(DEFAULT)


def test_a_setting_gives_back_the_very_state_it_found_so_that_what_it_remembers_is_not_lost():
    state = STATE.get()
    with no_grad():
        with include(keyset("CPU")):
            pass
    assert STATE.get() is state


def test_a_setting_may_be_entered_again_inside_itself():
    setting = no_grad()
    with setting, Setting(grad_enabled=True):
        with setting:
            assert not grad_enabled()
        assert grad_enabled()
    assert STATE.get() == DEFAULT


def test_a_change_may_be_a_function_of_the_state():
    with Setting(included=lambda state: state.included | keyset("CPU")):
        assert has(STATE.get().included, DispatchKey.CPU)
    assert STATE.get() == DEFAULT


@pytest.mark.parametrize(
    "error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError, RecursionError, GeneratorExit]
)
def test_a_region_that_fails_is_left_all_the_same(error):
    with pytest.raises(error), no_grad(), within(DEFAULT.replace(inference=True)), include(keyset("CPU")):
        raise error
    assert STATE.get() is not None and STATE.get() == DEFAULT


# Decorators ---------------------------------------------------------------------------------------------------------


def test_a_decorated_function_runs_in_the_region_and_keeps_its_name():
    @no_grad()
    def f(n):
        """Says."""
        return grad_enabled() if n == 0 else f(n - 1)

    assert (f(0), f(3), grad_enabled()) == (False, False, True)
    assert (f.__name__, f.__doc__) == ("f", "Says.")


def test_a_decorated_class_is_warned_about_and_made_in_the_region():
    class Made:
        def __init__(self):
            self.seen = grad_enabled()

    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        assert no_grad()(Made) is Made
    assert (Made().seen, grad_enabled()) == (False, True)


def test_a_decorated_generator_does_not_leak_while_it_is_suspended():
    seen = []

    @no_grad()
    def steps():
        seen.append(grad_enabled())
        try:
            got = yield 1
            seen.append((got, grad_enabled()))
            yield 2
        except KeyError as error:
            seen.append((repr(error), grad_enabled()))
            yield 3
        finally:
            seen.append(("closed", grad_enabled()))
        return 4

    generator = steps()
    assert (next(generator), grad_enabled()) == (1, True)
    assert (generator.send("sent"), grad_enabled()) == (2, True)
    assert (generator.throw(KeyError("thrown")), grad_enabled()) == (3, True)
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == 4
    generator = steps()
    next(generator)
    generator.close()
    assert seen == [False, ("sent", False), ("KeyError('thrown')", False), ("closed", False), False, ("closed", False)]


def test_a_decorated_coroutine_runs_in_the_region_and_no_other_task_sees_it():
    @no_grad()
    async def inside():
        await asyncio.sleep(0)
        return grad_enabled()

    async def outside():
        task = asyncio.create_task(inside())
        seen = [grad_enabled()]
        await asyncio.sleep(0)
        seen.append(grad_enabled())
        return [*seen, await task, await inside(), grad_enabled()]

    assert asyncio.run(outside()) == [True, True, False, False, True]


# Threads and tasks --------------------------------------------------------------------------------------------------


def test_a_thread_starts_with_the_default_and_keeps_what_it_does_to_itself():
    seen = []

    def other():
        seen.append(STATE.get())
        STATE.set(STATE.get().replace(inference=True))

    with no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert STATE.get() == DEFAULT.replace(grad_enabled=False)
    assert seen == [DEFAULT]


class Nothing(TorchDispatchMode):
    """A mode that is told apart by its number."""

    def __init__(self, number):
        self.number = number


REGIONS = [
    (lambda n: no_grad(), {"grad_enabled": lambda old, region: False}),
    (lambda n: Setting(grad_enabled=True), {"grad_enabled": lambda old, region: True}),
    (lambda n: Setting(inference=True), {"inference": lambda old, region: True}),
    (lambda n: exclude(keyset("Conjugate")), {"excluded": lambda old, region: old | keyset("Conjugate")}),
    (lambda n: Nothing(n), {"modes": lambda old, region: (*old, region)}),
]


async def task(rng, depth, expected, problems, counts):
    """A random nest of regions, with pauses in which other tasks run; the state is compared after each step."""

    def check():
        counts[0] += 1
        state = STATE.get()
        problems.extend(field for field, value in expected.items() if getattr(state, field) != value)

    for number in range(rng.randint(1, 3)):
        check()
        make, changes = rng.choice(REGIONS)
        region = make(number)
        try:
            with region:
                inside = {f: changes[f](v, region) if f in changes else v for f, v in expected.items()}
                await asyncio.sleep(0)
                if depth and rng.random() < 0.3:  # a task of one's own starts with what holds here
                    child = asyncio.create_task(task(rng, depth - 1, inside, problems, counts))
                    await asyncio.sleep(0)
                    await child
                if depth:
                    await task(rng, depth - 1, inside, problems, counts)
                if rng.random() < 0.3:
                    raise KeyError("on purpose")
        except KeyError:
            pass
        check()
        await asyncio.sleep(0)
    check()


@pytest.mark.parametrize("count", [40, pytest.param(10_000, marks=pytest.mark.long)])
def test_tasks_never_see_each_others_state(count):
    """Five tasks each, with modes and settings. PyTorch answered 2,889 of 16,217 such questions wrong."""
    fields = ("grad_enabled", "inference", "excluded", "modes")
    problems, counts = [], [0]

    async def program(seed):
        rng = random.Random(seed)
        expected = {field: getattr(DEFAULT, field) for field in fields}
        await asyncio.gather(*(task(rng, 2, expected, problems, counts) for _ in range(5)))
        assert STATE.get() == DEFAULT

    for seed in range(count):
        asyncio.run(program(seed))
    assert problems == []
    assert counts[0] > 30 * count


@pytest.mark.parametrize("count", [100, pytest.param(5_000, marks=pytest.mark.long)])
def test_random_nests_of_regions_that_fail_leave_the_default_behind(count):
    for seed in range(count):
        rng = random.Random(seed)
        with ExitStack() as outer:
            outer.enter_context(pytest.raises(ZeroDivisionError))
            for number in range(rng.randint(1, 8)):
                outer.enter_context(rng.choice(REGIONS)[0](number))
            raise ZeroDivisionError
        assert STATE.get() == DEFAULT


# PyTorch's own names --------------------------------------------------------------------------------------------------


def test_pytorchs_guards_set_the_same_state():
    from redispatch import _C

    key, keys = _C.DispatchKey, _C.DispatchKeySet
    assert str(_C._dispatch_tls_local_include_set()) == "DispatchKeySet(BackendSelect, ADInplaceOrView)"
    excluded, included = _C._dispatch_tls_is_dispatch_key_excluded, _C._dispatch_tls_is_dispatch_key_included
    assert excluded(key.AutocastCPU) and not excluded(key.Python) and not excluded(key.Undefined)
    with _C._IncludeDispatchKeyGuard(key.Python):
        assert included(key.Python)
    with _C._ExcludeDispatchKeyGuard(keys(key.Python)):
        assert excluded(key.Python) and _C._dispatch_tls_local_exclude_set().has(key.Python)
    with _C._ForceDispatchKeyGuard(keys(key.Python), keys(key.Conjugate)):
        assert (str(_C._dispatch_tls_local_include_set()), excluded(key.AutocastCPU)) == (
            "DispatchKeySet(Python)",
            False,
        )
    with _C._AutoDispatchBelowAutograd():
        assert excluded(key.AutogradCPU) and excluded(key.AutogradOther) and not excluded(key.ADInplaceOrView)
    with _C._AutoDispatchBelowADInplaceOrView():
        assert excluded(key.AutogradCPU) and excluded(key.ADInplaceOrView)
    with _C._DisableTorchDispatch():
        assert excluded(key.Python) and excluded(key.PythonTLSSnapshot) and excluded(key.PreDispatch)
    with _C._PreserveDispatchKeyGuard():
        _C._dispatch_tls_set_dispatch_key_included(key.Python, True)
        _C._dispatch_tls_set_dispatch_key_excluded(key.AutogradCPU, True)
        assert included(key.Python) and excluded(key.AutogradCPU)
        _C._dispatch_tls_set_dispatch_key_included(key.Python, False)
        _C._dispatch_tls_set_dispatch_key_excluded(key.AutogradCPU, False)
        assert STATE.get() == DEFAULT
        _C._dispatch_tls_set_dispatch_key_excluded(key.Conjugate, True)
    assert STATE.get() == DEFAULT
    assert isinstance(STATE.get(), State)
    assert without(CPU_KEYS, keyset("CPU")) != CPU_KEYS


# A memo and its parts give the same answers, whichever was asked first ------------------------------------------------

PLAIN = st.sampled_from([1, 2, "a", 10**30])
ANY = PLAIN | st.sampled_from([(1, 1), (1, 2), ("a", "a", "a"), ((1, 1),)])


@st.composite
def memos(draw):
    """(facts to enter, facts to ask for, which of these only run time tells, places that may be alike)"""
    alike = draw(st.sets(st.sampled_from([0, 1, 2])))
    facts = st.tuples(*(PLAIN if place in alike else ANY for place in range(3)))
    return draw(st.lists(facts, max_size=12)), draw(facts), draw(st.tuples(*[st.booleans()] * 3)), alike


def copy_of(value):
    """An equal object, another one where that can be."""
    return int(str(value)) if type(value) is int else tuple([*value]) if type(value) is tuple else value


@given(memos())
def test_a_part_answers_as_the_whole_does(drawn):
    entered, asked, hidden, alike = drawn
    memo, late = Memo(100, alike), Memo(100, alike)
    known = tuple(UNKNOWN if unknown else fact for unknown, fact in zip(hidden, asked, strict=True))
    early = memo.part(known)
    for number, facts in enumerate(entered):
        memo[facts] = late[facts] = number + 1
    left = [fact for unknown, fact in zip(hidden, asked, strict=True) if unknown]
    for values in (left, [copy_of(value) for value in left], [left[0]] * len(left) if len(set(left)) == 1 else left):
        names = {f"x{i}": value for i, value in enumerate(values)}
        key = eval(memo.key_source(known, list(names)), {}, names)
        for whole, part in ((memo, early), (late, late.part(known))):
            assert part.get(key) == whole.get(asked)


def test_a_full_memo_starts_afresh_and_its_parts_with_it():
    memo = Memo(2)
    part = memo.part((UNKNOWN, 1))
    for number in range(3):
        memo[number, 1] = number + 1
    assert len(memo) == 1 and part.get(2) == 3 and part.get(0) is None
    memo.clear()
    assert not len(memo) and not part


# Operators in asyncio tasks that interleave inside modes, grad modes and autocast -------------------------------------

# Each does what it does alone.


REGIONS_OF_TASKS = {
    "nothing": nullcontext,
    "no_grad": rd.no_grad,
    "enable_grad": rd.enable_grad,
    "inference": rd.inference_mode,
    "autocast": lambda: rd.autocast("cpu", dtype=rd.bfloat16),
    "no autocast": lambda: rd.autocast("cpu", enabled=False),
    "mode": Seen,
    "function mode": SeenFunctions,
}


def observed(weight):
    """Observes a few calls in the state."""
    product = rd.mm(weight, weight)
    total = product.sum()
    return product.dtype, product.requires_grad, total.requires_grad, product.is_inference()


async def program(rng, weight, found, depth=3):
    """Nested regions; between two steps another task may run. Notes what is observed, and what each mode is told."""
    for _ in range(rng.randint(1, 2)):
        region = REGIONS_OF_TASKS[rng.choice(list(REGIONS_OF_TASKS))]()
        try:
            with region:
                await asyncio.sleep(0)
                found.append(observed(weight))
                if depth:
                    await program(rng, weight, found, depth - 1)
                await asyncio.sleep(0)
                found.append(observed(weight))
                if rng.random() < 0.2:
                    raise KeyError
        except KeyError:
            found.append("left by an error")
        if isinstance(region, Seen | SeenFunctions):
            found.append(tuple(region.names))
        await asyncio.sleep(0)
        found.append(observed(weight))


async def together(seeds, weight):
    """The notes of programs of several seeds, as tasks that run at the same time."""
    notes = [[] for _ in seeds]
    await asyncio.gather(
        *(program(random.Random(seed), weight, found) for seed, found in zip(seeds, notes, strict=True))
    )
    return notes


@pytest.mark.parametrize("start", [0, 100, 200])
def test_tasks_that_interleave_do_what_each_does_alone(start):
    weight = rd.ones(2, 2, requires_grad=True)
    seeds = range(start, start + 6)
    alone = [asyncio.run(together([seed], weight))[0] for seed in seeds]
    assert asyncio.run(together(seeds, weight)) == alone
    assert STATE.get() == DEFAULT and sum(map(len, alone)) > 100


def test_a_task_begins_with_what_holds_where_it_is_made_and_leaves_nothing_behind():
    weight = rd.ones(2, 2, requires_grad=True)

    async def inner():
        seen = [observed(weight)]
        with rd.enable_grad(), rd.autocast("cpu", enabled=False):
            await asyncio.sleep(0)
            seen.append(observed(weight))
        return seen

    async def outer():
        with rd.no_grad(), rd.autocast("cpu", dtype=rd.bfloat16), Seen() as mode:
            task = asyncio.create_task(inner())
        seen = [observed(weight), *await task]
        return seen, mode.names.count("mm")

    seen, heard = asyncio.run(outer())
    assert seen == [
        (rd.float32, True, True, False),
        (rd.bfloat16, False, False, False),
        (rd.float32, True, True, False),
    ]
    assert heard == 2
