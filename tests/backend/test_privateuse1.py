"""PyTorch's names for its spare backend. What they do lasts as long as the process, so it is done in another one."""

import subprocess
import sys

PROGRAM = """
import types
import redispatch as torch

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
print("as it should be")
"""


def test_the_spare_backend_is_renamed_and_gets_methods_module_and_kernels():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.stdout == "as it should be\n", done.stderr
