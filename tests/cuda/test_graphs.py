"""CUDA graphs and graph trees, recorded and replayed by the null driver, and by the simulator, which computes."""

import gc
import warnings

import pytest

import redispatch as rd
from redispatch.kernels.cuda.runtime.devices import started
from redispatch.kernels.cuda.runtime.graphs import memory_of
from redispatch.testing import assert_close

# --- graphs -----------------------------------------------------------------------------------------------------------


def allocator():
    return started().allocator


def recorded(function, pool=None):
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph, pool=pool):
        result = function()
    return graph, result


# --- graphs -----------------------------------------------------------------------------------------------------------


def test_work_is_noted_while_it_is_recorded_and_done_by_each_replay(null):
    x = rd.empty(100, device="cuda")
    null.launched.clear()
    assert not rd.cuda.is_current_stream_capturing()
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        assert rd.cuda.is_current_stream_capturing()
        y = (x * 2 + 1).sum()
    assert not null.launched and not rd.cuda.is_current_stream_capturing()
    graph.replay()
    names = [one.name for one in null.launched]
    assert names == ["mul_contiguous", "add_contiguous", "sum_rows"]
    assert null.launched[-1].arguments[0] == y.data_ptr()
    graph.replay()
    assert [one.name for one in null.launched] == names * 2 and null.replayed == 2


def test_a_graph_has_memory_of_its_own_until_it_goes(null):
    x = rd.empty(100, device="cuda")
    graph, y = recorded(lambda: x * 2 + 1)
    held = {one["address"] for one in rd.cuda.memory_snapshot() if one["private"]}
    assert len(held) == 2 and y.data_ptr() in held  # the product, and the sum
    others = [rd.empty(100, device="cuda") for _ in range(4)]
    with rd.cuda.stream(rd.cuda.Stream()):
        others += [rd.empty(100, device="cuda") for _ in range(4)]
    assert not held & {one.data_ptr() for one in others}
    rd.cuda.empty_cache()
    assert held <= null.allocated.keys()
    graph.reset()
    rd.cuda.empty_cache()
    assert held & null.allocated.keys() == {y.data_ptr()}  # which a tensor holds
    del y
    gc.collect()
    rd.cuda.empty_cache()
    assert not held & null.allocated.keys()
    assert not allocator().private


def test_graphs_of_one_pool_share_what_nobody_holds(null):
    x = rd.empty(1000, device="cuda")

    def three():
        return ((x * 2) * 3) * 4

    first, y = recorded(three)
    reserved = rd.cuda.memory_reserved()
    second, z = recorded(three, pool=first.pool())
    assert z.data_ptr() != y.data_ptr()
    assert rd.cuda.memory_reserved() - reserved == 4096  # one result more
    assert second.pool() == first.pool() and memory_of(first.pool()).users == 2
    first.reset()
    assert memory_of(second.pool()).users == 1
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        first.pool()
    third, _ = recorded(three)
    assert third.pool() != second.pool()
    del second, third
    gc.collect()
    assert not allocator().private


@pytest.mark.parametrize(
    "what",
    [
        lambda x: x.sum().item(),
        lambda x: x.cpu(),
        lambda x: x.tolist(),
        lambda x: rd.ones(3).cuda(),
        lambda x: x + rd.tensor([1.0, 2.0, 3.0], device="cuda"),
        lambda x: rd.cuda.synchronize(),
        lambda x: rd.cuda.current_stream().synchronize(),
        lambda x: rd.cuda.current_stream().query(),
        lambda x: bool((x > 0).all()),
    ],
)
def test_what_would_have_to_wait_is_refused(null, what):
    x = rd.empty(3, device="cuda")
    graph = rd.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="operation not permitted when stream is capturing"), rd.cuda.graph(graph):
        what(x)
    assert not null.captures and not allocator().private and rd.cuda.current_stream().cuda_stream == 0
    assert x.sum().item() == 0
    with rd.cuda.graph(graph):  # which was left as it was
        x + 1
    graph.replay()


