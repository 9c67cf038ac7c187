"""A device of a user's own: registered, renamed, and given every operator."""

import copy
import gc
import importlib
import io
import os
import pickle
import subprocess
import sys
import threading

import pytest

import redispatch as rd
from redispatch import backend, nn
from redispatch.dispatch import DispatchKey, backends
from redispatch.dispatch.core.key import KEYS
from redispatch.testing import assert_close
from redispatch.testing.op_db import op_db
from redispatch.utils import _pytree as pytree

from .. import drawing
from ..seeing import seen
from .board import Board, add_on


@pytest.fixture
def memory():
    return Board()


@pytest.fixture
def board(memory):
    with backend.register("board", allocator=memory, fallback="cpu", count=2) as registered:
        yield registered
    gc.collect()


def test_a_tensor_lies_in_the_devices_memory(board, memory):
    x = rd.tensor([1.0, 2.0, 3.0], device="board")
    assert x.device == rd.device("board", 0) and x.is_board and not x.is_cpu and not rd.ones(1).is_board
    assert memory.read(x.data_ptr(), 12) == rd.tensor([1.0, 2.0, 3.0]).numpy().tobytes()
    assert str(rd.DispatchKeySet(x._keyset)) == "DispatchKeySet(Board, ADInplaceOrView, AutogradBoard, AutocastBoard)"
    assert memory.in_use() == 12
    view = x[1:]
    assert view.data_ptr() == x.data_ptr() + 4 and memory.in_use() == 12
    del x
    assert memory.in_use() == 12  # the view holds it
    del view
    gc.collect()
    assert memory.in_use() == 0


