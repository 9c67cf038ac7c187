"""redispatch: PyTorch's dispatcher, small enough to read in an evening and open enough to change at run time.

    import redispatch as rd
    x = rd.ones(2, 3, requires_grad=True)
    with rd.trace() as hops:
        y = (x * 2).sum()
    print(hops)

This file is the public face: the functions of operators, which their declarations name, and every other name of
`redispatch.X` in a row of the module that it comes from. __init__.pyi lists them all, with types; docs/architecture.md
draws the rooms.
"""

from ._collector import resume as _resume  # isort: split

from . import _selection  # isort: split

from sys import modules as _modules

from redispatch.kernels.declare import return_types
from redispatch.kernels.declare.public import FUNCTIONS as _FUNCTIONS
from redispatch.kernels.declare.public import IN_PLACE as _IN_PLACE
from redispatch.kernels.declare.public import private as _private
from redispatch.kernels.ops import random

from . import (
    _C,
    _absent,
    _hints,
    _names,
    _ops,
    amp,
    autograd,
    backends,
    cpu,
    cuda,
    fft,
    func,
    library,
    linalg,
    overrides,
    utils,
    viz,
)
from . import _future as __future__
from ._moved import PRESENT as _PRESENT
from ._moved import enter as _enter_former_paths
from .utils import type_names as types

_names.take(
    globals(),
    {
        "math": "e inf nan pi",
        "redispatch.dispatch": """
            AcceleratorError DispatchKey DispatchKeySet Hop OutOfMemoryError Tag breakpoint define_backend define_key
            ops
        """,
        "redispatch.dispatch.config": "config",
        "redispatch.dispatch.tensor": """
            Size StorageBase Tensor UntypedStorage channels_last channels_last_3d contiguous_format device dtype dtypes
            finfo get_default_dtype iinfo jagged layout legacy_contiguous_format memory_format preserve_format
            set_default_dtype set_printoptions sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr strided
        """,
        "redispatch.dispatch.tensor.layouts": """
            _mkldnn per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine
            per_tensor_symmetric qscheme
        """,
        "redispatch.dispatch.tensor.dtypes": """
            bfloat16 bit bits16 bits1x8 bits2x4 bits4x2 bits8 bool cdouble cfloat chalf complex32 complex64 complex128
            double float float16 float32 float64 float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz float8_e5m2
            float8_e5m2fnuz float8_e8m0fnu half int int1 int2 int3 int4 int5 int6 int7 int8 int16 int32 int64 long
            qint32 qint8 quint2x4 quint4x2 quint8 short uint1 uint2 uint3 uint4 uint5 uint6 uint7 uint8 uint16 uint32
            uint64
        """,
        "redispatch.dispatch.transforms.functionalize": """
            _disable_functionalization _enable_functionalization _freeze_functional_tensor _from_functional_tensor
            _functionalize_commit_update
            _functionalize_has_data_mutation _functionalize_has_metadata_mutation _functionalize_mutation_counter
            _functionalize_replace _functionalize_sync _is_functional_tensor _is_functional_tensor_base _sync
            _to_functional_tensor
        """,
        "redispatch.kernels": "get_num_threads set_num_threads",
        "redispatch.kernels.ops.rearrange": "block_diag broadcast_shapes cartesian_prod unravel_index",
        "redispatch.kernels.ops.complex_numbers": "conj_physical",
        "redispatch.kernels.ops.distances": "cdist",
        "redispatch.kernels.ops.inquiries": "can_cast promote_types result_type",
        "redispatch.kernels.ops.einsum": "einsum",
        "redispatch.kernels.ops.from_data": """
            as_tensor asarray from_dlpack from_file from_numpy frombuffer is_complex is_floating_point is_tensor numel
            tensor
        """,
        "redispatch.kernels.ops.linalg": "tensordot trace",
        "redispatch.kernels.ops.lu": "lu",
        "redispatch.kernels.ops.matrix_functions": "chain_matmul eig lstsq matrix_rank solve symeig",
        "redispatch.kernels.ops.norms": "norm",
        "redispatch.kernels.ops.ranges": "range",
        "redispatch.kernels.ops.masking": "nonzero",
        "redispatch.kernels.ops.sorting": "unique unique_consecutive",
        "redispatch.kernels.ops.shape": "atleast_1d atleast_2d atleast_3d broadcast_tensors meshgrid",
        "redispatch.kernels.ops.spectra": "pca_lowrank svd_lowrank",
        "redispatch.kernels.ops.stft": "stft",
        "._C": """
            AnyType Argument BoolType ComplexType DeviceObjType DictType DisableTorchFunction
            DisableTorchFunctionSubclass ExcludeDispatchKeyGuard FloatType FunctionSchema IntType ListType NoneType
            NumberType OptionalType StreamObjType StringType TensorType TupleType Type parse_schema
        """,
        "._higher_order_ops": "cond while_loop",
        ".amp": "GradScaler autocast is_autocast_available",
        ".amp.autocast_mode": """
            autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_dtype
            is_autocast_cache_enabled is_autocast_enabled set_autocast_cache_enabled set_autocast_dtype
            set_autocast_enabled
        """,
        ".amp.by_device": """
            get_autocast_cpu_dtype get_autocast_gpu_dtype is_autocast_cpu_enabled is_autocast_ipu_enabled
            is_autocast_xla_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_gpu_dtype
        """,
        ".autograd": """
            enable_grad inference_mode is_anomaly_check_nan_enabled is_anomaly_enabled is_grad_enabled
            is_inference_mode_enabled no_grad set_anomaly_enabled set_grad_enabled
        """,
        ".func": "vmap",
        ".utils._device": "get_default_device set_default_device",
        ".utils.install": "install installed uninstall",
        ".utils.settings": """
            are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision
            get_num_interop_threads is_deterministic_algorithms_warn_only_enabled is_storage is_vulkan_available
            is_warn_always_enabled set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision
            set_flush_denormal set_num_interop_threads set_warn_always typename use_deterministic_algorithms
            _nnpack_available
        """,
        ".utils.type_names": """
            SymBool SymFloat SymInt _sym_acos _sym_asin _sym_atan _sym_cos _sym_cosh _sym_log2 _sym_sin _sym_sinh
            _sym_sqrt _sym_tan _sym_tanh sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum
        """,
        ".viz": "explain",
        "._checks": """
            _assert _check _check_index _check_is_size _check_not_implemented _check_tensor_all _check_tensor_all_with
            _check_type _check_value _check_with sym_constrain_range sym_constrain_range_for_size
        """,
    },
)
for _name, _function in _FUNCTIONS[""].items():  # of operators: each is named by its declaration in kernels/ops/
    globals().setdefault(_name, _function)
