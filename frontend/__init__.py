"""redispatch: PyTorch's dispatcher, small enough to read in an evening and open enough to change at run time.

    import redispatch as rd
    x = rd.ones(2, 3, requires_grad=True)
    with rd.trace() as hops:
        y = (x * 2).sum()
    print(hops)

This file is the public face: the functions of operators, which their declarations name, and every other name of
`redispatch.X` by the room that it comes from. __init__.pyi lists them all, with types; docs/architecture.md draws the
rooms.
"""

from ._collector import resume as _resume  # isort: split

from importlib import import_module as _import_module
from math import e, inf, nan, pi
from sys import modules as _modules
from typing import TYPE_CHECKING
from typing import Any as _Any

from redispatch.dispatch import (
    AcceleratorError,
    DispatchKey,
    DispatchKeySet,
    Hop,
    OutOfMemoryError,
    Tag,
    breakpoint,
    define_backend,
    define_key,
    ops,
)
from redispatch.dispatch.config import config
from redispatch.dispatch.tensor import (
    Size,
    Tensor,
    UntypedStorage,
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    dtype,
    dtypes,
    finfo,
    get_default_dtype,
    iinfo,
    jagged,
    layout,
    memory_format,
    preserve_format,
    set_default_dtype,
    set_printoptions,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from redispatch.dispatch.tensor.dtypes import (
    bfloat16,
    bool,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    float,
    float16,
    float32,
    float64,
    half,
    int,
    int8,
    int16,
    int32,
    int64,
    long,
    short,
    uint8,
)
from redispatch.dispatch.transforms.regions import (
    _disable_functionalization,
    _enable_functionalization,
    _from_functional_tensor,
    _functionalize_commit_update,
    _functionalize_has_data_mutation,
    _functionalize_has_metadata_mutation,
    _functionalize_mutation_counter,
    _functionalize_replace,
    _functionalize_sync,
    _is_functional_tensor,
    _is_functional_tensor_base,
    _sync,
    _to_functional_tensor,
)
from redispatch.kernels import get_num_threads, set_num_threads
from redispatch.kernels.declare import return_types
from redispatch.kernels.declare.public import FUNCTIONS as _FUNCTIONS
from redispatch.kernels.ops import random
from redispatch.kernels.ops import written_over as _written_over
from redispatch.kernels.ops.complex_numbers import conj_physical
from redispatch.kernels.ops.contractions import tensordot, trace
from redispatch.kernels.ops.distances import cdist
from redispatch.kernels.ops.dtype_questions import can_cast, promote_types, result_type
from redispatch.kernels.ops.einsum import einsum
from redispatch.kernels.ops.from_data import (
    as_tensor,
    asarray,
    from_dlpack,
    from_numpy,
    frombuffer,
    is_complex,
    is_floating_point,
    is_tensor,
    numel,
    tensor,
)
from redispatch.kernels.ops.legacy import TYPES as _LEGACY_TYPES
from redispatch.kernels.ops.legacy import Storage, TypedStorage
from redispatch.kernels.ops.low_rank import pca_lowrank, svd_lowrank
from redispatch.kernels.ops.lu import lu
from redispatch.kernels.ops.masking import nonzero
from redispatch.kernels.ops.matrix_functions import chain_matmul
from redispatch.kernels.ops.norms import norm
from redispatch.kernels.ops.random import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from redispatch.kernels.ops.ranges import range
from redispatch.kernels.ops.rearrange import block_diag, broadcast_shapes, cartesian_prod, unravel_index
from redispatch.kernels.ops.searching import unique, unique_consecutive
from redispatch.kernels.ops.shape import atleast_1d, atleast_2d, atleast_3d, broadcast_tensors, meshgrid
from redispatch.kernels.ops.stft import stft

from . import _C, _ops, amp, autograd, backends, cuda, fft, func, library, linalg, overrides, utils
from . import _future as __future__
from . import ops as _operators
from ._C import DisableTorchFunction, DisableTorchFunctionSubclass
from ._higher_order_ops import cond, while_loop
from ._moved import enter as _enter_former_paths
from .amp import autocast, is_autocast_available
from .amp.by_device import (
    cpu,
    get_autocast_cpu_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cpu_enabled,
    set_autocast_cpu_dtype,
    set_autocast_cpu_enabled,
    set_autocast_gpu_dtype,
)
from .amp.functions import (
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from .autograd import (
    enable_grad,
    inference_mode,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_anomaly_enabled,
    set_grad_enabled,
)
from .func import vmap
from .utils import type_names as types
from .utils._device import get_default_device, set_default_device
from .utils.install import install
from .utils.settings import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    get_num_interop_threads,
    is_deterministic_algorithms_warn_only_enabled,
    is_storage,
    is_vulkan_available,
    is_warn_always_enabled,
    set_default_tensor_type,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_num_interop_threads,
    set_warn_always,
    typename,
    use_deterministic_algorithms,
)
from .utils.symbolic import (
    SymBool,
    SymFloat,
    SymInt,
    sym_float,
    sym_int,
    sym_ite,
    sym_max,
    sym_min,
    sym_not,
    sym_sqrt,
    sym_sum,
)
from .viz import explain

for _name, _function in _FUNCTIONS[""].items():  # of operators: each is named by its declaration in kernels/ops/
    globals().setdefault(_name, _function)
del _name, _function
globals().update(_written_over.FUNCTIONS)

__version__ = "0.1.0"
newaxis = None  # as an index, a dimension of size 1

globals().update(_LEGACY_TYPES)  # FloatTensor, LongStorage and so on


if TYPE_CHECKING:
    from . import (
        accelerator,
        array_api,
        backend,
        compiler,
        distributions,
        functional,
        nn,
        optim,
        profiler,
        serialization,
        special,
        testing,
        viz,
    )
    from .backend import get_device_module
    from .compiler import compile
    from .serialization import load, save
    from .utils.dlpack import to_dlpack

# Imported when first asked for: what not every program uses, and would be a third of the time of `import redispatch`.
_LATE = (
    "_subclasses",
    "accelerator",
    "array_api",
    "backend",
    "compiler",
    "distributions",
    "functional",
    "fx",
    "nn",
    "optim",
    "profiler",
    "serialization",
    "special",
    "testing",
)
_LATE_NAMES = {
    "compile": "compiler",
    "to_dlpack": "utils.dlpack",
    "load": "serialization",
    "save": "serialization",
    "get_device_module": "backend",
    "_register_device_module": "utils.backend_registration",
}


def __getattr__(name: str) -> _Any:
    """A part of the library that is imported late."""
    if name in _LATE:
        return _import_module(f"{__name__}.{name}")
    if name in _LATE_NAMES:
        return getattr(_import_module(f"{__name__}.{_LATE_NAMES[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE, *_LATE_NAMES})


# So that `from redispatch.types import Number` finds them. Files of these names in the root would hide Python's own.
_modules[f"{__name__}.types"] = types
_modules[f"{__name__}.random"] = random
_modules[f"{__name__}.return_types"] = return_types
_modules[f"{__name__}.__future__"] = __future__
_enter_former_paths()
_resume()