def test_no_kernel_for_the_cpu_reads_the_devices_memory(board):
    x = rd.ones(2, device="board")
    with pytest.raises(TypeError, match="can't convert board:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match=r"f32\[2\] on board:0: its memory is that of its device"):
        rd.ops.aten.add.Tensor.redispatch(rd.dispatch.keyset("CPU"), x, x)


def test_the_devices_kernel_is_called_and_gradients_come_for_free(memory):
    calls = []
    kernels = {"add.Tensor": add_on(memory, calls)}
    with backend.register("board", allocator=memory, kernels=kernels, fallback="cpu"):
        x = rd.tensor([1.0, 2.0], device="board", requires_grad=True)
        y = rd.add(x, x, alpha=2)
        assert calls == ["add"] and y.tolist() == [3.0, 6.0] and type(y.grad_fn).__name__ == "AddBackward0"
        (y * y).sum().backward()
        assert x.grad.tolist() == [18.0, 36.0] and x.grad.is_board
        with rd.trace() as hops:
            x + x
        assert [(hop.key, hop.entry.kernel.label) for hop in hops if hop.key == "Board"][0] == ("Board", "add")


def test_an_operator_without_kernel_is_an_error_that_names_it(memory):
    with backend.register("board", allocator=memory) as board:
        x = rd.ones(2, device="board")
        with pytest.raises(NotImplementedError, match="Could not run 'aten::mul.Tensor' .* 'Board'"):
            x * x
        assert x.view(2, 1).tolist() == [[1.0], [1.0]] and x[0].item() == 1.0
        board.run_on_cpu("mul.Tensor")
        assert (x * x).tolist() == [1.0, 1.0]
        with pytest.raises(NotImplementedError, match="aten::sub.Tensor"):
            x - x
        board.run_on_cpu()
        assert (x - x).tolist() == [0.0, 0.0]


def test_forms_that_write_bring_what_they_wrote_back(board):
    x, y = rd.ones(2, 2, device="board"), rd.full((2, 2), 3.0, device="board")
    assert x.t()[0].mul_(4).data_ptr() == x.data_ptr()
    assert x.tolist() == [[4.0, 1.0], [4.0, 1.0]] and x._version == 1
    out = rd.empty(0, device="board")
    assert rd.add(x, y, out=out) is out and out.tolist() == [[7.0, 4.0], [7.0, 4.0]]
    assert rd.ops.aten.add_.Tensor(x, x) is x and x.tolist() == [[8.0, 2.0], [8.0, 2.0]]


def test_a_view_cannot_fall_back(board):
    lib = rd.library.Library("lesson_views", "FRAGMENT")
    lib.define("first(Tensor(a) x) -> Tensor(a)")
    lib.impl("first", lambda x: x[0], "CPU")
    with pytest.raises(NotImplementedError, match="returns a view of its argument"):
        rd.ops.lesson_views.first(rd.ones(2, device="board"))
    lib._destroy()


def test_copies_go_between_devices_and_follow_layout_and_dtype(board):
    x = rd.arange(6.0).view(2, 3)
    there = x.board(1)
    assert there.device.index == 1 and there.board(1) is there and there.to("board:1") is there
    assert there.board(0).device.index == 0
    assert there.t().cpu().tolist() == x.t().tolist() and there.t().cpu().stride() == (1, 3)
    assert there.to("cpu", rd.int32).tolist() == [[0, 1, 2], [3, 4, 5]] and there.half().dtype is rd.float16
    there[:, 1].copy_(rd.tensor([9.0, 9.0]))
    assert there.tolist() == [[0.0, 9.0, 2.0], [3.0, 9.0, 5.0]]
    x.copy_(there[0])  # broadcasts
    assert x.tolist() == [[0.0, 9.0, 2.0]] * 2
    z = rd.tensor([1 + 2j, 3 - 1j], device="board")
    assert z.conj().cpu().tolist() == [1 - 2j, 3 + 1j] and z.conj().clone().tolist() == [1 - 2j, 3 + 1j]
    assert z.conj().imag.tolist() == [-2.0, 1.0] and z.tolist() == [1 + 2j, 3 - 1j]
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        rd.empty(2, device="meta").to("board")
    assert there.to("meta").is_meta


def test_printing_deepcopy_pickle_and_files(board):
    x = rd.tensor([[1.0, 2.5]], device="board:1", requires_grad=True)
    assert repr(x) == "tensor([[1.0000, 2.5000]], device='board:1', requires_grad=True)"
    twin = copy.deepcopy(x)
    assert twin.device == x.device and twin.data_ptr() != x.data_ptr() and twin.tolist() == x.tolist()
    assert pickle.loads(pickle.dumps(x)).device == x.device
    file = io.BytesIO()
    rd.save({"x": x}, file)
    for where, device in ((None, "board:1"), ("cpu", "cpu"), ({"board:1": "board:0"}, "board:0")):
        file.seek(0)
        loaded = rd.load(file, map_location=where)["x"]
        assert str(loaded.device) == device and loaded.tolist() == x.tolist() and loaded.requires_grad
    assert x.untyped_storage().nbytes() == 8


def test_storages_resize_and_move(board, memory):
    x = rd.tensor([1.0, 2.0], device="board")
    x.resize_(3)
    assert x.tolist()[:2] == [1.0, 2.0] and x.untyped_storage().nbytes() == 12
    moved = rd.ones(2).untyped_storage().board()
    assert moved.is_board and moved.device.index == 0 and moved.tolist() == rd.ones(2).untyped_storage().tolist()
    assert rd.empty(0, device="board").set_(moved, 0, (2,)).tolist() == [1.0, 1.0]


def test_a_model_trains_as_on_the_cpu(board):
    def trained(device):
        rd.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
        optimizer = rd.optim.Adam(model.parameters(), lr=0.1)
        inputs, wanted = rd.rand(16, 3), rd.rand(16, 1)
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs.to(device)), wanted.to(device))
            loss.backward()
            optimizer.step()
        return [parameter.detach().cpu() for parameter in model.parameters()]

    for ours, theirs in zip(trained("board:1"), trained("cpu"), strict=True):
        assert_close(ours, theirs)
    assert all(parameter.is_board for parameter in nn.Linear(2, 2).board(1).parameters())