del _name, _function
globals().update(_IN_PLACE)

__version__ = "0.1.0"
newaxis = None  # as an index, a dimension of size 1
has_lapack = has_spectral = True
has_mkl = has_openmp = False

for _row in _absent.TOP:
    globals().update(_absent.names_of(__name__, _row))
globals().update(dsmm=mm, spmm=mm, hsmm=hspmm, saddmm=sspaddmm, _segment_reduce=segment_reduce)  # noqa: F821  # of tables
del _row

# Imported when first asked for: what not every program uses, and would be a third of the time of `import redispatch`.
_places, __getattr__, __dir__ = _names.late(
    globals(),
    {
        "._streams": "Event Stream",
        ".": """
            _VF __config__ _custom_op _custom_ops _decomp _dispatch _dynamo _export _functorch _guards _inductor
            _library _prims
            _prims_common _python_dispatcher _refs _subclasses _tensor _tensor_str _utils _vmap_internals accelerator
            array_api at backend compiler distributions functional functorch futures fx hub jit masked multiprocessing
            nn optim profiler quasirandom selective serialization signal special storage testing torch_version version
        """,
        "._absent": _absent.NAMES,
        ".backend": "get_device_module",
        ".backends": "_import_device_backends _is_device_backend_autoload_enabled",
        ".compiler": "_disable_dynamo compile",
        "._swap_points": "swap",
        ".futures": "Future",
        ".jit": "fork wait",
        "redispatch.kernels.ops.foreach": "_foreach_*",
        "redispatch.kernels.ops.legacy": """
            BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage CharTensor
            ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor FloatStorage FloatTensor HalfStorage
            HalfTensor IntStorage IntTensor LongStorage LongTensor ShortStorage ShortTensor Storage _storage_classes
            _tensor_classes
        """,
        "redispatch.kernels.ops.random": """
            Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state
        """,
        "redispatch.kernels.ops.storages": "TypedStorage",
        ".serialization": "load save",
        ".serialization.writer": "PyTorchFileReader",
        ".testing": "FileCheck",
        ".utils.backend_registration": "_register_device_module",
        ".utils.data.dataloader": "thread_safe_generator",
        ".utils.dlpack": "to_dlpack",
    },
    _private,
)

_, vars(random)["__getattr__"], _ = _names.late(
    vars(random), {"redispatch.utils.data.dataloader": "thread_safe_generator"}
)
# So that `from redispatch.types import Number` finds them. Files of these names in the root would hide Python's own.
_modules[f"{__name__}.types"] = types
_modules[f"{__name__}.random"] = random
_modules[f"{__name__}.return_types"] = return_types
_modules[f"{__name__}.__future__"] = __future__
__all__ = [
    name for name, value in globals().items() if not (name.startswith("_") or isinstance(value, type(types)))
]  # as programs ask for it
__all__ += [name for name, place in _places.items() if "kernels" in place and not name.startswith("_")]
_enter_former_paths()
_absent.enter(_PRESENT)
_hints.install()
_resume()
backends.autoload()
