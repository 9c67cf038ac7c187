"""`redispatch.cuda`: streams, events, memory, graphs, under PyTorch's names. The work is done in kernels/cuda/runtime/.

A name is imported when it is first asked for, and the devices are started by the first call that needs one.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from redispatch.amp import by_device
from redispatch.dispatch.tensor import UntypedStorage
from redispatch.kernels.cuda.runtime import start
from redispatch.kernels.ops.legacy import TypedStorage

from . import nvtx

amp = by_device.cuda_amp

# The names of api.py: to ask for another one is to import nothing.
NAMES = frozenset(
    """
    CUDAGraph Event ExternalStream GraphTree NoCUDAError OutOfMemoryError Stream _is_in_bad_fork current_device
    current_stream default_generators default_stream device device_count device_of empty_cache
    get_amp_supported_dtype get_device_capability get_device_name get_device_properties
    get_per_process_memory_fraction get_rng_state get_rng_state_all graph graph_pool_handle init initial_seed
    is_available is_bf16_supported is_current_stream_capturing is_initialized make_graphed_callables manual_seed
    manual_seed_all max_memory_allocated max_memory_reserved mem_get_info memory_allocated memory_reserved
    memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary reset_accumulated_memory_stats
    reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats seed seed_all set_device
    set_per_process_memory_fraction set_rng_state set_rng_state_all set_stream stream synchronize
    MemPool StreamContext can_device_access_peer get_allocator_backend get_arch_list get_gencode_flags
    get_stream_from_external get_sync_debug_mode ipc_collect is_tf32_supported max_memory_cached memory_cached
    set_sync_debug_mode use_mem_pool
    """.split()
)
# Modules by which programs name some of these, too; `nvtx` has names of its own.
MODULES = {
    "graphs": "CUDAGraph graph graph_pool_handle is_current_stream_capturing make_graphed_callables",
    "memory": "MemPool OutOfMemoryError empty_cache get_allocator_backend get_per_process_memory_fraction "
    "max_memory_allocated max_memory_cached max_memory_reserved mem_get_info memory_allocated memory_cached "
    "memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary "
    "reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats "
    "set_per_process_memory_fraction use_mem_pool",
    "random": "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state "
    "set_rng_state_all",
    "streams": "Event ExternalStream Stream",
}


def __getattr__(name: str) -> Any:
    """A name that is first asked for."""
    if name not in NAMES:
        raise AttributeError(f"module 'redispatch.cuda' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.api"), name)


def __dir__() -> list[str]:
    return sorted({"amp", "nvtx", *MODULES, *NAMES})


def module_of(name: str) -> ModuleType:
    """`redispatch.cuda.<name>`, whose names are found when they are asked for."""
    own = set(MODULES[name].split())

    def found(word: str) -> Any:
        if word not in own:
            raise AttributeError(f"module 'redispatch.cuda.{name}' has no attribute {word!r}")
        return __getattr__(word)

    made = ModuleType(f"{__name__}.{name}")
    vars(made).update(__getattr__=found, __dir__=lambda: sorted(own))
    sys.modules[made.__name__] = made
    return made


graphs, memory, random, streams = map(module_of, MODULES)


def storage_is_on_cuda(self: Any) -> bool:
    """Returns whether a storage's memory is a CUDA device's."""
    return bool(self.device.type == "cuda")


def storage_on_cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    """A storage on a CUDA device: an index, a device, or the current one; itself if it is there."""
    start()
    from redispatch.backend.register import move_storage  # here, because it imports nn

    return move_storage(self, "cuda", device)


for _owner in (UntypedStorage, TypedStorage):
    setattr(_owner, "is_cuda", property(storage_is_on_cuda))  # noqa: B010  # mypy knows no such names
    setattr(_owner, "cuda", storage_on_cuda)  # noqa: B010  # attached here, and mypy knows no such name
