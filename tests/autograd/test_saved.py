"""What nodes keep: versions, release, hooks on saving, and what it looks like from outside."""

import gc
import weakref

import pytest

import redispatch as rd
from redispatch.autograd import graph
from redispatch.testing import assert_close

from ..seeing import Seen


def leaf(*values):
    return rd.tensor(list(values), requires_grad=True)


def test_a_saved_input_that_was_written_is_an_error_that_names_its_maker():
    x = leaf(1.0, 2.0, 3.0)
    y = x + 0
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError) as error:
        z.backward()
    assert str(error.value) == (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [3]], which is output 0 of Add, is at version 1; expected version 0 instead. Hint: enable "
        "anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


def test_a_saved_result_that_was_written_is_an_error():
    z = leaf(1.0).exp()
    z.add_(1)
    with pytest.raises(RuntimeError, match="which is output 0 of Exp, is at version 1; expected version 0"):
        z.sum().backward()


def test_a_write_under_no_grad_is_noticed_too():
    x = leaf(1.0)
    y = x * x
    with rd.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_only_what_is_needed_is_saved():
    x, data = leaf(1.0, 2.0), rd.ones(2)
    node = (x * data).grad_fn
    assert node._saved_other is data
    assert node._saved_self is None  # it would serve the gradient of `data`, which nobody wants
    alive = weakref.ref(data)
    z = x + data
    del data, node
    assert alive() is None and z.grad_fn is not None


@pytest.mark.parametrize("saved_first", [False, True])
def test_a_saved_result_shares_the_storage_of_the_result(saved_first):
    y = rd.ones(3, requires_grad=True).exp()
    if saved_first:
        saved, own = y.grad_fn._saved_result.untyped_storage(), y.untyped_storage()
    else:
        own, saved = y.untyped_storage(), y.grad_fn._saved_result.untyped_storage()
    assert saved is own and y.grad_fn._saved_result.untyped_storage() is own


def test_saved_results_have_their_history_and_keep_nobody_alive():
    x = leaf(1.0)
    y = x.exp()
    saved = y.grad_fn._saved_result
    assert saved.grad_fn is y.grad_fn and saved is not y and saved.requires_grad
    gc.disable()
    try:
        node = weakref.ref(y.grad_fn)
        del y, saved
        assert node() is None
    finally:
        gc.enable()


def test_what_was_saved_is_let_go_after_backward():
    x, data = leaf(1.0), rd.ones(1)
    y = x * data
    alive = weakref.ref(data)
    y.backward()
    del data
    assert alive() is None
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already been freed"):
        _ = y.grad_fn._saved_other


def test_a_node_without_saved_tensors_may_run_again():
    x = leaf(1.0)
    y = x + 1
    y.backward()
    y.backward()
    assert x.grad.item() == 2


def test_hooks_pack_and_unpack_each_saved_tensor():
    log = []

    def pack(tensor):
        log.append(("pack", tensor is x))
        return tensor.tolist()

    def unpack(values):
        log.append("unpack")
        return rd.tensor(values)

    x = leaf(2.0, 3.0)
    with graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    y.sum().backward()
    assert log == [("pack", True), ("pack", True), "unpack", "unpack"]
    assert x.grad.tolist() == [4, 6]


def test_unpacked_tensors_have_the_history_of_the_packed_ones():
    x = leaf(2.0)
    with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = (x * 1) ** 3
    (first,) = rd.autograd.grad(y, x, create_graph=True)
    (second,) = rd.autograd.grad(first, x)
    assert (first.item(), second.item()) == (12, 12)


def test_a_pack_hook_must_not_write_its_input():
    x = leaf(2.0)
    with graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
            x * x


def test_hooks_may_be_forbidden():
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass


