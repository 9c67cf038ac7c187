"""The device "cuda" from the host's side: what it registers, allocator, streams, counts, names.

Nothing is compiled here.
"""

import gc
import importlib
import subprocess
import sys
import threading

import pytest

import redispatch as rd
from redispatch.backends import cudnn
from redispatch.cuda import MODULES, NAMES, api
from redispatch.kernels import cuda
from redispatch.kernels.cuda.choose import found
from redispatch.kernels.cuda.runtime.devices import start, started
from redispatch.kernels.cuda.runtime.memory import CachingAllocator, OutOfMemoryError, size_class
from redispatch.nn import functional as F

from .conftest import devices_of

# --- devices ----------------------------------------------------------------------------------------------------------


def stats(name, what="current"):
    return rd.cuda.memory_stats()[f"{name}.all.{what}"]


# --- without a device -------------------------------------------------------------------------------------------------


def test_without_a_device_it_is_said_what_to_install():
    former = cuda.use(None)
    try:
        assert not rd.cuda.is_available() and rd.cuda.device_count() == 0 and not rd.accelerator.is_available()
        for use in (
            lambda: rd.ones(2, device="cuda"),
            lambda: rd.ones(2).cuda(),
            lambda: rd.nn.Linear(1, 1).to("cuda"),
        ):
            with pytest.raises(AssertionError, match=r"Torch not compiled with CUDA .* redispatch\[cuda\]") as raised:
                use()
            assert isinstance(raised.value, RuntimeError)
        rd.cuda.manual_seed_all(0)  # does nothing
        rd.cuda.empty_cache()
    finally:
        cuda.restore(former)
    assert started() is None


def test_a_word_that_is_set_late_counts_where_no_device_was_found(monkeypatch):
    monkeypatch.delenv("REDISPATCH_CUDA", raising=False)
    former = cuda.use(None)
    try:
        assert not rd.cuda.is_available()
        monkeypatch.setenv("REDISPATCH_CUDA", "null")
        assert rd.cuda.is_available() and rd.cuda.device_count() == 1
        monkeypatch.delenv("REDISPATCH_CUDA")
        assert rd.cuda.is_available()  # what there is stays
    finally:
        cuda.restore(former)


