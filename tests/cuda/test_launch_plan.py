"""Kernels as plans: what is launched for arguments that look like others is what the kernel itself launches."""

import warnings

import pytest

import redispatch as rd
from redispatch.dispatch import DispatchKey
from redispatch.kernels.cuda.runtime import launch_recorder
from redispatch.kernels.cuda.runtime.devices import started
from redispatch.kernels.cuda.runtime.launch_plan import NUMBERS, Recorded, packed
from redispatch.kernels.cuda.runtime.launch_recorder import Place
from redispatch.kernels.ops.generators import Generator
from redispatch.testing import assert_close

F = rd.nn.functional


def kernel_of(op):
    """Returns the recorded kernel of an overload."""
    return op.registrations[DispatchKey.CUDA][-1].function.__self__


def plans(op):
    kernel = kernel_of(op)
    assert isinstance(kernel, Recorded)
    return [*kernel.plans._answers.values()]


def arguments(null, call, *args):
    null.launched.clear()
    kept = call(*args)
    return [(one.name, one.grid, one.block, one.arguments) for one in null.launched], kept


def check_what_draws():
    """It has a plan, which draws anew."""
    x = rd.empty(5, device="cuda")
    drawing = (  # 5 numbers: some kernels draw four at once, and then the last one
        (rd.ops.aten.normal_.default, lambda: x.normal_()),
        (rd.ops.aten.uniform_.default, lambda: x.uniform_()),
        (rd.ops.aten.bernoulli_.float, lambda: x.bernoulli_(0.5)),
        (getattr(rd.ops.aten.random_, "from"), lambda: rd.randint(0, 3, (5,), device="cuda")),
    )
    for op, draw in drawing:
        rd.cuda.manual_seed(3)
        once, again = [draw().tolist() for _ in range(2)]
        assert [plan.run is not None for plan in plans(op)] == [True], op
        rd.cuda.manual_seed(3)
        kernel_of(op).forget()
        assert [draw().tolist() for _ in range(2)] == [once, again]


# --- from the host's side ---------------------------------------------------------------------------------------------


def test_a_second_call_launches_the_same_with_its_own_addresses(null):
    x, y = (rd.empty(4, 6, device="cuda") for _ in range(2))
    places, mask = rd.zeros(4, 6, dtype=rd.int64).cuda(), rd.zeros(4, 6).cuda() > 0
    for call in (
        lambda x: x.gather(1, places),
        lambda x: x.masked_fill(mask, 2.0),
        lambda x: x.cumsum(1),
        lambda x: rd.cat([x, x]),
        lambda x: F.mse_loss(x, mask.float()),
        lambda x: x.roll(1, 1),
        lambda x: F.batch_norm(x, None, None, training=True),
        lambda x: x.index_add_(0, places[:, 0].contiguous(), x.clone()),
    ):
        first, one = arguments(null, call, x)
        second, other = arguments(null, call, y)
        assert [part[:3] for part in first] == [part[:3] for part in second] and len(first) > 0
        told = [number for part in second for number in part[3]]
        assert y.data_ptr() in told and x.data_ptr() not in told
        assert other.data_ptr() in told and (one is x or one.data_ptr() not in told)
        assert one._interned is other._interned or one.shape == other.shape


def test_a_plan_does_what_the_kernel_does(null):
    x, places = rd.empty(4, 6, device="cuda"), rd.zeros(4, 6, dtype=rd.int64).cuda()
    op = rd.ops.aten.gather.default
    op(x, 1, places)
    planned = arguments(null, lambda: op(x, 1, places))[0]
    anew = arguments(null, lambda: kernel_of(op).run_uncached(x, 1, places, False))[0]
    assert planned == anew and all(plan.run is not None for plan in plans(op))


def test_numbers_that_are_equal_and_not_the_same_have_plans_of_their_own(null):
    x, mask = rd.empty(6, device="cuda"), rd.zeros(6).cuda() > 0

    def told(value):
        return arguments(null, lambda: x.masked_fill(mask, value))[0][-1][3][4]

    for _ in range(2):
        assert told(0.0) == 0 and told(-0.0) == -(2**31) and told(1) == told(True) == told(1.0) == 0x3F800000


