"""CUDA devices: what makes `device="cuda"` work, and the module `redispatch.cuda`.

Importing the library brings this file and no more of the room: a device comes to be when it is first asked for. Until
then a factory at the key CUDA, `x.to("cuda")` and the names of `redispatch.cuda` lead here, and say what is missing
where there is no device.

(The room is no folder `cuda` in the repository's root, which is the package: that would stand before the package `cuda`
of NVIDIA's own bindings where Python runs from that root.)

Read memory.py (the caching allocator), operands.py, pointwise.py, reductions.py, copies.py (the kernels at the key
CUDA), devices.py (what is registered), streams.py and face.py (the names of `redispatch.cuda`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from redispatch.amp import by_device
from redispatch.dispatch import call, impl, place_of
from redispatch.dispatch.tensor import FOREIGN, PINNERS, STARTERS, UntypedStorage
from redispatch.kernels.ops.creation import empty_op, empty_strided_op
from redispatch.kernels.ops.legacy import TypedStorage

PACKAGE = __name__

# The names of face.py: to ask `redispatch.cuda` for another one is to import nothing.
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


def start() -> None:
    """Makes the devices usable. AssertionError, as PyTorch's, where there is none; it says what to install."""
    import_module(f"{PACKAGE}.devices").start()


def face_name(name: str) -> Any:
    """A name of `redispatch.cuda` that is first asked for."""
    if name not in NAMES:
        raise AttributeError(f"module 'redispatch.cuda' has no attribute {name!r}")
    return getattr(import_module(f"{PACKAGE}.face"), name)


def module_of(name: str) -> ModuleType:
    """`redispatch.cuda.<name>`, whose names are found when they are asked for."""
    own = set(MODULES.get(name, "mark range range_end range_pop range_push range_start").split())

    def found(word: str) -> Any:
        if word not in own:
            raise AttributeError(f"module 'redispatch.cuda.{name}' has no attribute {word!r}")
        return face_name(word) if name in MODULES else getattr(import_module(f"{PACKAGE}.nvtx"), word)

    made = ModuleType(f"{by_device.cuda.__name__}.{name}")
    vars(made).update(__getattr__=found, __dir__=lambda: sorted(own))
    sys.modules[made.__name__] = made
    return made


def is_built() -> bool:
    """Whether CUDA devices can be used, if the machine has any: the library has its kernels always."""
    return True


def starting(op: Any) -> Callable[..., Any]:
    """A factory's kernel at the key CUDA before there is a device: makes it usable, which registers the real kernel."""

    def kernel(*args: Any) -> Any:
        start()
        return call(op, [*args])

    return kernel


for _op in (empty_op, empty_strided_op):
    impl(
        _op.functional,
        "CUDA",
        starting(_op.functional),
        convention="positional",
        place=place_of(starting),
        name="starts CUDA",
    )


def pinned(nbytes: int) -> Any:
    """Pinned memory, None where there is no device."""
    return import_module(f"{PACKAGE}.devices").pinned(nbytes)


def storage_is_on_cuda(self: Any) -> bool:
    """Whether a storage's memory is a CUDA device's."""
    return bool(self.device.type == "cuda")


def storage_on_cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    """A storage on a CUDA device: an index, a device, or the current one; itself if it is there."""
    start()
    return import_module("redispatch.backend.methods").move_storage(self, "cuda", device)


for _owner in (UntypedStorage, TypedStorage):
    setattr(_owner, "is_cuda", property(storage_is_on_cuda))  # noqa: B010  # mypy knows no such names
    setattr(_owner, "cuda", storage_on_cuda)  # noqa: B010


def over_foreign(name: str, given: Any) -> Any:
    """A tensor over memory of another library's."""
    start()
    return getattr(import_module(f"{PACKAGE}.interop"), name)(given)


STARTERS["cuda"] = start
PINNERS.append(pinned)
FOREIGN |= {
    "__cuda_array_interface__": lambda producer: over_foreign("from_interface", producer),
    0: lambda capsule: over_foreign("from_capsule", capsule),
    2: lambda producer: over_foreign("from_dlpack", producer),  # DLPack's code of CUDA
}
vars(by_device.cuda).update(
    {name: module_of(name) for name in (*MODULES, "nvtx")},
    __getattr__=face_name,
    __dir__=lambda: sorted({"amp", "nvtx", *MODULES, *NAMES}),
)