def test_what_a_graph_draws_is_taken_from_the_generator_at_each_replay(null):
    own, other = rd.cuda.default_generators[0], rd.Generator("cuda")
    graph = rd.cuda.CUDAGraph()
    graph.register_generator_state(other)
    rd.cuda.manual_seed(1)
    before = own.get_state()
    with rd.cuda.graph(graph):
        rd.rand(8, device="cuda")
        rd.rand(8, device="cuda", generator=other)
        rd.rand(8, device="cuda")
        with pytest.raises(RuntimeError, match="while a graph is recorded"):
            rd.cuda.manual_seed(2)
        with pytest.raises(RuntimeError, match="graph.register_generator_state"):
            rd.rand(2, device="cuda", generator=rd.Generator("cuda"))
    assert rd.equal(own.get_state(), before)  # nothing was drawn yet
    graph.replay()
    graph.replay()
    for generator, blocks in ((own, 16), (other, 8)):
        assert generator.take(0)[1] == blocks
    with pytest.raises(RuntimeError, match="before the graph is recorded"):
        graph.register_generator_state(other)
    with pytest.raises(RuntimeError, match="generators of CUDA devices"):
        rd.cuda.CUDAGraph().register_generator_state(rd.Generator())


def test_generators_may_share_a_state(null):
    generator, other = rd.Generator("cuda").manual_seed(1), rd.Generator("cuda")
    assert other.graphsafe_set_state(generator.graphsafe_get_state()) is other
    generator.take(3)
    assert other.initial_seed() == 1 and other.take(0) == (1, 3)
    assert generator.clone_state().manual_seed(4).initial_seed() == 4 and generator.initial_seed() == 1
    with pytest.raises(TypeError, match="expected a Generator, but got Tensor"):
        generator.graphsafe_set_state(generator.get_state())
    with pytest.raises(NotImplementedError, match="graphsafe_get_state is not supported in this Generator"):
        rd.Generator().graphsafe_get_state()


def test_mistakes_of_whoever_records(null):
    graph, x = rd.cuda.CUDAGraph(), rd.empty(3, device="cuda")
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match="non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="Unknown capture error mode"), rd.cuda.graph(graph, capture_error_mode="no"):
        pass
    with pytest.raises(RuntimeError, match=r"without capture_begin"):
        graph.capture_end()
    with pytest.warns(UserWarning, match="The CUDA Graph is empty"), rd.cuda.graph(graph):
        pass
    with pytest.raises(RuntimeError, match="already owns a captured graph"), rd.cuda.graph(graph):
        pass
    with pytest.raises(ZeroDivisionError), rd.cuda.graph(rd.cuda.CUDAGraph()):
        x + 1
        1 / 0
    assert not null.captures and not allocator().recording and rd.cuda.current_stream().cuda_stream == 0
    other = rd.cuda.CUDAGraph()
    with rd.cuda.graph(rd.cuda.CUDAGraph()):
        x + 1
        with pytest.raises(RuntimeError, match="is being captured already"):
            other.capture_begin()


def test_streams_that_join_are_recorded_too_and_must_come_back(null):
    x, side = rd.empty(3, device="cuda"), rd.cuda.Stream()

    def forked(back):
        y = x + 1
        side.wait_stream(rd.cuda.current_stream())
        with rd.cuda.stream(side):
            z = y * 2
        if back:
            rd.cuda.current_stream().wait_stream(side)
        return z

    null.launched.clear()
    graph, z = recorded(lambda: forked(True))
    assert not null.launched and z._storage.block.pool.owner is memory_of(graph.pool())
    graph.replay()
    assert [one.name for one in null.launched] == ["add_contiguous", "mul_contiguous"]
    with pytest.raises(RuntimeError, match="forked from the captured one"):
        recorded(lambda: forked(False))
    assert not null.captures
    with rd.cuda.stream(side):
        assert (x + 1)._storage.block.pool.owner is None


def test_what_other_streams_used_is_given_back_behind_the_recording(null):
    x, side = rd.empty(100, device="cuda"), rd.cuda.Stream()
    address = x.data_ptr()
    y = rd.empty(100, device="cuda")
    with rd.cuda.graph(rd.cuda.CUDAGraph()):
        x.record_stream(side)
        del x
        gc.collect()
        y + 1
        assert len(allocator().deferred) == 1 and not allocator().waiting
    assert not allocator().deferred
    assert rd.empty(100, device="cuda").data_ptr() == address