def test_ever_new_numbers_do_not_fill_the_memory(null):
    x, mask = rd.empty(6, device="cuda"), rd.zeros(6).cuda() > 0
    for k in range(3 * NUMBERS):
        x.masked_fill(mask, float(k))
    assert len(plans(rd.ops.aten.masked_fill.Scalar)) == NUMBERS


def test_less_aligned_memory_has_plans_of_its_own(null):
    x, mask = rd.empty(40, device="cuda"), rd.zeros(36).cuda() > 0
    for _ in range(2):
        for start, name in ((0, "contiguous"), (4, "contiguous"), (1, "contiguous"), (2, "contiguous")):
            part = x[start : start + 36]
            launched, _ = arguments(null, lambda part=part: part.masked_fill(mask, 1.0))
            assert launched[0][3][2] == x.data_ptr() + 4 * start and name in launched[0][0]
    assert arguments(null, lambda: x[1:37].masked_fill(mask, 1.0))[0][0][1:3] != launched[0][1:2]


def test_arguments_that_share_memory_are_seen_whatever_was_planned(null):
    x, places = rd.empty(8, 8, device="cuda"), rd.zeros(8, dtype=rd.int64).cuda()
    for _ in range(2):
        x.index_add_(0, places, rd.empty(8, 8, device="cuda"))
        with pytest.raises(RuntimeError, match="refer to a single memory location"):
            x.index_add_(0, places, x)


def test_intermediate_memory_is_one_block_that_goes_back(null):
    x, y = rd.empty(100, device="cuda"), rd.empty(100, device="cuda")
    F.huber_loss(x, y)
    before = rd.cuda.memory_stats()["allocation.all.allocated"]
    kept = F.huber_loss(x, y)
    assert rd.cuda.memory_stats()["allocation.all.allocated"] == before + 2  # the result, and all else
    held = rd.cuda.memory_allocated()
    del kept
    assert rd.cuda.memory_allocated() == held - 512


def test_pieces_lie_apart_as_long_as_both_are_needed():
    lives = [Place(0, 0, 0, since, until) for since, until in ((0, 2), (1, 3), (2, 4), (3, None))]
    starts, size = packed([100, 600, 100, 100], lives)
    assert starts == [0, 512, 0, 512] and size == 512 + 1024
    assert packed([], []) == ([], 0)


def test_a_plan_follows_the_current_stream_and_is_recorded_in_graphs(null):
    x, places = rd.empty(4, 6, device="cuda"), rd.zeros(4, 6, dtype=rd.int64).cuda()
    x.gather(1, places)
    with rd.cuda.stream(rd.cuda.Stream()) as stream:
        x.gather(1, places)
        x.index_fill_(0, places[:, 0].contiguous(), 1.0)
        assert null.launched[-1].stream == null.launched[-2].stream == stream.cuda_stream
    graph = rd.cuda.CUDAGraph()
    null.launched.clear()
    with rd.cuda.graph(graph):
        y = x.gather(1, places)
    assert not null.launched
    graph.replay()
    assert y.data_ptr() in null.launched[-1].arguments


def test_random_numbers_are_drawn_anew_each_time(null):
    x = rd.empty(64, device="cuda")
    offsets = [arguments(null, lambda: F.dropout(x, 0.5))[0] for _ in range(3)]
    assert len({str(one) for one in offsets}) == 3
    assert all(plan.run is not None for plan in plans(rd.ops.aten.native_dropout.default))
    rd.cuda.manual_seed(3)
    first, one = arguments(null, lambda: x.uniform_())
    rd.cuda.manual_seed(3)
    assert arguments(null, lambda: x.uniform_())[0] == first


def test_what_warns_warns_each_time(null):
    x = rd.empty(1, device="cuda")
    for _ in range(3):
        with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
            x.var()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rd.empty(5, device="cuda").var()