def test_factories_guards_and_the_current_device(board):
    assert rd.zeros(2, device="board:1").device.index == 1
    assert rd.board.device_count() == 2 and rd.board.current_device() == 0 and rd.get_device_module("board") is rd.board
    with rd.board.device(1):
        assert rd.arange(3, device="board").device.index == 1
        seen = []
        thread = threading.Thread(target=lambda: seen.append(rd.board.current_device()))
        thread.start(), thread.join()
        assert seen == [0]  # another thread has chosen none
    assert rd.board.current_device() == 0
    with rd.device("board:1"):
        assert rd.ones(1).device.index == 1 and rd.tensor([1]).device.index == 1
    with pytest.raises(RuntimeError, match="board:2 was asked for, but there are 2 board devices"):
        rd.ones(1, device="board:2")
    with pytest.raises(RuntimeError, match="are 2 board devices"):
        rd.board.set_device(5)
    assert rd.board.current_device() == 0


def test_each_device_has_a_generator(board):
    rd.manual_seed(3)
    first = rd.rand(3, device="board:0").tolist()
    rd.manual_seed(3)
    rd.rand(5)  # the CPU's numbers are others
    assert rd.rand(3, device="board:0").tolist() == first
    own = rd.Generator("board:1").manual_seed(3)
    assert own.device == rd.device("board:1") and rd.rand(3, device="board:1", generator=own).tolist() == first
    state = rd.board.get_rng_state()
    drawn = rd.rand(2, device="board").tolist()
    rd.board.set_rng_state(state)
    assert rd.rand(2, device="board").tolist() == drawn


def test_autocast_knows_the_device_and_no_other(board):
    x, y = rd.ones(2, 2, device="board"), rd.ones(2, 2)
    with rd.autocast("board", dtype=rd.float16):
        assert (x @ x).dtype is rd.float16 and (y @ y).dtype is rd.float32
        assert rd.is_autocast_enabled("board") and not rd.is_autocast_enabled("cpu")
        with rd.autocast("board", enabled=False):
            assert (x @ x).dtype is rd.float32
    assert (x @ x).dtype is rd.float32
    with rd.autocast("cpu"):
        assert (x @ x).dtype is rd.float32 and (y @ y).dtype is rd.bfloat16


def test_modes_and_traces_see_the_devices_operators(board):
    names = seen(lambda: (rd.ones(2, device="board") * 2).sum())
    assert names == "ones mul.Tensor sum"  # and nothing of the way to the CPU


def test_two_devices_live_side_by_side_and_keep_their_memory_apart(board):
    with backend.register("shelf", allocator=Board(), fallback="cpu"):
        here, there = rd.ones(2, device="board"), rd.ones(2, device="shelf")
        assert here.is_board and there.is_shelf and not there.is_board
        assert (here.to("shelf") + there).tolist() == [2.0, 2.0]
        assert rd.DispatchKeySet(there._keyset).has(DispatchKey.AutogradShelf)
    assert not hasattr(rd, "shelf") and "Shelf" not in backends() and (here + here).tolist() == [2.0, 2.0]


def test_what_is_registered_is_taken_back_and_the_name_is_free_again(memory):
    before = dict(KEYS)
    for _ in range(2):
        with backend.register("board", allocator=memory):
            assert rd.ones(1, device="board").is_board
        assert KEYS == before and not hasattr(rd.Tensor, "is_board") and not hasattr(nn.Module, "board")
        with pytest.raises(RuntimeError, match="Expected one of cpu, .* device type at start of device string: board"):
            rd.device("board")


@pytest.mark.parametrize("name", ["cpu", "nn", "not a name", "float"])
def test_a_name_that_is_taken_is_refused_and_nothing_is_left_behind(name, memory):
    before = dict(KEYS)
    with pytest.raises((RuntimeError, ValueError)):
        backend.register(name, key="Taken", allocator=memory)
    assert KEYS == before and not hasattr(rd.Tensor, "is_nn")


