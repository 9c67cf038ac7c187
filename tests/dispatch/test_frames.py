"""Tracebacks show the user's frames and those of operators; the dispatcher's only where they are asked for."""

import traceback

import pytest

import redispatch as rd
from redispatch.utils._python_dispatch import TorchDispatchMode


class Log(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@pytest.fixture
def config():
    before = rd.config.full_tracebacks
    rd.config.full_tracebacks = False
    yield rd.config
    rd.config.full_tracebacks = before


def frames_of(call):
    """The (module, function) of each frame of what a call raises, below this one."""
    try:
        call()
    except Exception as error:
        walked = list(traceback.walk_tb(error.__traceback__))[1:]
        return [(frame.f_globals["__name__"], frame.f_code.co_name) for frame, _ in walked]
    raise AssertionError("it did not raise")


X = rd.ones(2, 3, requires_grad=True)
CALLS = {
    "function": lambda: rd.mm(X, X),
    "method": lambda: X.mm(X),
    "keyword": lambda: X.mm(mat2=X),
    "operator of Python": lambda: X @ X,
    "operator": lambda: rd.ops.aten.mm.default(X, X),
    "packet": lambda: rd.ops.aten.mm(X, X),
    "wrong arguments": lambda: X.mm(X, beta=1),
    "function that calls others": lambda: rd.nn.functional.linear(X, rd.ones(2, 2)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_dispatchers_frames_are_hidden_from_the_first_call_on(config, call):
    for _ in range(4):  # slow, then by lanes, then specialised
        names = frames_of(call)
        assert names[0][1] == "<lambda>"
        assert not [name for name, _ in names if name.startswith("redispatch.dispatch") or "specialised" in name]
        assert len(names) <= 8


def test_a_handlers_frame_stays(config):
    with Log():
        names = frames_of(lambda: rd.mm(X, X))
    assert (__name__, "__torch_dispatch__") in names and names[-1][0] == "redispatch.kernels.ops.linalg"


def test_all_frames_are_shown_where_they_are_asked_for(config):
    config.full_tracebacks = True
    names = {name for _ in range(4) for name, _ in frames_of(lambda: rd.mm(X, X))}
    assert any(name.startswith(("redispatch.dispatch", "redispatch.specialised")) for name in names)
    assert "full_tracebacks=True" in repr(config)


def test_an_interrupt_is_left_alone(config):
    class Interrupted(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as raised, Interrupted():
        rd.ones(2)
    assert len(raised.traceback) > 2
