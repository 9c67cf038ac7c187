"""Fake tensors beside the operators that they run: the cache, real tensors beside them, files, compilations."""

import copy
import io
import pickle
from unittest.mock import patch

import pytest

import redispatch as rd
from redispatch._functorch import config
from redispatch._guards import TracingContext, detect_fake_mode, tracing
from redispatch._subclasses.fake_tensor import (
    FakeTensor,
    FakeTensorMode,
    MetadataMismatchError,
    _BypassDispatchCache,
    _CacheKeyState,
    disable_fake_tensor_cache,
    get_plain_tensors,
    unset_fake_temporarily,
)
from redispatch._subclasses.fake_utils import try_convert_fake_to_real
from redispatch.fx.experimental.proxy_tensor import make_fx
from redispatch.fx.experimental.symbolic_shapes import ShapeEnv, statically_known_true
from redispatch.fx.passes.fake_tensor_prop import FakeTensorProp
from redispatch.subclasses import TwoTensor


@pytest.fixture(autouse=True)
def _an_empty_cache():
    FakeTensorMode.cache_clear()
    yield
    FakeTensorMode.cache_clear()


# The cache ------------------------------------------------------------------------------------------------------------


def test_the_cache_says_what_it_did():
    with FakeTensorMode() as mode:
        x, y = rd.ones(3, 4), rd.ones(3, 4)
        mode.cache_clear()
        x + y
        x + y
        x.unsqueeze_(0)
        rd._efficientzerotensor(3)
        rd._efficientzerotensor(3)
        found = mode.cache_info()
    assert (found.hits, found.misses) == (1, 1)
    assert found.bypasses == {"inplace view": 1, "dispatch_key_set mismatch": 2} and found.size == 2
    (x + y) if x.shape == y.shape else None
    y + y  # outside of the region, too
    assert mode.cache_info().hits == 2


def test_a_key_tells_apart_what_decides_on_the_result():
    mode, state, add = FakeTensorMode(), _CacheKeyState(), rd.ops.aten.add.Tensor
    with rd.inference_mode():
        old = rd.ones(4, 2)
    with mode:
        x = rd.ones(4, 2)
        others = [
            rd.ones(2, 4).t(),
            rd.ones(4, 3),
            rd.ones(4, 2, dtype=rd.float64),
            rd.ones(4, 2, device="cuda"),
            rd.ones(9)[1:].view(4, 2),
            rd.ones(4, 2, requires_grad=True),
            mode.from_tensor(old),
            1,
            1.0,
            True,
        ]
        keys = [mode._cache_key(state, add, [one], {}) for one in (x, *others)]
        assert len(set(keys)) == len(keys) and mode._cache_key(state, add, [rd.ones(4, 2)], {}) == keys[0]
        with rd.inference_mode():
            assert mode._cache_key(state, add, [x], {}) != keys[0]
        with pytest.raises(_BypassDispatchCache, match="constant attribute"):
            mode._cache_key(state, add, [rd.tensor(1.0)], {})
        assert rd._C._set_conj(z := rd.ones(2, dtype=rd.complex64), True) is None and z.is_conj()


@pytest.mark.filterwarnings("ignore:.*Overriding a previously registered kernel")  # once in a process
def test_a_kernel_that_comes_later_is_asked():
    with FakeTensorMode():
        x = rd.ones(2)
        assert x.erf().shape == (2,)
        with rd.library._scoped_library("aten", "IMPL") as library:
            library.impl("erf", lambda self: self.new_empty(5), "Meta", allow_override=False)
            assert x.erf().shape == (5,)
        assert x.erf().shape == (2,)


# Constants, devices, files --------------------------------------------------------------------------------------------


def test_numbers_alone_are_constants_and_go_to_devices_as_fakes():
    with FakeTensorMode():
        assert rd.div(7, 2, rounding_mode="trunc").item() == 3
        there = rd.tensor([3.0, 4.0], device="cuda")
        assert isinstance(there, FakeTensor) and there.device == rd.device("cuda:0")


def test_lazy_bits_are_seen_on_fakes():
    mode, z = FakeTensorMode(), rd.ones(3, dtype=rd.complex64).conj()
    fake = mode.from_tensor(z)
    with mode:
        for _ in range(2):
            assert fake.is_conj() and not fake.conj().is_conj() and not fake.resolve_conj().is_conj()
            assert not (fake + 1).is_conj() and rd._efficientzerotensor(3)._is_zerotensor()


def test_fakes_may_not_be_on_the_meta_device_where_that_is_said():
    with patch.object(config, "fake_tensor_allow_meta", False), FakeTensorMode():
        assert rd.ones(2).device.type == "cpu"
        with pytest.raises(AssertionError, match="must not be 'meta' when allow_meta is False"):
            rd.ones(2, device="meta")


