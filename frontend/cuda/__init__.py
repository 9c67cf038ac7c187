"""`redispatch.cuda`: streams, events, memory, graphs, under PyTorch's names. The work is done in kernels/cuda/runtime/.

A name is imported when it is first asked for, and the devices are started by the first call that needs one.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from redispatch import _names
from redispatch.amp import by_device
from redispatch.dispatch.tensor import UntypedStorage
from redispatch.kernels.first_use import RUNTIME as RUNTIME
from redispatch.kernels.first_use import start

from . import nvtx

amp = by_device.cuda_amp

# Modules by which programs name some of these, too; `nvtx` has names of its own.
MODULES = {
    "graphs": {
        f"{RUNTIME}.graphs": "CUDAGraph graph graph_pool_handle is_current_stream_capturing",
        ".graphed": "make_graphed_callables",
    },
    "memory": {
        f"{RUNTIME}.graphs": "MemPool use_mem_pool",
        f"{RUNTIME}.memory": "OutOfMemoryError",
        ".api": """
            empty_cache get_allocator_backend get_per_process_memory_fraction max_memory_allocated max_memory_cached
            max_memory_reserved mem_get_info memory_allocated memory_cached memory_reserved memory_snapshot memory_stats
            memory_stats_as_nested_dict memory_summary reset_accumulated_memory_stats reset_max_memory_allocated
            reset_max_memory_cached reset_peak_memory_stats set_per_process_memory_fraction
        """,
    },
    "random": {
        ".api": """
            get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed seed_all set_rng_state
            set_rng_state_all
        """
    },
    "streams": {f"{RUNTIME}.streams": "Event ExternalStream Stream"},
}
NAMES, __getattr__, _ = _names.late(
    globals(),
    {
        ".api": """
            _is_in_bad_fork can_device_access_peer current_device default_generators device device_count device_of
            get_amp_supported_dtype get_arch_list get_device_capability get_device_name get_device_properties
            get_gencode_flags get_stream_from_external get_sync_debug_mode init ipc_collect is_available
            is_bf16_supported is_initialized is_tf32_supported set_device set_sync_debug_mode
        """,
        f"{RUNTIME}.devices": "NoCUDAError",
        f"{RUNTIME}.graph_trees": "GraphTree",
        f"{RUNTIME}.streams": "StreamContext current_stream default_stream set_stream stream synchronize",
    },
)


def module_of(name: str) -> ModuleType:
    """`redispatch.cuda.<name>`, whose names are found when they are asked for, here and there."""
    made = ModuleType(f"{__name__}.{name}")
    made.__package__ = __package__
    places, found, _ = _names.late(vars(made), MODULES[name])
    NAMES.update(places)
    vars(made).update(__getattr__=found, __dir__=lambda: sorted(places))
    sys.modules[made.__name__] = made
    return made


graphs, memory, random, streams = map(module_of, MODULES)


def __dir__() -> list[str]:
    return sorted({"amp", "nvtx", *MODULES, *NAMES})


def storage_is_on_cuda(self: Any) -> bool:
    """Returns whether a storage's memory is a CUDA device's."""
    return bool(self.device.type == "cuda")


def storage_on_cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    """A storage on a CUDA device: an index, a device, or the current one; itself if it is there."""
    start()
    from redispatch.backend.register import move_storage  # here, because it imports nn

    return move_storage(self, "cuda", device)


setattr(UntypedStorage, "is_cuda", property(storage_is_on_cuda))  # noqa: B010  # mypy knows no such name
setattr(UntypedStorage, "cuda", storage_on_cuda)  # noqa: B010  # attached here, and mypy knows no such name
