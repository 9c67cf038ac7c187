"""CUDA graphs on the simulator: what replays compute."""

import gc

import pytest

import redispatch as rd
from redispatch.testing import assert_close

from .test_graphs import recorded, thrice, twice


def test_a_replay_computes_from_what_the_inputs_hold_now(simulator):
    x = rd.arange(5.0, device="cuda")
    graph, y = recorded(lambda: (x * 2 + 1).tanh() + x.sum())
    for numbers in (rd.arange(5.0), rd.ones(5), -rd.arange(5.0)):
        x.copy_(numbers)
        graph.replay()
        assert_close(y.cpu(), (numbers * 2 + 1).tanh() + numbers.sum())
    graph.replay()
    kept = y.clone()
    x.zero_()
    graph.replay()
    assert y.tolist() == pytest.approx([0.7615942] * 5) != kept.tolist()


def test_the_simulator_finds_a_graph_whose_input_is_gone(simulator):
    held = [rd.ones(5, device="cuda")]
    graph, _ = recorded(lambda: held[0] * 2)
    graph.replay()
    held.clear()
    gc.collect()
    with pytest.raises(RuntimeError, match="a read of 16 bytes out of bounds"):
        graph.replay()


def test_a_bad_index_of_a_replay_is_told_of_at_the_next_wait(simulator):
    x, places = rd.arange(5.0).cuda(), rd.tensor([0, 4]).cuda()
    x.index_select(0, places)  # what is sent to a device for all calls cannot be sent while a graph is recorded
    rd.cuda.synchronize()
    graph, y = recorded(lambda: x.index_select(0, places))
    graph.replay()
    assert y.tolist() == [0, 4]
    places.copy_(rd.tensor([0, 5]))
    rd.cuda.synchronize()
    graph.replay()
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 5"):
        rd.cuda.synchronize()
    rd.cuda.synchronize()
    places.copy_(rd.tensor([1, 2]))
    graph.replay()
    assert y.tolist() == [1, 2]


def test_classes_are_checked_by_the_kernel_where_their_number_is_said(simulator):
    classes = rd.tensor([0, 2]).cuda()
    rd.nn.functional.one_hot(classes, 3)
    graph, rows = recorded(lambda: rd.nn.functional.one_hot(classes, 3))
    graph.replay()
    assert rows.tolist() == [[1, 0, 0], [0, 0, 1]]
    rd.nn.functional.one_hot(classes, 2)
    with pytest.raises(IndexError, match="index 2 is out of bounds for dimension 1 with size 2"):
        rd.cuda.synchronize()


@pytest.mark.parametrize("module", [False, True])
def test_graphed_callables_train_as_those_that_they_were_made_of(simulator, module):
    def function(x, w):
        return (x * w).relu().sum(1), x - w

    class Scaled(rd.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = rd.nn.Parameter(rd.tensor([1.0, -2.0, 0.5]))

        def forward(self, x):
            return function(x, self.weight)

    def gradients(call, device, x, inputs):
        for each in inputs:
            each.grad = None
        a, b = call(x)
        (a.square().sum() + b.sum()).backward()
        return [a.detach().cpu(), b.detach().cpu(), *(each.grad.cpu() for each in inputs)]

    reference, scaled = Scaled(), Scaled().cuda()
    sample = rd.zeros(2, 3, device="cuda", requires_grad=True)
    if module:
        call = rd.cuda.make_graphed_callables(scaled, (sample,))
        assert call is scaled
    else:
        graphed = rd.cuda.make_graphed_callables(
            function, (sample, rd.zeros(3, device="cuda", requires_grad=True)), num_warmup_iters=1
        )

        def call(x):
            return graphed(x, scaled.weight)

    for numbers in (rd.arange(6.0).reshape(2, 3), -rd.ones(2, 3)):
        x, here = numbers.clone().requires_grad_(), numbers.cuda().requires_grad_()
        wanted = gradients(reference, "cpu", x, [x, reference.weight])
        found = gradients(call, "cuda", here, [here, scaled.weight])
        for ours, theirs in zip(found, wanted, strict=True):
            assert_close(ours, theirs)
    if module:
        scaled.eval()
        assert scaled(rd.ones(4, 3, device="cuda"))[0].shape == (4,)  # runs as before
        scaled.train()


def test_a_tree_computes_what_its_functions_do(simulator):
    tree = rd.cuda.GraphTree()
    a, b = tree.wrap(twice), tree.wrap(thrice)
    with rd.no_grad():
        for k in range(6):
            tree.new_step()
            x = rd.arange(5.0) + k
            here = x.cuda()
            first = a(here)
            second = b(first) if k % 2 else b(here)
            third = a(second)
            wanted = twice(x)
            after = thrice(wanted) if k % 2 else thrice(x)
            assert first.tolist() == wanted.tolist() and second.tolist() == after.tolist()
            assert third.tolist() == twice(after).tolist()
    assert len(tree.paths()) <= 6


# --- random numbers ---------------------------------------------------------------------------------------------------


def drawing(x):
    """Numbers of several kinds, by several kernels; one fill does not end with a block."""
    dropped = rd.nn.functional.dropout(x, 0.4) + rd.rand(5, device="cuda")
    heads = x.reshape(1, 1, 5, 1)
    mixed = rd.nn.functional.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.5)
    return dropped * rd.randn(5, device="cuda"), mixed, rd.rand(3, device="cuda", dtype=rd.float64)


def test_replays_draw_what_the_program_would_draw(simulator):
    x = rd.arange(5.0, device="cuda")
    rd.manual_seed(3)
    wanted = [[y.cpu() for y in drawing(x)] for _ in range(3)]
    state = rd.cuda.get_rng_state()
    rd.manual_seed(3)
    graph, found = recorded(lambda: drawing(x))
    for each in wanted:
        graph.replay()
        assert all(rd.equal(ours.cpu(), theirs) for ours, theirs in zip(found, each, strict=True))
    assert rd.equal(rd.cuda.get_rng_state(), state) and not rd.equal(wanted[0][0], wanted[1][0])
    rd.manual_seed(3)  # and a graph goes on where the generator is put
    graph.replay()
    assert rd.equal(found[0].cpu(), wanted[0][0])


def test_graphed_callables_with_dropout_train_as_without_graphs(simulator):
    class Layer(rd.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = rd.nn.Parameter(rd.arange(8.0, device="cuda"))

        def forward(self, x):
            return rd.nn.functional.dropout(x * self.weight, 0.5)

    def gradients(layer):
        found = []
        rd.manual_seed(5)
        for k in range(3):
            layer.weight.grad = None
            layer(rd.ones(2, 8, device="cuda") + k).square().sum().backward()
            found.append(layer.weight.grad.cpu())
        return found

    wanted = gradients(Layer())
    found = gradients(rd.cuda.make_graphed_callables(Layer(), (rd.zeros(2, 8, device="cuda"),)))
    assert all(rd.equal(ours, theirs) for ours, theirs in zip(found, wanted, strict=True))


def test_a_tree_draws_what_its_functions_do(simulator):
    def noisy(x):
        return x + rd.rand(4, device="cuda")

    tree, x = rd.cuda.GraphTree(), rd.zeros(4, device="cuda")
    call = tree.wrap(noisy)

    def several(function):
        rd.manual_seed(7)
        found = []
        for _ in range(4):
            tree.new_step()
            with rd.no_grad():
                found.append(function(function(x)).tolist())
        return found

    assert several(call) == several(noisy)