def test_what_is_loaded_under_the_mode_is_fake():
    file, x = io.BytesIO(), rd.ones(2)
    rd.save({"x": x, "p": rd.nn.Parameter(x)}, file)
    text = pickle.dumps(x)
    with FakeTensorMode() as mode:
        file.seek(0)
        loaded = rd.load(file)
        file.seek(0)
        there = rd.load(file, map_location="cuda")
        assert all(one.fake_mode is mode for one in (*loaded.values(), *there.values()))
        assert loaded["x"].device.type == "cpu" and there["p"].device.type == "cuda" and there["p"].requires_grad
        assert pickle.loads(text).device.type == "meta"  # as in PyTorch
        assert type(copy.deepcopy(x)) is rd.Tensor
        with unset_fake_temporarily():
            assert pickle.loads(text).tolist() == [1, 1]


def test_fakes_of_real_memory_become_real_again():
    mode, x = FakeTensorMode(), rd.arange(6.0)
    fake = mode.from_tensor(x)
    assert try_convert_fake_to_real([fake[2:4], 1])[0].tolist() == [2, 3]
    assert try_convert_fake_to_real([fake + 1])[0].shape == (6,)
    assert isinstance(try_convert_fake_to_real([fake + 1])[0], FakeTensor)


def test_a_mode_knows_its_own_and_what_a_wrapper_is_made_of():
    mode, x = FakeTensorMode(), rd.ones(2)
    fake = FakeTensor.from_tensor(x, mode)
    assert mode.is_our_fake(fake) and not mode.is_our_fake(x) and not FakeTensorMode().is_our_fake(fake)
    found: list = []
    assert get_plain_tensors(TwoTensor(TwoTensor(x, x), TwoTensor(x, x)), out=found) is found and len(found) == 4
    with disable_fake_tensor_cache(mode):
        fake + fake
        fake + fake
    assert mode.cache_info().hits == mode.cache_info().misses == 0


# Compilations, and graphs run anew ------------------------------------------------------------------------------------


def test_a_compilation_has_a_fake_mode():
    mode, other = FakeTensorMode(), FakeTensorMode()
    with pytest.raises(RuntimeError, match="within an ongoing trace"):
        TracingContext.get()
    with tracing(TracingContext(mode)) as context, other:
        assert detect_fake_mode() is mode and TracingContext.get() is context
    assert detect_fake_mode() is None is TracingContext.try_get()


def test_a_graph_that_runs_anew_on_fakes_keeps_what_it_said_of_elements():
    mode = FakeTensorMode(shape_env=ShapeEnv())
    with mode:
        x = rd.ones(5)
        graph = make_fx(lambda x: x.nonzero())(x)
    (node,) = graph.graph.find_nodes(op="call_function", target=rd.ops.aten.nonzero.default)
    former = node.meta["val"].shape[0]
    FakeTensorProp(graph, mode).propagate(x)
    assert node.meta["val"].shape[0] is not former and statically_known_true(node.meta["val"].shape[0] == former)


# Real tensors beside fakes --------------------------------------------------------------------------------------------


def test_what_depends_on_elements_has_the_value_that_real_tensors_give():
    with patch.object(config, "fake_tensor_propagate_real_tensors", True):
        mode = FakeTensorMode(shape_env=ShapeEnv())
    x = rd.tensor([1.0, 0.0, 3.0, 4.0])
    fake = mode.from_tensor(x)
    with mode:
        found = fake.nonzero()
        assert str(found.shape[0]) == "u0" and found.shape[0] > 2 and not found.shape[0] == 4
        assert [str(one) for one in mode.shape_env.guards] == ["u0 > 2", "u0 != 4"]
        assert fake[2].item() > 2.5 and bool(fake.sum() > 7)
        view = fake[1:]
        fake.add_(1)
        assert view.real_tensor.tolist() == [1, 4, 5] and x.tolist() == [1, 0, 3, 4]
        other = FakeTensorMode(shape_env=mode.shape_env).from_tensor(x)
        with pytest.raises(AssertionError, match="Mixing fake modes"):
            mode.from_tensor(other)


def test_a_fake_that_real_tensors_contradict_is_refused():
    with patch.object(config, "fake_tensor_propagate_real_tensors", True):
        mode = FakeTensorMode()

    @rd.library.custom_op("lesson::wrong_fake", mutates_args=())
    def wrong_fake(x: rd.Tensor) -> rd.Tensor:
        return x.clone()

    wrong_fake.register_fake(lambda x: x.new_empty(7))
    with mode, pytest.raises(MetadataMismatchError, match="metadata mismatch for lesson.wrong_fake.default"):
        wrong_fake(mode.from_tensor(rd.ones(2)))