def test_memory_that_runs_out_is_an_error_and_leaves_the_device_usable(board, memory):
    with pytest.raises(RuntimeError, match=r"board:0: 4194304 bytes were asked for"):
        rd.empty(1 << 20, device="board")
    assert rd.ones(1, device="board").item() == 1


def test_explain_shows_whose_kernel_answers(board):
    x = rd.ones(2, device="board")
    assert "Board                  cpu_fallback" in rd.explain(rd.ops.aten.mul.Tensor, x)
    assert "AutogradBoard          autograd" in rd.explain(rd.ops.aten.mul.Tensor, x)


@pytest.mark.parametrize("make", [lambda: rd.ones(2, device="bare"), lambda: rd.ones(2).to("bare")])
def test_the_cpu_cannot_make_the_memory_of_a_device_without_an_allocator(make):
    with backend.register("bare", fallback="cpu"):
        with pytest.raises(
            NotImplementedError, match="makes or moves memory of bare:0.*Register the backend with an al"
        ):
            make()


# PyTorch's names for its spare backend --------------------------------------------------------------------------------

# What they do lasts as long as the process, so it is done in another one.

PROGRAM = """
import types
import redispatch as torch
from redispatch.utils.backend_registration import _get_custom_mod_func as custom

def refused(error, text, call):
    try:
        call()
    except error as problem:
        assert text in str(problem), problem
    else:
        raise AssertionError(f"{text} was not raised")

spare = torch.device("privateuseone", 1)
refused(ModuleNotFoundError, "No module named 'torch.privateuseone'", lambda: torch.empty(2, device="privateuseone"))
torch.utils.rename_privateuse1_backend("npy")
torch.utils.rename_privateuse1_backend("npy")
refused(RuntimeError, "already been set! Current backend: npy", lambda: torch.utils.rename_privateuse1_backend("other"))
assert str(spare) == "npy:1" and torch.device("npy:1") is spare is torch.device("privateuseone:1")
assert torch._C._get_privateuse1_backend_name() == "npy"
refused(ModuleNotFoundError, "No module named 'torch.npy'", lambda: torch.empty(2, device="npy"))

module = types.ModuleType("npy")
module.get_amp_supported_dtype = lambda: [torch.bfloat16]
torch._register_device_module("npy", module)
assert torch.npy is module and torch.get_device_module("npy:0") is module
refused(RuntimeError, "has already been registered", lambda: torch._register_device_module("npy", module))
refused(RuntimeError, "Expected one of cpu, cuda", lambda: torch._register_device_module("xyz", module))
refused(NotImplementedError, "aten::empty.memory_format", lambda: torch.empty(2, device="npy"))

torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
assert not torch.ones(2).is_npy and not torch.ones(2).untyped_storage().is_npy
assert callable(torch.nn.Module.npy) and callable(torch.nn.utils.rnn.PackedSequence.npy)
refused(RuntimeError, "has already been registered with is_npy",
        torch.utils.generate_methods_for_privateuse1_backend)
refused(NotImplementedError, "aten::empty_strided", torch.ones(2).npy)

@torch.library.impl("aten::empty.memory_format", "npy")
def empty(size, **how):
    return torch._C._acc.create_empty_tensor(size, torch.float32)

made = torch.empty(2, 3, device="npy")
assert made.device.type == "npy" and made.is_npy and made.shape == (2, 3) and "npy" in repr(made)
with torch.autocast("npy"):
    assert torch.is_autocast_enabled("npy") and torch.get_autocast_dtype("npy") is torch.bfloat16
refused(RuntimeError, "Try to call torch.npy.count", lambda: custom("count"))
torch.npy.count = lambda: 3
assert custom("count")() == 3
print("as it should be")
"""


def test_the_spare_backend_is_renamed_and_gets_methods_module_and_kernels():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.stdout == "as it should be\n", done.stderr