def test_an_import_brings_no_compiler_and_no_simulator():
    program = (
        "import sys, redispatch as rd; rd.cuda.is_available(); "
        "print([m for m in sys.modules if m.startswith(('numba', 'redispatch.kernels.cuda.simulator'))])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


def test_whatever_is_first_asked_for_finds_the_device():
    former = cuda.use(cuda.NullDriver())
    try:
        for first in (
            lambda: rd.nn.Linear(1, 1).cuda().weight,
            lambda: rd.ones(1).untyped_storage().cuda(),
            lambda: rd.nn.utils.rnn.pack_sequence([rd.ones(2)]).cuda().data,
            lambda: rd.randn(2, device="cuda"),
            lambda: rd.ones(1).type("torch.cuda.DoubleTensor"),
        ):
            assert started() is None and first().is_cuda
            started().remove()
    finally:
        cuda.restore(former)
    assert not rd.ones(1).untyped_storage().is_cuda


def test_the_names_are_those_that_there_are():
    made = {name for name, value in vars(api).items() if getattr(value, "__module__", "") == api.__name__}
    own = {name for name in made if not name.startswith("_")}
    assert own <= NAMES.keys() and all(hasattr(rd.cuda, name) for name in NAMES)
    assert dir(rd.cuda) == sorted({"amp", "nvtx", *MODULES, *NAMES})
    assert not hasattr(rd.cuda, "operators")


def test_a_wrong_word_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("REDISPATCH_CUDA", "simulator")
    with pytest.raises(ValueError, match="'simulator'; it may be sim, late, null, or unset"):
        found()


# --- devices ----------------------------------------------------------------------------------------------------------


def test_devices_come_with_the_first_use_and_go(null):
    assert rd.cuda.is_available() and rd.cuda.device_count() == 1 and rd.cuda.current_device() == 0
    assert rd.accelerator.current_accelerator() == rd.device("cuda")
    x = rd.empty(3, device="cuda")
    assert x.device == rd.device("cuda:0") and x.is_cuda and rd.cuda.get_device_name() == "null device"
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        rd.empty(3, device="cuda:1")
    with rd.cuda.device(0), rd.cuda.device_of(x):
        assert rd.cuda.current_device() == 0
    assert rd.cuda.get_device_capability() == (8, 0)
    known = rd.cuda.get_device_properties()
    assert known.total_memory == 1 << 24 and known.warp_size == 32 and known.multi_processor_count == 1
    assert rd.nn.Linear(2, 2).cuda().weight.is_cuda


def test_threads_of_the_cpu_do_not_share_out_what_a_device_does(null):
    rd.randn(1 << 18, device="cuda")  # from the thread of another one there is no device to be launched on


def test_an_operator_without_a_kernel_says_so_and_names_the_way_out(null):
    with rd.library._scoped_library("lesson", "FRAGMENT") as library:
        library.define("at_home(Tensor x) -> Tensor")
        library.impl("at_home", lambda x: x.clone(), "CPU")
        with pytest.raises(NotImplementedError, match=r"lesson::at_home has no CUDA kernel yet. .* \.cpu\(\)"):
            rd.ops.lesson.at_home(rd.empty(3, 3, device="cuda"))


def test_operators_declared_later_are_served_too(null):
    def cubed(x):
        return x * x * x

    from redispatch.library import elementwise

    op = elementwise("lesson::cubed(Tensor x) -> Tensor")(cubed)
    assert op(rd.empty(3, device="cuda")).is_cuda and null.launched[-1].name == "cubed_contiguous"


def launches(null, call):
    null.launched.clear()
    before = stats("allocation", "allocated")
    call()
    return len(null.launched), stats("allocation", "allocated") - before


def test_a_call_is_one_launch_and_one_allocation(null):
    x, y = rd.empty(100, device="cuda"), rd.empty(100, device="cuda")
    large = rd.empty(1 << 20, device="cuda")
    assert launches(null, lambda: x + y) == (1, 1)
    assert launches(null, lambda: x.add_(y)) == (1, 0)
    assert launches(null, lambda: rd.add(x, y, out=x)) == (1, 0)
    assert launches(null, lambda: x.sum()) == (1, 1)
    assert launches(null, lambda: large.sum()) == (2, 2)  # the pieces, and their accumulators
    assert launches(null, lambda: x.view(10, 10).t()) == (0, 0)
    assert launches(null, lambda: rd.zeros(5, device="cuda")) == (1, 1)
    assert launches(null, lambda: rd.empty(0, device="cuda") + 1) == (0, 0)
    rd.ones(10).cuda()  # the first time it is looked how such a result would lie
    assert launches(null, lambda: rd.ones(10).cuda()) == (0, 1)


def counted(null, call):
    """(launches, allocations) of a call that has been made before."""
    call()
    return launches(null, call)


def test_what_operators_cost_is_counted(null):
    x, y, matrix = (rd.empty(shape, device="cuda") for shape in (100, 100, (10, 100)))
    mask, half = x > 0, rd.empty(100, dtype=rd.float16, device="cuda")
    z = rd.empty(100, device="cuda", requires_grad=True)
    for call, wanted in (
        (lambda: matrix + x, (1, 1)),
        (lambda: x + half, (1, 1)),
        (lambda: x * 2.0, (1, 1)),
        (lambda: rd.where(mask, x, y), (1, 1)),
        (lambda: x.masked_fill(mask, 1.0), (1, 1)),
        (lambda: x.half(), (1, 1)),
        (lambda: x.clone(), (1, 1)),
        (lambda: matrix.t().contiguous(), (1, 1)),
        (lambda: x.fill_(1.0), (1, 0)),
        (lambda: x.zero_(), (1, 0)),
        (lambda: x.copy_(y), (1, 0)),
        (lambda: x.copy_(half), (1, 0)),
        (lambda: x[1:].mul_(2), (1, 0)),
        (lambda: matrix.t().add_(1), (1, 0)),
        (lambda: matrix.sum(0), (1, 1)),
        (lambda: half.sum(dtype=rd.float32), (2, 2)),  # what is converted is another tensor
        (lambda: matrix.mean(1, keepdim=True), (1, 1)),
        (lambda: matrix.amax(), (1, 1)),
        (lambda: rd.cat([x, y]), (2, 1)),
        (lambda: rd.arange(10, device="cuda"), (1, 1)),
        (lambda: rd.linspace(0, 1, 5, device="cuda"), (1, 1)),
        (lambda: rd.eye(3, device="cuda"), (2, 1)),
        (lambda: x + rd.tensor(2.0), (1, 1)),  # the number is told with the launch
        (lambda: z * y, (1, 1)),
        (lambda: (z * y).sum().backward(), (5, 4)),  # the last one adds to the gradient that there is
        (lambda: rd.empty_like(x), (0, 1)),
        (lambda: x.t().expand(3, 100)[1].detach(), (0, 0)),
        (lambda: x[:0] * 2, (0, 0)),
        (lambda: x[:0].sum(), (1, 1)),
    ):
        assert counted(null, call) == wanted, call.__code__.co_firstlineno


def test_what_scans_sorting_and_choosing_cost_is_counted(null):
    one, rows = rd.empty(1 << 17, device="cuda"), rd.empty(8, 5000, device="cuda")
    short, columns = rd.empty(8, 100, device="cuda"), rd.empty(1 << 14, 4, device="cuda")
    digits = 4  # of a float32: each is counted, its counts are scanned in two launches, and it is moved
    for call, wanted in (
        (lambda: short.cumsum(1), (1, 1)),
        (lambda: short.cumsum_(1), (1, 0)),
        (lambda: short.cumsum(0), (1, 1)),
        (lambda: one.cumsum(0), (2, 2)),
        (lambda: columns.cumsum(0), (2, 2)),
        (lambda: one.cummax(0), (2, 3)),
        (lambda: short.sort(1), (1, 2)),
        (lambda: short.t().sort(0), (1, 2)),
        (lambda: one.sort(0), (4 * digits, 3)),
        (lambda: short.topk(5), (1, 2)),
        (lambda: rows.topk(5), (1, 2)),
        (lambda: short.kthvalue(5), (2, 3)),
        (lambda: rows.median(1), (1, 2)),
        (lambda: short.mode(1), (2, 3)),
        (lambda: short.argmax(1), (1, 1)),
        (lambda: short.max(1), (1, 2)),
        (lambda: one.argmax(), (2, 2)),
        (lambda: short.nonzero(), (3, 2)),
        (lambda: rd.unique(short), (4, 4)),  # the places in order are not asked for
        (lambda: rd.searchsorted(one, short), (1, 1)),
    ):
        assert counted(null, call) == wanted, call.__code__.co_firstlineno


def test_what_layers_losses_and_optimizers_cost_is_counted(null):
    x, matrix, w = (rd.empty(shape, device="cuda") for shape in ((64,), (64, 64), (4,)))
    images, filters = rd.empty(2, 4, 8, 8, device="cuda"), rd.empty(4, 4, 3, 3, device="cuda")
    heads = rd.empty(2, 4, 16, 8, device="cuda")
    classes, places = rd.zeros(64, dtype=rd.int64).cuda(), rd.zeros(64, 64, dtype=rd.int64).cuda()
    moved, leaf = [rd.zeros(4).cuda(), rd.ones(4).cuda()], rd.zeros(64, device="cuda", requires_grad=True)
    leaf.grad = rd.zeros(64, device="cuda")
    adam, sgd = rd.optim.Adam([leaf]), rd.optim.SGD([leaf], lr=0.1)
    for call, wanted in (  # of the allocations one is all memory between launches
        (lambda: F.layer_norm(matrix, (64,), x, x), (1, 3)),
        (lambda: F.group_norm(images, 2, w, w), (1, 3)),
        (lambda: F.batch_norm(images, *moved, w, w, True), (3, 4)),
        (lambda: F.max_pool2d(images, 2), (1, 2)),
        (lambda: F.avg_pool2d(images, 2), (1, 1)),
        (lambda: F.conv2d(images, filters, w, padding=1), (1, 1)),
        (lambda: F.linear(matrix, matrix, x), (1, 1)),
        (lambda: F.cross_entropy(matrix, classes), (2, 4)),
        (lambda: F.embedding(classes, matrix), (1, 1)),
        (lambda: matrix.gather(1, places), (1, 1)),
        (lambda: matrix[classes], (1, 1)),
        (lambda: matrix.logsumexp(1), (1, 1)),
        (lambda: matrix.var(1), (4, 2)),
        (lambda: matrix.tril(), (3, 2)),
        (lambda: F.mse_loss(matrix, matrix), (2, 2)),
        (lambda: F.dropout(matrix, 0.5), (3, 2)),
        (lambda: F.scaled_dot_product_attention(heads, heads, heads), (1, 3)),
        (lambda: rd.randn(64, device="cuda"), (1, 1)),
        (lambda: matrix.copy_(places), (1, 0)),
        (adam.step, (1, 0)),
        (sgd.step, (1, 0)),
    ):
        assert counted(null, call) == wanted, call.__code__.co_firstlineno


def test_what_is_remembered_of_a_launch_holds_for_other_numbers_and_addresses(null):
    x, y = rd.empty(104, device="cuda"), rd.empty(104, device="cuda")

    def arguments(call):
        call()
        return null.launched[-1].arguments

    numbers = [arguments(lambda n=n: x * n)[3] for n in (0.0, -0.0, 1.0, True, 1, float("nan"), 1e300, float("inf"))]
    assert numbers[0] == 0 and numbers[1] == -(2**31) and numbers[2:5] == [0x3F800000] * 3
    assert numbers[5] == 0x7FC00000 and numbers[6] == numbers[7] == 0x7F800000
    for _ in range(2):
        assert arguments(lambda: x.add_(y))[1:4] == (x.data_ptr(), x.data_ptr(), y.data_ptr())
        assert null.launched[-1].grid == (1, 1, 1)
        assert arguments(lambda: x[4:].add_(y[4:]))[1] == x.data_ptr() + 16
        assert arguments(lambda: x[1:101].add_(y[4:]))[1:4] == (x.data_ptr() + 4, x.data_ptr() + 4, y.data_ptr() + 16)
        assert arguments(lambda: x[4:].sum())[1] == x.data_ptr() + 16 and null.launched[-1].name == "sum_rows"
        assert arguments(lambda: x[1:101].sum())[1] == x.data_ptr() + 4
        assert arguments(lambda: x[:100].copy_(y[1:101]))[2] == y.data_ptr() + 4
        assert arguments(lambda: x[1:101].fill_(3))[1] == x.data_ptr() + 4
        with rd.cuda.stream(rd.cuda.Stream()) as stream:
            for call in (lambda: x * 2, lambda: x.add_(y), lambda: x.sum(), lambda: x.fill_(1), lambda: x.copy_(y)):
                call()
                assert null.launched[-1].stream == stream.cuda_stream


def test_a_tensor_without_memory_is_an_error(null):
    x = rd.empty(3, device="cuda")
    bare = rd.empty(3, device="cuda")
    bare.untyped_storage().block = None  # as a wrapper's
    x + x
    x.add_(x)
    for call in (lambda: x + bare, lambda: x.add_(bare), lambda: bare + 1, lambda: rd.add(bare, x)):
        with pytest.raises(RuntimeError, match="its memory is that of its device"):
            call()


def test_a_number_on_the_cpu_is_sent_past_autograd(null):
    x, scale = rd.empty(3, device="cuda"), rd.tensor(2.0, requires_grad=True)
    y = x * scale
    assert y.grad_fn.next_functions[1][0].variable is scale and y.is_cuda
    y.sum().backward()
    assert scale.grad.device.type == "cpu"


def test_a_launch_covers_all_elements_and_is_planned_once(null):
    x = rd.empty(1003, device="cuda")
    null.launched.clear()
    y = x * 2
    one = null.launched[-1]
    assert (one.name, one.grid, one.block) == ("mul_contiguous", (1, 1, 1), (256, 1, 1))  # 250 vectors and 3 elements
    assert one.arguments[:3] == (1003, y.data_ptr(), x.data_ptr())
    rd.empty(1 << 20, device="cuda") * 2
    assert null.launched[-1].grid == (1024, 1, 1)
    x[1:] * 2  # no multiple of 16 bytes: one element a thread
    assert null.launched[-1].grid == (4, 1, 1)


# --- memory -----------------------------------------------------------------------------------------------------------


def test_memory_comes_back_for_the_next_tensor(null):
    x = rd.empty(100, device="cuda")
    address = x.data_ptr()
    assert rd.cuda.memory_allocated() == 512 and stats("requested_bytes") == 400
    del x
    gc.collect()
    assert rd.cuda.memory_allocated() == 0 and rd.cuda.memory_reserved() == 512
    y = rd.empty(128, device="cuda")  # of the same size class
    assert y.data_ptr() == address and len(null.allocated) == 1
    assert rd.cuda.max_memory_allocated() == 512
    del y
    gc.collect()
    rd.cuda.empty_cache()
    assert rd.cuda.memory_reserved() == 0 and not null.allocated
    rd.cuda.reset_peak_memory_stats()
    assert rd.cuda.max_memory_allocated() == 0 and "reserved" in rd.cuda.memory_summary()


def test_size_classes():
    assert [size_class(n) for n in (1, 512, 513, 1 << 20)] == [512, 512, 1024, 1 << 20]
    assert size_class((1 << 20) + 1) == 2 << 20 and size_class((2 << 20) + 1) == 4 << 20


def test_streams_have_blocks_of_their_own(null):
    stream = rd.cuda.Stream()
    with rd.cuda.stream(stream):
        assert rd.cuda.current_stream() == stream != rd.cuda.default_stream()
        x = rd.empty(100, device="cuda")
    assert rd.cuda.current_stream() == rd.cuda.default_stream()
    address = x.data_ptr()
    del x
    gc.collect()
    y = rd.empty(100, device="cuda")
    assert y.data_ptr() != address
    with rd.cuda.stream(stream):
        assert rd.empty(100, device="cuda").data_ptr() == address


def test_a_block_waits_for_the_streams_that_used_it(null, monkeypatch):
    done = []
    monkeypatch.setattr(null, "done", lambda event: bool(done))
    x = rd.empty(100, device="cuda")
    address = x.data_ptr()
    x.record_stream(rd.cuda.Stream())
    del x
    gc.collect()
    y = rd.empty(100, device="cuda")
    assert y.data_ptr() != address
    done.append(True)
    assert rd.empty(100, device="cuda").data_ptr() == address


def test_a_thread_has_a_stream_of_its_own(null):
    found = []
    with rd.cuda.stream(rd.cuda.Stream()):
        thread = threading.Thread(target=lambda: found.append(rd.cuda.current_stream()))
        thread.start()
        thread.join()
        assert found == [rd.cuda.default_stream()] != [rd.cuda.current_stream()]


def test_out_of_memory_empties_the_cache_tries_again_and_then_explains():
    with devices_of(cuda.NullDriver(capacity=8 << 20)):
        x = rd.empty(1 << 20, device="cuda")  # 4 MiB
        del x
        gc.collect()
        y = rd.empty((3 << 19) - 1, device="cuda")  # 6 MiB: only without what the cache has
        assert stats("segment") == 1 and rd.cuda.memory_stats()["num_alloc_retries"] == 1
        told = "Tried to allocate 4.00 MiB. .* 8.00 MiB of which 2.00 MiB is free. 1 tensors hold 6.00 MiB "
        with pytest.raises(OutOfMemoryError, match=told + r"\(the largest 6.00 MiB\); nothing is left in the cache"):
            rd.empty(1 << 20, device="cuda")
        assert issubclass(rd.cuda.OutOfMemoryError, RuntimeError) and rd.cuda.memory_stats()["num_ooms"] == 1
        assert rd.empty(100, device="cuda").is_cuda and y.is_cuda
        assert rd.cuda.mem_get_info()[1] == 8 << 20


def test_graphs_that_hold_memory_are_named_where_there_is_none_left():
    with devices_of(cuda.NullDriver(capacity=8 << 20)) as driver:
        x, graph = rd.empty(1 << 18, device="cuda"), rd.cuda.CUDAGraph()  # 1 MiB
        with rd.cuda.graph(graph):
            (x + 1) * 2  # 2 MiB, which nobody holds
        driver.launched.clear()
        with pytest.raises(
            OutOfMemoryError, match=r"5.00 MiB is free. 1 tensors hold 1.00 MiB .* 2.00 MiB belong to gra"
        ):
            rd.empty(6 << 18, device="cuda")
        other = rd.cuda.CUDAGraph()
        with pytest.raises(OutOfMemoryError), rd.cuda.graph(other):
            rd.empty(6 << 18, device="cuda")
        assert not driver.captures
        graph.replay()
        graph.reset()
        assert rd.empty(6 << 18, device="cuda").is_cuda


def test_a_process_may_be_allowed_a_part_of_the_memory(null):
    rd.cuda.set_per_process_memory_fraction(0.5)
    assert rd.cuda.get_per_process_memory_fraction() == 0.5
    with pytest.raises(OutOfMemoryError, match="16.00 MiB is free. 8.00 MiB allowed; 0 tensors hold 0 bytes"):
        rd.empty(3 << 20, device="cuda")
    x = rd.empty(1 << 20, device="cuda")
    del x
    gc.collect()
    assert rd.empty(3 << 19, device="cuda").is_cuda  # when the cache was emptied
    with pytest.raises(ValueError, match="Allowed range: 0~1"):
        rd.cuda.set_per_process_memory_fraction(2.0)
    with pytest.raises(TypeError, match="must be `float`"):
        rd.cuda.set_per_process_memory_fraction(1)


def test_threads_never_share_a_block(null):
    found, errors = [], []

    def work(seed):
        try:
            held = {}
            for k in range(1500):
                x = rd.empty((k * 7919 + seed) % 1000 + 1, device="cuda")
                held[k % 8] = x
                addresses = [one.data_ptr() for one in held.values()]
                assert len(set(addresses)) == len(addresses)
            found.append(held)
        except Exception as problem:
            errors.append(problem)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    former = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(former)
    assert not errors
    addresses = [x.data_ptr() for held in found for x in held.values()]
    assert len(set(addresses)) == len(addresses) == 32
    known = rd.cuda.memory_stats()
    assert known["allocation.all.current"] == 32 and known["allocation.all.allocated"] == 6000
    assert known["requested_bytes.all.current"] == sum(4 * x.numel() for held in found for x in held.values())


def test_a_tensor_without_elements_takes_no_memory(null):
    x = rd.empty(0, 3, device="cuda")
    assert x.data_ptr() == 0 and not null.allocated and (x + 1).shape == (0, 3) and x.cpu().shape == (0, 3)


def test_events_measure_and_order(null):
    start, end = rd.cuda.Event(enable_timing=True), rd.cuda.Event(enable_timing=True)
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    end.record()
    rd.cuda.synchronize()
    assert start.elapsed_time(end) >= 0 and end.query()
    stream = rd.cuda.Stream()
    stream.wait_stream(rd.cuda.current_stream())
    stream.synchronize()
    with pytest.raises(ValueError, match="enable_timing"):
        start.elapsed_time(stream.record_event())


def test_allocators_are_of_one_driver(null):
    assert isinstance(started().allocator, CachingAllocator) and started().allocator.driver is null


def test_nothing_is_looked_at_where_no_index_was_used(null):
    x = rd.ones(5, device="cuda")
    reads = []
    null.read = lambda address, nbytes, stream=0: reads.append(nbytes) or type(null).read(null, address, nbytes, stream)
    x.cpu()
    assert reads == [20]
    x[rd.tensor([1])].cpu()
    assert reads == [20, 32, 8 // 2]


def test_the_columns_of_a_batch_are_one_launch(null):
    x = rd.empty(3, 2, 8, 8, device="cuda")
    F.fold(F.unfold(x, 2), 8, 2)
    null.launched.clear()
    F.fold(F.unfold(x, 2), 8, 2)
    assert [one.name for one in null.launched] == ["columns_of_images", "images_of_columns"]


def test_no_matrix_of_scores_is_ever_in_memory(null):
    q = rd.empty(1, 1, 700, 8, device="cuda")
    F.scaled_dot_product_attention(q, q, q)
    rd.cuda.reset_peak_memory_stats()
    before = rd.cuda.memory_allocated()
    F.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert rd.cuda.max_memory_allocated() - before < 700 * 700
    null.launched.clear()
    leaf = q.clone().requires_grad_()
    F.scaled_dot_product_attention(leaf, leaf, leaf).backward(q)
    names = [one.name for one in null.launched]
    at = names.index("attended")
    assert [n for n in names[at:] if "gradient" in n or "products" in n] == [
        "products_of_rows", "gradient_of_queries", "gradient_of_keys",
    ]  # fmt: skip


# --- names ------------------------------------------------------------------------------------------------------------


def test_every_name_is_there_also_in_modules_of_its_own(null):
    assert all(getattr(rd.cuda, name) is not None for name in NAMES)
    for module, rows in MODULES.items():
        names = " ".join(rows.values()).split()
        found = importlib.import_module(f"redispatch.cuda.{module}")
        assert found is getattr(rd.cuda, module) and set(names) <= NAMES.keys()
        assert all(getattr(found, name) is getattr(rd.cuda, name) for name in names)
        with pytest.raises(AttributeError, match=f"module 'redispatch.cuda.{module}' has no attribute 'colour'"):
            _ = found.colour


def test_tensors_of_a_pool_lie_apart(null):
    pool = rd.cuda.MemPool()
    before = rd.empty(1000, device="cuda")
    with rd.cuda.use_mem_pool(pool):
        inside = rd.empty(1000, device="cuda")
    behind = rd.empty(1000, device="cuda")
    owners = [x._storage.block.pool.owner for x in (before, inside, behind)]
    assert owners == [None, pool._pools, None]
    address = inside.data_ptr()
    del inside, owners
    gc.collect()
    other = rd.empty(1000, device="cuda")
    with rd.cuda.use_mem_pool(pool):
        again = rd.empty(1000, device="cuda")
    assert other.data_ptr() != address == again.data_ptr()
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph, pool=pool.id):
        before * 2
    assert graph.pool() == pool.id and pool.use_count() == 2
    graph.reset()
    assert pool.use_count() == 1
    with pytest.raises(NotImplementedError, match="memory from the driver"):
        rd.cuda.MemPool(object())
    del pool, again
    gc.collect()
    assert not start().allocator.private


def test_regions_for_profilers_are_counted_and_harmless():
    nvtx = rd.cuda.nvtx
    assert (nvtx.range_push("a"), nvtx.range_push("b")) == (0, 1)
    with nvtx.range("part {}", 3):
        nvtx.mark("here")
    assert (nvtx.range_pop(), nvtx.range_pop(), nvtx.range_pop()) == (1, 0, -1)
    assert nvtx.range_end(nvtx.range_start("c")) is None


def test_what_a_device_can_is_told(null):
    assert not rd.cuda.can_device_access_peer(0, 0)
    with pytest.raises(AssertionError, match="Invalid peer device id"):
        rd.cuda.can_device_access_peer(0, 7)
    assert rd.cuda.get_arch_list() == ["sm_80"] and not rd.cuda.is_tf32_supported()
    assert rd.cuda.get_gencode_flags() == "-gencode compute=compute_80,code=sm_80"
    assert rd.cuda.get_allocator_backend() == "native" and rd.cuda.get_sync_debug_mode() == 0
    rd.cuda.set_sync_debug_mode("default")
    with pytest.raises(NotImplementedError, match="debug_mode must be 0 or 'default'"):
        rd.cuda.set_sync_debug_mode("warn")
    with pytest.warns(FutureWarning, match="renamed to memory_reserved"):
        assert rd.cuda.memory_cached() == rd.cuda.memory_reserved()
    stream = rd.cuda.Stream()
    with rd.cuda.StreamContext(stream):
        assert rd.cuda.current_stream() == stream
    assert rd.cuda.current_stream() != stream and rd.cuda.Stream.priority_range() == (0, -1)
    graph = rd.cuda.CUDAGraph()
    graph.enable_debug_mode()
    with pytest.raises(NotImplementedError, match="cannot be written to a file"):
        graph.debug_dump("graph.dot")


def test_a_seed_holds_for_devices_that_start_later():
    rd.manual_seed(11)
    with devices_of(cuda.NullDriver(capacity=1 << 20)):
        assert rd.cuda.initial_seed() == 11


def test_the_generators_of_all_devices_are_those_that_there_are_now():
    assert rd.cuda.default_generators == ()
    with devices_of(cuda.NullDriver(capacity=1 << 20)):
        assert [one.device for one in rd.cuda.default_generators] == [rd.device("cuda:0")]
    assert rd.cuda.default_generators == ()


def test_switches_of_cudnn_are_kept():
    assert not cudnn.is_available() and cudnn.version() is None and not cudnn.is_acceptable(rd.ones(2))
    cudnn.benchmark = True
    with cudnn.flags(enabled=False, deterministic=True):
        assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (False, False, True)
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (True, True, False)
    cudnn.benchmark = False