# --- graphed callables ------------------------------------------------------------------------------------------------


def test_graphed_callables_refuse_what_cannot_be_recorded(null):
    hooked = rd.nn.Linear(2, 2).cuda()
    hooked.register_forward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="Modules must not have hooks"):
        rd.cuda.make_graphed_callables(hooked, (rd.empty(2, 2, device="cuda"),))
    with pytest.raises(ValueError, match="must contain only Tensors"):
        rd.cuda.make_graphed_callables(lambda x: x, (1,))
    with rd.autocast("cuda"), pytest.raises(RuntimeError, match="autocast caching"):
        rd.cuda.make_graphed_callables(lambda x: x, (rd.empty(2, device="cuda"),))
    graphed = rd.cuda.make_graphed_callables(lambda x: x * 2, (rd.empty(2, device="cuda"),))
    with pytest.raises(TypeError, match="recorded for arguments like"):
        graphed(rd.empty(2, device="cuda"), 1)


# --- graph trees ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(null):
    with rd.no_grad():
        yield rd.cuda.GraphTree()


def twice(x):
    return (x + 1) * 2


def thrice(x):
    return (x - 1) * 3


def test_a_function_runs_then_is_recorded_then_replayed(null, tree):
    call, x = tree.wrap(twice), rd.empty(100, device="cuda")
    call(x)
    assert tree.paths() == [] and null.replayed == 0
    call(x)
    assert tree.paths() == ["twice"] and null.replayed == 1
    null.launched.clear()
    y = call(x)
    names = [one.name for one in null.launched]
    assert names == ["copy_contiguous", "add_contiguous", "mul_contiguous"] and null.replayed == 2
    assert tree.paths() == ["twice"] and null.launched[-1].arguments[1] == y.data_ptr()
    del y
    call(rd.empty(50, device="cuda"))
    call(rd.empty(50, device="cuda"))
    assert tree.paths() == ["twice", "twice"]  # other shapes, another recording


def run(tree, *names):
    """A step that calls functions one after another, each on what the one before gave."""
    tree.new_step()
    x = rd.empty(100, device="cuda")
    for name in names:
        x = tree.functions[name](x)
    return x


def test_paths_grow_and_branch(null, tree):
    tree.functions = {name: tree.wrap(function) for name, function in (("a", twice), ("b", thrice))}
    for _ in range(2):
        run(tree, "a", "b")
        run(tree, "b", "a")
    for _ in range(3):
        run(tree, "a", "b")
        run(tree, "a", "a")
        run(tree, "b", "a", "a")
    first = set(tree.paths())
    assert "twice > thrice" in first and "twice > twice" in first and "thrice > twice > twice" in first
    count = len(tree.paths())
    replayed = null.replayed
    for _ in range(3):
        run(tree, "a", "b")
        run(tree, "a", "a")
        run(tree, "b", "a", "a")
    assert len(tree.paths()) == count and null.replayed == replayed + 21  # nothing is recorded again


def test_a_result_is_an_input_without_a_copy(null, tree):
    tree.functions = {"a": tree.wrap(twice), "b": tree.wrap(thrice)}
    for _ in range(4):
        run(tree, "a", "b")
    null.launched.clear()
    run(tree, "a", "b")
    assert [one.name for one in null.launched] == [
        "copy_contiguous",
        *["add_contiguous", "mul_contiguous"],
        *["sub_contiguous", "mul_contiguous"],
    ]


def test_what_is_held_is_never_written_over(null, tree):
    a, b = tree.wrap(twice), tree.wrap(thrice)
    x = rd.empty(100, device="cuda")
    for call in (a, a, b, b):
        call(x)
    tree.new_step()
    one = a(x)
    two = b(x)  # recorded when nothing was held: it may write where `one` lies, so that it is recorded again
    assert "twice > thrice" in tree.paths()
    three = a(x)
    places = [one.data_ptr(), two.data_ptr(), three.data_ptr()]
    assert len(set(places)) == 3
    written = {argument for launch in null.launched[-3:] for argument in launch.arguments[1:2]}
    assert one.data_ptr() not in written and two.data_ptr() not in written
    held = allocator().held(memory_of(tree.handle))
    assert held == set(places)
    count = len(tree.paths())
    del one, two, three
    gc.collect()
    assert not allocator().held(memory_of(tree.handle))
    tree.new_step()
    _one, _two = a(x), b(x)
    assert len(tree.paths()) == count  # the same path as before