# Each operator gives on a user's device, by the CPU fallback, what it gives on the CPU --------------------------------

# Boxed and specialised.

# What asks for memory of the CPU by its schema, or is about where a tensor is
ELSEWHERE = {
    "aten::get_device": "says which device it is",
    "aten::to.device": "moves to the device that the sample names",
    "aten::set_.source_Storage_storage_offset": "the storage of the sample is the CPU's",
    "aten::_pack_padded_sequence": "lengths must be on the CPU",
    "aten::_pack_padded_sequence_backward": "lengths must be on the CPU",
    "aten::_pad_packed_sequence": "lengths must be on the CPU",
    "aten::lstm.data": "batch sizes must be on the CPU",
    "aten::gru.data": "batch sizes must be on the CPU",
    "aten::rnn_tanh.data": "batch sizes must be on the CPU",
    "aten::rnn_relu.data": "batch sizes must be on the CPU",
}
INFOS = [info for info in op_db if info.name not in ELSEWHERE]


@pytest.fixture(scope="module")
def large_memory():
    return Board(1 << 24)


@pytest.mark.parametrize(
    "info",
    [pytest.param(info, id=str(info)) for info in INFOS if drawing.one_in(60, "board", info)],
)
def test_an_operator_gives_what_it_gives_on_the_cpu(info, large_memory):
    with backend.register("board", allocator=large_memory, fallback="cpu"):
        for sample in info.sample_inputs(info.main_dtype):
            rd.manual_seed(0)
            wanted = info.op(*sample.copy().arguments, **sample.kwargs)
            rd.manual_seed(0)
            moved = sample.map(lambda x: x.board()).map(lambda on: rd.device("board"), rd.device)
            found = info.op(*moved.arguments, **moved.kwargs)
            for ours, theirs in zip(pytree.tree_leaves(found), pytree.tree_leaves(wanted), strict=True):
                if isinstance(theirs, rd.Tensor):
                    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
                    if not theirs.is_meta and "empty" not in info.name and not info.random:
                        assert_close(ours.cpu(), theirs, equal_nan=True)
                else:
                    assert ours == theirs or ours != ours


# Backends of other packages ------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes a package that names an entry point."""

    def write(entry_point, body):
        folder = tmp_path / "a_backend-1.0.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: a-backend\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[torch.backends]\nfar_device = {entry_point}\n")
        (tmp_path / "a_backend.py").write_text(body)
        monkeypatch.delitem(sys.modules, "a_backend", raising=False)
        importlib.invalidate_caches()

    monkeypatch.syspath_prepend(tmp_path)
    yield write
    sys.modules.pop("a_backend", None)


def test_the_backends_of_other_packages_are_loaded_with_the_library(package, tmp_path, monkeypatch):
    package(
        "a_backend:load", "import sys\ndef load():\n    import redispatch as rd\n    print(rd.ones(2).sum().item())\n"
    )
    for switch, printed in (("1", "2.0\n"), ("0", "")):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TORCH_DEVICE_BACKEND_AUTOLOAD": switch}
        program = [sys.executable, "-c", "import redispatch"]
        assert subprocess.run(program, env=environment, capture_output=True, text=True).stdout == printed


@pytest.mark.parametrize(
    ("entry_point", "cause"),
    [
        ("a_backend:load", ZeroDivisionError),
        ("a_backend:nothing", AttributeError),
        ("nowhere:load", ModuleNotFoundError),
    ],
)
def test_a_backend_that_does_not_load_is_named(entry_point, cause, package, monkeypatch):
    package(entry_point, "def load():\n    1 / 0\n")
    words = r"^Failed to load the backend extension: far_device\. You can disable extension auto-loading with "
    with pytest.raises(RuntimeError, match=words) as failed:
        rd.backends.autoload()
    assert type(failed.value.__cause__) is cause
    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    rd.backends.autoload()
