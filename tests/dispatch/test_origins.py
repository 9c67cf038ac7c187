"""Where tensors were made, as errors tell it: `config.debug_origins`."""

import gc
import inspect
import weakref

import pytest

import redispatch as rd
from redispatch.dispatch.config import config
from redispatch.dispatch.inspection import origins
from redispatch.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def noted():
    config.debug_origins = True
    yield
    config.debug_origins = False


def here(offset: int = 0) -> str:
    """The line that calls this, or one `offset` lines below."""
    frame = inspect.currentframe().f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno + offset}"


def message(call) -> str:
    with pytest.raises(RuntimeError) as caught:
        call()
    return str(caught.value)


def test_a_written_inference_tensor_says_where_it_was_made(noted):
    with rd.inference_mode():
        x, place = rd.ones(3), here()
    told = message(lambda: x.add_(1))
    assert told.startswith("Inplace update to inference tensor outside InferenceMode is not allowed.")
    assert told.endswith(f"the tensor was made at       {place}, by aten.ones.default")


def test_every_error_about_an_inference_tensor_says_where_it_was_made(noted):
    with rd.inference_mode():
        x, place = rd.ones(3) * 2, here()
    w = rd.ones(3, requires_grad=True)
    for call in (lambda: w * x, lambda: x.requires_grad_(), lambda: x._version):
        assert f"{place}, by aten.mul.Tensor" in message(call)


def test_a_view_says_where_it_and_its_base_were_made(noted):
    base, base_place = rd.ones(4, requires_grad=True).clone(), here()
    with rd.no_grad():
        view, place = base[1:], here()
    told = message(lambda: view.mul_(2))
    assert told.startswith("A view was created in no_grad mode and is being modified inplace with grad mode enabled.")
    assert f"the view was made at         {place}, by aten.slice.Tensor" in told
    assert f"the base was made at         {base_place}, by aten.clone.default" in told


def test_one_of_several_views_says_where_it_was_made(noted):
    base = rd.ones(4, requires_grad=True).clone()
    (first, _), place = base.chunk(2), here()
    assert f"the view was made at         {place}, by aten.split.Tensor" in message(lambda: first.mul_(2))


def test_each_of_several_results_is_forgotten_when_it_goes(noted):
    first, second = rd.ones(4).chunk(2)
    keys = id(first), id(second)
    del first, second
    gc.collect()
    assert not any(key in origins._ORIGINS and origins._ORIGINS[key][0]() is None for key in keys)


def test_a_leaf_says_where_it_was_made(noted):
    leaf, place = rd.zeros(2), here()
    leaf.requires_grad_()
    assert f"the leaf was made at         {place}, by aten.zeros.default" in message(lambda: leaf.add_(1))
    told = message(lambda: leaf[0].add_(1))
    assert told.startswith("a view of a leaf Variable that requires grad is being used in an in-place operation.")
    assert f"the view was made at         {here(-2)}, by aten.select.int" in told


def test_what_returns_its_argument_did_not_make_it(noted):
    x, place = rd.ones(2), here()
    x.add_(1)
    rd.add(x, 1, out=x)
    assert origins.origin_of(x).place == place


def test_the_line_is_that_of_the_program_in_modes_and_nested_operators(noted):
    class Double(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})) * 2  # here

    lines, first = inspect.getsourcelines(Double)
    inside = first + next(i for i, line in enumerate(lines) if "# here" in line)
    with Double():
        x = rd.ones(2)
    assert origins.origin_of(x).place == f"{__file__}:{inside}"
    y, place = rd.nn.functional.linear(rd.ones(1, 2), rd.ones(3, 2)), here()
    assert origins.origin_of(y) == origins.Origin(rd.ops.aten.mm.default, place)


@pytest.mark.parametrize("how", [True, False, "strict"])
def test_values_and_gradients_are_the_same_while_origins_are_noted(noted, how):
    before = config.specialize
    config.specialize = how
    try:
        w = rd.ones(3, requires_grad=True)
        (w.exp() * w[1:].sum()).sum().backward()
        assert origins.origin_of(w.grad) is not None or how is False
    finally:
        config.specialize = before
    config.debug_origins = False
    v = rd.ones(3, requires_grad=True)
    (v.exp() * v[1:].sum()).sum().backward()
    assert w.grad.tolist() == v.grad.tolist()


def test_origins_keep_no_tensor_alive(noted):
    x = rd.ones(3)
    gone, key = weakref.ref(x), id(x)
    del x
    gc.collect()
    assert gone() is None and (key not in origins._ORIGINS or origins._ORIGINS[key][0]() is not None)


def test_while_they_are_off_nothing_is_noted_and_errors_say_how_to_turn_them_on():
    with rd.inference_mode():
        x = rd.ones(3)
    assert origins.origin_of(x) is None
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor") as caught:
        x.add_(1)
    assert str(caught.value).endswith("See https://github.com/pytorch/rfcs/pull/17 for more details.")
    assert caught.value.__notes__ == [
        "To be told where it was made, set redispatch.config.debug_origins = True before."
    ]


def test_turning_them_off_forgets_them_and_brings_specialised_code_back(noted):
    x = rd.ones(3)
    config.debug_origins = False
    assert origins.origin_of(x) is None and not origins._ORIGINS
    if config.specialize:
        for _ in range(3):
            x + x
        table = rd.ops.aten.add.Tensor.table(("T", "T", "D"))
        assert all(hasattr(code, "source") for code in table.values()) and table


def test_the_switch_takes_truth_values_only():
    with pytest.raises(ValueError, match="config.debug_origins must be True or False, not 'yes'"):
        config.debug_origins = "yes"
    assert "debug_origins=False" in repr(config)
