"""The names of `redispatch.cuda`: PyTorch's, as far as there is what they are about.

if rd.cuda.is_available():
    x = rd.ones(3, device="cuda")
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from redispatch import _names
from redispatch.backend.register import Guard
from redispatch.dispatch.tensor import KINDS, Tensor, current_index, dtypes, set_current_index
from redispatch.kernels.cuda import driver
from redispatch.kernels.cuda.runtime.devices import start, started
from redispatch.kernels.cuda.runtime.memory import CachingAllocator
from redispatch.kernels.cuda.runtime.streams import ExternalStream, index_of

# Devices --------------------------------------------------------------------------------------------------------------


def is_available() -> bool:
    """Returns whether there is a device: a card, or the simulator (REDISPATCH_CUDA=sim)."""
    return device_count() > 0


def device_count() -> int:
    """Returns the number of devices."""
    found = driver()
    return 0 if found is None else found.count


def is_initialized() -> bool:
    """Returns whether a device was used already."""
    return started() is not None


def init() -> None:
    """Makes the devices usable, which the first use does otherwise. NoCUDAError where there is none."""
    start()


def current_device() -> int:
    """The index of the device on which tensors are made where none is named."""
    return index_of()


def set_device(device: Any) -> None:
    """Makes another one the current device. RuntimeError where there is none of that index."""
    index = index_of(device)
    set_current_index("cuda", index)


def device(device: Any) -> Guard:
    """`with device(1):` has that device be the current one inside the block."""
    return Guard("cuda", index_of(device))


def device_of(tensor: Tensor) -> Guard:
    """`with device_of(x):` has the tensor's device be the current one, if it is on one."""
    return Guard("cuda", tensor.device.index if tensor.is_cuda else current_index("cuda"))


def get_device_name(device: Any = None) -> str:
    """Returns the device's own name."""
    index_of(device)
    return start().driver.title


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability, (major, minor)."""
    index_of(device)
    return start().driver.capability


class _CudaDeviceProperties(SimpleNamespace):
    """The properties of a device."""


def get_device_properties(device: Any = None) -> _CudaDeviceProperties:
    """name, major, minor, total_memory and L2_cache_size in bytes, multi_processor_count, warp_size, and what else a
    program may go by: regs_per_multiprocessor, shared_memory_per_block, max_threads_per_multi_processor."""
    index, driver = index_of(device), start().driver
    major, minor = get_device_capability(index)
    total = driver.memory_info(index)[1]
    known = {"name": get_device_name(index), "major": major, "minor": minor, "total_memory": total}
    return _CudaDeviceProperties(**known, **driver.properties(index))


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Returns whether kernels of a device may read another one's memory: none does. AssertionError for what is no
    device."""
    for one in (device, peer_device):
        if not 0 <= index_of(one) < device_count():
            raise AssertionError("Invalid device id" if one is device else "Invalid peer device id")
    return False


def get_arch_list() -> list[str]:
    """Returns the architectures that kernels are compiled for: the device's own."""
    return [start().driver.target] if is_available() else []