def test_what_a_kernel_reads_is_read_each_time(null):
    x = rd.empty(5, device="cuda")
    for _ in range(2):
        assert x.nonzero().shape == (0, 1)  # memory of the null device holds zeros
    assert not any(plan.run is not None for plan in plans(rd.ops.aten.nonzero.default))


def test_errors_come_each_time_and_leave_nothing(null):
    x, places = rd.empty(4, 6, device="cuda"), rd.zeros(4, 6, dtype=rd.int32).cuda()
    held = rd.cuda.memory_allocated()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="Size does not match"):
            x.gather(0, places.repeat(1, 2))
        with pytest.raises(IndexError):
            x.cumsum(3)
    assert rd.cuda.memory_allocated() == held


def test_plans_know_the_default_dtype(null):
    x = rd.zeros(4, dtype=rd.int64).cuda()
    assert x.logsumexp(0).dtype is rd.float32
    rd.set_default_dtype(rd.float64)
    try:
        assert x.logsumexp(0).dtype is rd.float64
    finally:
        rd.set_default_dtype(rd.float32)


def test_inference_tensors_come_of_the_same_plans(null):
    x, places = rd.empty(4, 6, device="cuda"), rd.zeros(4, 6, dtype=rd.int64).cuda()
    assert not x.gather(1, places).is_inference()
    with rd.inference_mode():
        assert x.gather(1, places).is_inference()
    assert not x.gather(1, places).is_inference() and len(plans(rd.ops.aten.gather.default)) == 1


def test_tapes_leave_nothing_behind(null):
    from redispatch.kernels.cuda import TAPES

    x, places = rd.empty(4, 6, device="cuda"), rd.zeros(4, 6, dtype=rd.int64).cuda()
    x.gather(1, places)
    pools = dict(started().allocator.pools)
    rd.empty(7, 3, device="cuda").gather(1, places[:3, :3])
    assert not TAPES and started().allocator.pools == pools


def test_what_draws_has_a_plan(null):
    check_what_draws()


def test_a_place_is_known_by_what_lies_in_it_and_nothing_beyond(null):
    """An offset plus some of the numbers drawn is of the plan; an address outside refuses one, and raises nothing."""
    tape = launch_recorder.Tape(started().allocator, rd.device("cuda:0"), launch_recorder.FAR)
    with tape.running():
        seed, offset = launch_recorder.taken(Generator("cuda"), 4)
    assert tape.told(offset + 4) == (1, 4) and tape.told(seed) == (0, 0)
    with pytest.raises(launch_recorder.Refused):
        tape.told(offset + 5)


# --- what is computed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: x.gather(1, i),
        lambda x, i: x.scatter_add(1, i, x * 2),
        lambda x, i: x.clone().index_add_(0, i[:, 0].contiguous(), x),
        lambda x, i: x.cumsum(1),
        lambda x, i: x[1:].cumsum(0),
        lambda x, i: F.huber_loss(x, x.exp()),
        lambda x, i: F.batch_norm(x, None, None, training=True),
        lambda x, i: x.roll(1, 0),
        lambda x, i: rd.searchsorted(x.sort(1)[0], x),
    ],
)
def test_plans_compute_what_kernels_do(simulator, call):
    places = rd.tensor([[0, 2, 1], [1, 1, 0], [2, 0, 2]])
    for k in range(3):
        x = rd.arange(9.0).reshape(3, 3).sin() * (k + 1)
        here, there = x.clone(), x.cuda()
        assert_close(call(there, ((places + k) % 3).cuda()).cpu(), call(here, (places + k) % 3))


def test_a_bad_index_of_a_planned_call_is_told_of(simulator):
    x = rd.arange(4.0).cuda()
    for _ in range(2):
        x.index_select(0, rd.tensor([1]).cuda())
        rd.cuda.synchronize()
        x.index_select(0, rd.tensor([4]).cuda())
        with pytest.raises(IndexError, match="index_select: index 4 is out of bounds"):
            rd.cuda.synchronize()


def test_what_draws_by_a_plan_draws_what_the_kernel_would(simulator):
    check_what_draws()