def test_a_result_that_dies_makes_another_path_and_the_same_deaths_the_same_one(null, tree):
    a, b = tree.wrap(twice), tree.wrap(thrice)
    x = rd.empty(100, device="cuda")

    def step(keep):
        tree.new_step()
        first = a(x)
        second = b(first)
        if not keep:
            first = None
        return a(second), first

    for _ in range(4):
        step(True)
        step(False)
    count, replayed = len(tree.paths()), null.replayed
    for _ in range(3):
        step(True)
        step(False)
    assert len(tree.paths()) == count and null.replayed == replayed + 18


def test_a_loop_that_holds_its_last_result_is_recorded_a_few_times_only(null, tree):
    call, x = tree.wrap(twice), rd.empty(100, device="cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(300):
            y = call(x)  # while the former y is held
    assert y.is_cuda and len(tree.paths()) <= 6


def test_what_a_step_gave_is_lost_when_the_next_one_begins(null, tree):
    call, x = tree.wrap(twice), rd.empty(100, device="cuda")
    call(x)
    y, kept = call(x), call(x).clone()
    view = y[1:]
    tree.new_step()
    for use in (lambda: y + 1, lambda: view + 1, lambda: y.tolist(), lambda: y.sum(), lambda: y.data_ptr()):
        with pytest.raises(RuntimeError, match="in a step that is over"):
            use()
    assert (kept + 1).is_cuda and not allocator().held(memory_of(tree.handle))


def test_memory_is_shared_by_all_paths(null, tree):
    functions = [tree.wrap(lambda x, k=k: ((x + k) * 2 - 1) * x) for k in range(8)]
    x = rd.empty(1 << 18, device="cuda")
    for function in functions:
        for _ in range(3):
            function(x)
    rd.cuda.empty_cache()
    private = [one for one in rd.cuda.memory_snapshot() if one["private"]]
    assert len(tree.paths()) == 8 and sum(one["total_size"] for one in private) <= 4 << 20  # as one of them needs


def test_structures_numbers_and_what_is_returned_as_it_came(null, tree):
    weight = rd.empty(100, device="cuda")

    def function(x, scale=1.0, *, also):
        return {"y": x * scale, "weight": weight, "same": also[0], "view": (x * scale)[1:], "n": 3}

    call = tree.wrap(function)
    x, z = rd.empty(100, device="cuda"), rd.empty(4, device="cuda")
    for _ in range(3):
        tree.new_step()
        found = call(x, 2.0, also=[z])
    assert found["weight"] is weight and found["n"] == 3 and found["view"].shape == (99,)
    assert found["view"].storage_offset() == 1 and found["same"].shape == (4,)
    call(x, 3.0, also=[z])
    call(x, 3.0, also=[z])
    assert len(tree.known) == 2  # another number is another function


def test_what_a_tree_cannot_record(null):
    tree = rd.cuda.GraphTree()
    x = rd.empty(3, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="twice: a graph tree records no gradients"):
        tree.wrap(twice)(x)
    weighted = tree.wrap(lambda y: y * x)
    weighted(x.detach())
    with pytest.raises(RuntimeError, match="records no gradients"):
        weighted(x.detach())
    with rd.no_grad():
        writes = tree.wrap(lambda y: y.add_(1))
        writes(x.detach())
        with pytest.raises(RuntimeError, match="writes to an argument that is copied"):
            writes(x.detach())
        asks = tree.wrap(lambda y: y.sum().item())
        asks(x)
        with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
            asks(x)
        assert not null.captures and not allocator().recording
        assert tree.wrap(twice)(x).is_cuda and not allocator().private


# --- replays ----------------------------------------------------------------------------------------------------------


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