def get_gencode_flags() -> str:
    """Returns those architectures as flags of NVIDIA's compiler."""
    targets = [name.removeprefix("sm_") for name in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{one},code=sm_{one}" for one in targets)


def is_tf32_supported() -> bool:
    """Returns whether products may be made of factors rounded to TF32: by NVIDIA's library, where there is one."""
    return is_available() and start().driver.blas is not None


def get_sync_debug_mode() -> int:
    """Returns whether it is told where a program waits for a device: 0, it is not."""
    return 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Takes 0, or "default". NotImplementedError for what would tell where a program waits."""
    if debug_mode not in (0, "default"):
        raise NotImplementedError(
            "it is not told where a program waits for a device: debug_mode must be 0 or 'default'"
        )


def get_stream_from_external(data_ptr: int, device: Any = None) -> ExternalStream:
    """A stream of another library's, known by CUDA's own number."""
    return ExternalStream(data_ptr, device)


def get_amp_supported_dtype() -> list[Any]:
    """The dtypes to which autocast can cast, the default one first."""
    return [dtypes.float16, dtypes.bfloat16, dtypes.float32]


def is_bf16_supported() -> bool:
    """Returns whether kernels compute with bfloat16: all do, in float32 registers."""
    return is_available()


def _is_in_bad_fork() -> bool:
    return False


# Memory ---------------------------------------------------------------------------------------------------------------


def _allocator() -> CachingAllocator:
    return start().allocator


def memory_stats(device: Any = None) -> dict[str, int]:
    """The allocator's statistics, under PyTorch's names: "allocated_bytes.all.current" and so on."""
    return _allocator().of(index_of(device)).told()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Returns memory statistics with a dictionary for each part of a name."""
    return _allocator().of(index_of(device)).nested()


def memory_snapshot() -> list[dict[str, Any]]:
    """A record for each piece of memory that the allocator has from the driver: where, how much, whose."""
    return _allocator().snapshot()


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold."""
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Any = None) -> int:
    """The most that they held since `reset_peak_memory_stats`."""
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Any = None) -> int:
    """Bytes that the allocator has from the driver, the cache included."""
    return memory_stats(device)["reserved_bytes.all.current"]


def max_memory_reserved(device: Any = None) -> int:
    """The most that it had."""
    return memory_stats(device)["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Has the peaks count from here."""
    _allocator().of(index_of(device)).reset_peaks()


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Has what was ever allocated and freed count from what there is now."""
    _allocator().of(index_of(device)).reset_totals()


PEAKS = "now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats."
reset_max_memory_allocated, reset_max_memory_cached = (
    _names.former(reset_peak_memory_stats, name, f"torch.cuda.{name} {PEAKS}")
    for name in ("reset_max_memory_allocated", "reset_max_memory_cached")
)


def empty_cache() -> None:
    """Gives memory that no tensor holds back to the driver."""
    if is_initialized():
        _allocator().empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free bytes, all bytes), as the driver counts them."""
    return start().driver.memory_info(index_of(device))


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Lets this process have no more than a part of a device's memory. TypeError for what is no float, ValueError for
    one that is not between 0 and 1."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if fraction < 0 or fraction > 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    index = index_of(device)
    _allocator().limits[index] = int(fraction * mem_get_info(index)[1])


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of a device's memory that this process may have."""
    index = index_of(device)
    total = mem_get_info(index)[1]
    return _allocator().limits.get(index, total) / total


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics in a few lines, which are not shortened further."""
    index = index_of(device)
    return _allocator().of(index).summary(index)


memory_cached = _names.former(
    memory_reserved, "memory_cached", "torch.cuda.memory_cached has been renamed to memory_reserved"
)
max_memory_cached = _names.former(
    max_memory_reserved, "max_memory_cached", "torch.cuda.max_memory_cached has been renamed to max_memory_reserved"
)


def get_allocator_backend() -> str:
    """Names the allocator: the library's own."""
    return "native"


def ipc_collect() -> None:
    """Gives back memory that other processes have let go; none is ever shared."""
    start()


# Random numbers -------------------------------------------------------------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator. Does nothing where there is no device, as in PyTorch."""
    if is_available():
        start()
        KINDS["cuda"].generators[current_index("cuda")].manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices."""
    if is_available():
        start()
        for generator in KINDS["cuda"].generators.values():
            generator.manual_seed(seed)


def _generator(device: Any = None) -> Any:
    start()
    return KINDS["cuda"].generators[index_of(device)]


def seed() -> None:
    """Seeds the current device's generator from the operating system."""
    _generator().seed()


def seed_all() -> None:
    """Seeds the generators of all devices alike, from the operating system."""
    manual_seed_all(_generator().seed())


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator().initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a device's generator, for `set_rng_state`: bytes on the CPU."""
    return _generator(device).get_state()


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Puts a device's generator into a state that `get_rng_state` gave."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[Any]:
    """The states of all devices' generators."""
    start()
    return [generator.get_state() for generator in KINDS["cuda"].generators.values()]


def set_rng_state_all(new_states: Any) -> None:
    """Puts the generators of all devices into these states."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def __getattr__(name: str) -> Any:
    if name == "default_generators":  # those of all devices, by their numbers
        return tuple(KINDS["cuda"].generators.values()) if is_available() and start() else ()
    raise AttributeError(f"module 'redispatch.cuda' has no attribute {name!r}")