def test_a_saved_tensor_may_be_packed_afterwards():
    x = leaf(2.0)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), lambda values: rd.tensor(values) * 10)
    with pytest.raises(RuntimeError, match="whose hooks have already been set. Hint: only one pair"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    y.backward()
    assert x.grad.item() == 2 + 20


def test_a_pack_hook_gets_the_result_itself():
    kept = []
    with graph.saved_tensors_hooks(lambda t: kept.append(t) or len(kept) - 1, kept.__getitem__):
        y = leaf(2.0).exp()
    assert kept[0] is y
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    kept.clear()


def test_inference_tensors_cannot_be_saved():
    with rd.inference_mode():
        constant = rd.ones(1)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        leaf(1.0) * constant
    assert (leaf(1.0) + constant).requires_grad


def test_a_write_behind_the_librarys_back_can_be_reported():
    x = leaf(1.0)
    y = x * x
    graph.increment_version(x)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        y.backward()


def test_a_multi_grad_hook_waits_for_all_that_will_come():
    seen = []
    a, b = leaf(1.0), leaf(2.0)
    c, d = a * b, a * b
    graph.register_multi_grad_hook((a, b, c, d), lambda grads: seen.append([g is not None for g in grads]))
    c.backward(retain_graph=True)
    c.backward(inputs=(a,), retain_graph=True)
    assert seen == [[True, True, True, False], [True, False, True, False]]


def test_a_multi_grad_hook_may_want_the_first_only():
    seen = []
    a, b = leaf(1.0), leaf(2.0)
    handle = graph.register_multi_grad_hook((a, b), lambda g: seen.append(g.item()), mode="any")
    (a * b).backward()
    assert len(seen) == 1
    handle.remove()
    (a * b).backward()
    assert len(seen) == 1


def test_a_gradient_edge_stands_for_a_tensor():
    x = leaf(3.0)
    y = x * x
    edge = graph.get_gradient_edge(y)
    z = (y * 2).sum()
    assert rd.autograd.grad(z, edge, retain_graph=True)[0].item() == 2
    rd.autograd.backward(edge, rd.ones(1))
    assert x.grad.item() == 6


# Writing what was saved ---------------------------------------------------------------------------------------------


def test_what_was_saved_may_be_written_where_that_is_allowed():
    graph = rd.autograd.graph
    for write in (lambda b: b.sin_(), lambda b: b[:1].mul_(3), lambda b: rd.neg(b, out=b), lambda b: b.zero_()):
        with graph.allow_mutation_on_saved_tensors():
            a = leaf(1.0, 2.0)
            b = a.clone()
            first = (b**2).sum() + (b[1:] ** 2).sum()  # the whole is saved, and a view
            with rd.no_grad():
                write(b)
            second = (b * b.exp()).sum()  # saved as it is now
            with rd.no_grad():
                b.mul_(5)
            first.backward(retain_graph=True)
            assert a.grad.tolist() == [2, 8]
            second.backward()


def test_gradients_are_those_of_a_program_that_writes_nothing():
    with rd.autograd.graph.allow_mutation_on_saved_tensors():
        a = leaf(1.0)
        b = a.clone()
        total = b**2
        for _ in range(3):
            b.mul_(2)
            total = total + b**2
        total.backward()
    assert a.grad.item() == 2 * (1 + 4 + 16 + 64)


def test_copies_are_made_of_what_is_written_alone_and_shared():
    with rd.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a = leaf(1.0)
        b, c = a.clone(), a.clone()
        nodes = [(b * 1 * b).grad_fn, (b**2).grad_fn, (c**2).grad_fn]
        b.zero_()
        kept = [node._raw_saved_self for node in nodes[1:]]
        assert kept[0]._packed.tensor.item() == 1 and kept[0]._packed.tensor.data_ptr() != b.data_ptr()
        assert kept[1]._packed.tensor.data_ptr() == c.data_ptr()
        assert [len(of_one) for of_one in context.kept.values()] != []
        context.clear()
        assert not context.kept


def test_the_region_is_not_nested_and_not_left_before_backward():
    allow = rd.autograd.graph.allow_mutation_on_saved_tensors
    with allow():
        y = leaf(1.0).clone() ** 2
        with pytest.raises(RuntimeError, match="contexts cannot be nested"), allow():
            pass
    with pytest.raises(AssertionError, match="Trying to backward outside of the"):
        y.backward()


def test_saved_things_have_the_names_that_they_have_in_pytorch():
    x = rd.ones(3, 3, requires_grad=True)

    def shown(tensor):
        node = tensor.grad_fn
        return {name.removeprefix("_saved_"): getattr(node, name) for name in dir(node) if name.startswith("_saved_")}

    assert shown(x.sum(0)) == {"dim": (0,), "keepdim": False, "self_sym_sizes": (3, 3)}
    assert set(shown(x @ x)) == {
        f"{one}{end}" for one in ("self", "mat2") for end in ("", "_sym_sizes", "_sym_strides")
    }
    assert shown(x.permute(1, 0)) == {"dims": (1, 0)}
    assert "indices" in shown(x.max(0)[0])
    assert shown(x * 2) == {"self": None, "other": 2}  # what nobody needs is not saved
    image, weight = rd.ones(1, 1, 3, requires_grad=True), rd.ones(2, 1, 2)
    assert [
        shown(rd.conv1d(image, weight, bias))["bias_sym_sizes_opt"] for bias in (None, rd.ones(2, requires_grad=True))
    ] == [(), (2,)]


SHIFTED = {  # calls whose gradients do not depend on what the last argument holds, but for its shape
    "convolution": lambda b: rd.conv1d(rd.ones(1, 1, 3, requires_grad=True), rd.ones(2, 1, 2), b),
    "group_norm": lambda b: rd.group_norm(rd.arange(8.0).view(2, 2, 2).requires_grad_(), 1, rd.ones(2), b),
    "solve": lambda b: rd.linalg.solve(rd.eye(2, requires_grad=True), b),
    "embedding_bag": lambda b: rd.nn.functional.embedding_bag(rd.tensor([[0, 1]]), b.unsqueeze(1).expand(2, 3)),
}


@pytest.mark.parametrize("name", SHIFTED)
def test_what_no_gradient_depends_on_may_be_written_before_backward(name):
    last = rd.ones(2, requires_grad=True)
    loss = SHIFTED[name](last).sum()
    with rd.no_grad():
        last.add_(1)
    (gradient,) = rd.autograd.grad(loss, last)
    other = rd.ones(2, requires_grad=True)
    assert_close(gradient, rd.autograd.grad(SHIFTED[name](other).sum(), other)[0])


def test_a_mode_sees_a_saved_result_detached_when_it_is_unpacked():
    x = rd.ones(3, requires_grad=True)
    y = x.exp()
    with Seen() as seen:
        rd.autograd.grad(y, x, rd.ones(3))
    assert seen.names[-2:] == ["detach", "mul.Tensor"]


def test_a_mode_sees_nothing_of_what_is_packed():
    x = rd.ones(3, requires_grad=True)
    with Seen() as seen, graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = x.exp()
    assert seen.names == ["exp"]
    with Seen() as seen:
        rd.autograd.grad(y, x, rd.ones(3))
    assert seen.names[-2:] == ["detach", "mul.Tensor"]


def test_hooks_are_a_stack_and_end_with_the_pass_in_which_they_were_entered():
    outer, inner = (graph.saved_tensors_hooks(lambda x: x, lambda x: x) for _ in range(2))
    top = rd._C._autograd._top_saved_tensors_default_hooks
    outer.__enter__()
    inner.__enter__()
    outer.__exit__()
    assert top(False) == (outer.pack_hook, outer.unpack_hook)
    inner.__exit__()
    assert top(False) is None

    def unpack(x):
        outer.__enter__()
        return x

    with graph.saved_tensors_hooks(lambda x: x, unpack):
        leaf(1.0).sin().sum().backward()
    assert top(False) is None
    with graph.disable_saved_tensors_hooks("not here"):
        assert not rd._C._autograd._saved_tensors_hooks_is_enabled()
    assert rd._C._autograd._saved_tensors_hooks_is_enabled()


def test_hooks_registered_later_know_the_leaf():
    x = leaf(2.0)
    y = x**3
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    (first,) = rd.autograd.grad(y.sum(), x, create_graph=True)
    first.sum().backward()
    assert x.grad.item() == 12


def test_copies_for_saved_tensors_are_made_once_and_shown():
    with graph.allow_mutation_on_saved_tensors() as context:
        x = leaf(1.0, 2.0).clone()
        out = (x**2).sum() + (x**3).sum()
        assert len(context.tid_to_weakhandle) == 1
        x.sin_()
        assert len(context.cloned) == 1
        del out
        assert len(context.cloned) == 0


@pytest.mark.parametrize(
    ("call", "detached"),
    [
        (lambda x: x.max(1)[0], 0),  # the indices that it saves have no history, and are themselves
        (lambda x: x.sort(1)[0], 0),
        (lambda x: rd.nn.functional.layer_norm(x, (2,)), 0),
        (lambda x: x.exp(), 2),  # the result that it saves has one: without it when saved, with it when unpacked
    ],
)
def test_a_mode_sees_saved_results_detached_only_where_they_have_a_history(call, detached):
    x = leaf(1.0, 2.0).reshape(1, 2)
    with Seen() as seen:
        call(x).sum().backward()
    assert seen.names.count("detach") == detached + 1  # and that of x.grad


DETACHED = "Trying to use a saved tensor that has been detached in-place"


def test_an_argument_that_lost_its_history_in_place_is_an_error_and_not_a_constant():
    x = rd.tensor([0.3, 0.5], requires_grad=True)
    a = x * 1
    view, y, product = a[:1], a.sin(), a * x
    a.detach_()
    version = a._version
    for result in (y, product):
        with pytest.raises(RuntimeError, match=DETACHED):
            rd.autograd.grad(result.sum(), x, create_graph=True)
    again = a.requires_grad_().cos()  # what it is now is another tensor, which can be saved
    again.sum().backward()
    assert rd.equal(a.grad, -a.detach().sin())
    with rd.no_grad():
        view.mul_(2)
        a.mul_(2)
    assert a._version == view._version == version + 2  # both still count for all that share the memory
    with pytest.raises(RuntimeError, match=f"version {version + 2}; expected version {version} instead"):
        y.sum().backward()


def test_a_result_and_a_base_that_lost_their_history_in_place_leave_what_was_saved_as_it_is():
    x = rd.tensor([0.3, 0.5], requires_grad=True)
    base = x * 1
    y, result = base[:1].sin(), (x * 1).exp()
    total = result.sum()
    base.detach_()
    result.detach_()
    for value in (y.sum(), total):
        (first,) = rd.autograd.grad(value, x, create_graph=True)
        assert rd.autograd.grad(first.sum(), x)[0].any()


@pytest.mark.parametrize("give_up", [rd.Tensor.detach_, lambda x: x.requires_grad_(False)])
def test_a_leaf_that_wants_no_gradient_any_more_gets_none(give_up):
    x, w = rd.ones(2, requires_grad=True), rd.ones(2, requires_grad=True)
    y = (x * w).sum()
    give_up(x)
    y.backward()
    assert x.grad is None and rd.equal(w.grad, rd.ones(2))
