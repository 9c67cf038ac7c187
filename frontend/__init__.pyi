"""Made by `python -m redispatch.stubs`: the public names, with the types of operators' functions."""

from typing import Any

from redispatch.kernels.declare import return_types as return_types
from redispatch.kernels.ops import random as random
from redispatch.kernels.ops.legacy import Storage as Storage, TypedStorage as TypedStorage
from . import _C as _C, _ops as _ops, amp as amp, autograd as autograd, backends as backends, cuda as cuda, fft as fft, func as func, library as library, linalg as linalg, overrides as overrides, utils as utils, viz as viz, _future as __future__, _functorch as _functorch, _subclasses as _subclasses, accelerator as accelerator, array_api as array_api, backend as backend, compiler as compiler, distributions as distributions, functional as functional, functorch as functorch, fx as fx, nn as nn, optim as optim, profiler as profiler, serialization as serialization, special as special, testing as testing
from .utils import type_names as types
from math import e as e, inf as inf, nan as nan, pi as pi
from redispatch.dispatch import AcceleratorError as AcceleratorError, DispatchKey as DispatchKey, DispatchKeySet as DispatchKeySet, Hop as Hop, OutOfMemoryError as OutOfMemoryError, Tag as Tag, breakpoint as breakpoint, define_backend as define_backend, define_key as define_key, ops as ops
from redispatch.dispatch.config import config as config
from redispatch.dispatch.tensor import Size as Size, UntypedStorage as UntypedStorage, channels_last as channels_last, channels_last_3d as channels_last_3d, contiguous_format as contiguous_format, device as device, dtype as dtype, dtypes as dtypes, finfo as finfo, get_default_dtype as get_default_dtype, iinfo as iinfo, jagged as jagged, layout as layout, memory_format as memory_format, preserve_format as preserve_format, set_default_dtype as set_default_dtype, set_printoptions as set_printoptions, sparse_bsc as sparse_bsc, sparse_bsr as sparse_bsr, sparse_coo as sparse_coo, sparse_csc as sparse_csc, sparse_csr as sparse_csr, strided as strided
from redispatch.dispatch.tensor.dtypes import bfloat16 as bfloat16, bool as bool, cdouble as cdouble, cfloat as cfloat, complex64 as complex64, complex128 as complex128, double as double, float as float, float16 as float16, float32 as float32, float64 as float64, half as half, int as int, int8 as int8, int16 as int16, int32 as int32, int64 as int64, long as long, short as short, uint8 as uint8
from redispatch.dispatch.transforms.functionalize import _disable_functionalization as _disable_functionalization, _enable_functionalization as _enable_functionalization, _from_functional_tensor as _from_functional_tensor, _functionalize_commit_update as _functionalize_commit_update, _functionalize_has_data_mutation as _functionalize_has_data_mutation, _functionalize_has_metadata_mutation as _functionalize_has_metadata_mutation, _functionalize_mutation_counter as _functionalize_mutation_counter, _functionalize_replace as _functionalize_replace, _functionalize_sync as _functionalize_sync, _is_functional_tensor as _is_functional_tensor, _is_functional_tensor_base as _is_functional_tensor_base, _sync as _sync, _to_functional_tensor as _to_functional_tensor
from redispatch.kernels import get_num_threads as get_num_threads, set_num_threads as set_num_threads
from redispatch.kernels.ops.rearrange import block_diag as block_diag, broadcast_shapes as broadcast_shapes, cartesian_prod as cartesian_prod, unravel_index as unravel_index
from redispatch.kernels.ops.distances import cdist as cdist
from redispatch.kernels.ops.inquiries import can_cast as can_cast, promote_types as promote_types, result_type as result_type
from redispatch.kernels.ops.from_data import is_complex as is_complex, is_floating_point as is_floating_point, is_tensor as is_tensor, numel as numel
from redispatch.kernels.ops.linalg import trace as trace
from redispatch.kernels.ops.lu import lu as lu
from redispatch.kernels.ops.matrix_functions import chain_matmul as chain_matmul
from redispatch.kernels.ops.random import Generator as Generator, default_generator as default_generator, get_rng_state as get_rng_state, initial_seed as initial_seed, manual_seed as manual_seed, seed as seed, set_rng_state as set_rng_state
from redispatch.kernels.ops.ranges import range as range
from redispatch.kernels.ops.masking import nonzero as nonzero
from redispatch.kernels.ops.sorting import unique as unique, unique_consecutive as unique_consecutive
from redispatch.kernels.ops.shape import atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d
from redispatch.kernels.ops.spectra import pca_lowrank as pca_lowrank, svd_lowrank as svd_lowrank
from redispatch.kernels.ops.stft import stft as stft
from ._C import DisableTorchFunction as DisableTorchFunction, DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from ._higher_order_ops import cond as cond, while_loop as while_loop
from .amp import autocast as autocast, is_autocast_available as is_autocast_available
from .amp.autocast_mode import autocast_decrement_nesting as autocast_decrement_nesting, autocast_increment_nesting as autocast_increment_nesting, clear_autocast_cache as clear_autocast_cache, get_autocast_dtype as get_autocast_dtype, is_autocast_cache_enabled as is_autocast_cache_enabled, is_autocast_enabled as is_autocast_enabled, set_autocast_cache_enabled as set_autocast_cache_enabled, set_autocast_dtype as set_autocast_dtype, set_autocast_enabled as set_autocast_enabled
from .amp.by_device import cpu as cpu, get_autocast_cpu_dtype as get_autocast_cpu_dtype, get_autocast_gpu_dtype as get_autocast_gpu_dtype, is_autocast_cpu_enabled as is_autocast_cpu_enabled, set_autocast_cpu_dtype as set_autocast_cpu_dtype, set_autocast_cpu_enabled as set_autocast_cpu_enabled, set_autocast_gpu_dtype as set_autocast_gpu_dtype
from .autograd import enable_grad as enable_grad, inference_mode as inference_mode, is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled, is_anomaly_enabled as is_anomaly_enabled, is_grad_enabled as is_grad_enabled, is_inference_mode_enabled as is_inference_mode_enabled, no_grad as no_grad, set_anomaly_enabled as set_anomaly_enabled, set_grad_enabled as set_grad_enabled
from .func import vmap as vmap
from .utils._device import get_default_device as get_default_device, set_default_device as set_default_device
from .utils.install import install as install
from .utils.settings import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled, get_deterministic_debug_mode as get_deterministic_debug_mode, get_float32_matmul_precision as get_float32_matmul_precision, get_num_interop_threads as get_num_interop_threads, is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled, is_storage as is_storage, is_vulkan_available as is_vulkan_available, is_warn_always_enabled as is_warn_always_enabled, set_default_tensor_type as set_default_tensor_type, set_deterministic_debug_mode as set_deterministic_debug_mode, set_float32_matmul_precision as set_float32_matmul_precision, set_flush_denormal as set_flush_denormal, set_num_interop_threads as set_num_interop_threads, set_warn_always as set_warn_always, typename as typename, use_deterministic_algorithms as use_deterministic_algorithms
from .utils.type_names import SymBool as SymBool, SymFloat as SymFloat, SymInt as SymInt, sym_float as sym_float, sym_int as sym_int, sym_ite as sym_ite, sym_max as sym_max, sym_min as sym_min, sym_not as sym_not, sym_sqrt as sym_sqrt, sym_sum as sym_sum
from .viz import explain as explain
from .backend import get_device_module as get_device_module
from .compiler import compile as compile
from .serialization import load as load, save as save
from .utils.backend_registration import _register_device_module as _register_device_module
from .utils.dlpack import to_dlpack as to_dlpack
from ._C._VariableFunctions import *
from ._C._VariableFunctions import _amp_foreach_non_finite_check_and_unscale_ as _amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_ as _amp_update_scale_, _conj as _conj, _conj_copy as _conj_copy, _conj_physical as _conj_physical, _efficientzerotensor as _efficientzerotensor, _foreach_abs as _foreach_abs, _foreach_abs_ as _foreach_abs_, _foreach_acos as _foreach_acos, _foreach_acos_ as _foreach_acos_, _foreach_add as _foreach_add, _foreach_add_ as _foreach_add_, _foreach_addcdiv as _foreach_addcdiv, _foreach_addcdiv_ as _foreach_addcdiv_, _foreach_addcmul as _foreach_addcmul, _foreach_addcmul_ as _foreach_addcmul_, _foreach_asin as _foreach_asin, _foreach_asin_ as _foreach_asin_, _foreach_atan as _foreach_atan, _foreach_atan_ as _foreach_atan_, _foreach_ceil as _foreach_ceil, _foreach_ceil_ as _foreach_ceil_, _foreach_clamp_max as _foreach_clamp_max, _foreach_clamp_max_ as _foreach_clamp_max_, _foreach_clamp_min as _foreach_clamp_min, _foreach_clamp_min_ as _foreach_clamp_min_, _foreach_clone as _foreach_clone, _foreach_copy_ as _foreach_copy_, _foreach_cos as _foreach_cos, _foreach_cos_ as _foreach_cos_, _foreach_cosh as _foreach_cosh, _foreach_cosh_ as _foreach_cosh_, _foreach_div as _foreach_div, _foreach_div_ as _foreach_div_, _foreach_erf as _foreach_erf, _foreach_erf_ as _foreach_erf_, _foreach_erfc as _foreach_erfc, _foreach_erfc_ as _foreach_erfc_, _foreach_exp as _foreach_exp, _foreach_exp_ as _foreach_exp_, _foreach_expm1 as _foreach_expm1, _foreach_expm1_ as _foreach_expm1_, _foreach_floor as _foreach_floor, _foreach_floor_ as _foreach_floor_, _foreach_frac as _foreach_frac, _foreach_frac_ as _foreach_frac_, _foreach_lerp as _foreach_lerp, _foreach_lerp_ as _foreach_lerp_, _foreach_lgamma as _foreach_lgamma, _foreach_lgamma_ as _foreach_lgamma_, _foreach_log as _foreach_log, _foreach_log10 as _foreach_log10, _foreach_log10_ as _foreach_log10_, _foreach_log1p as _foreach_log1p, _foreach_log1p_ as _foreach_log1p_, _foreach_log2 as _foreach_log2, _foreach_log2_ as _foreach_log2_, _foreach_log_ as _foreach_log_, _foreach_max as _foreach_max, _foreach_maximum as _foreach_maximum, _foreach_maximum_ as _foreach_maximum_, _foreach_minimum as _foreach_minimum, _foreach_minimum_ as _foreach_minimum_, _foreach_mm as _foreach_mm, _foreach_mul as _foreach_mul, _foreach_mul_ as _foreach_mul_, _foreach_neg as _foreach_neg, _foreach_neg_ as _foreach_neg_, _foreach_norm as _foreach_norm, _foreach_pow as _foreach_pow, _foreach_pow_ as _foreach_pow_, _foreach_powsum as _foreach_powsum, _foreach_reciprocal as _foreach_reciprocal, _foreach_reciprocal_ as _foreach_reciprocal_, _foreach_round as _foreach_round, _foreach_round_ as _foreach_round_, _foreach_rsqrt as _foreach_rsqrt, _foreach_rsqrt_ as _foreach_rsqrt_, _foreach_sigmoid as _foreach_sigmoid, _foreach_sigmoid_ as _foreach_sigmoid_, _foreach_sign as _foreach_sign, _foreach_sign_ as _foreach_sign_, _foreach_sin as _foreach_sin, _foreach_sin_ as _foreach_sin_, _foreach_sinh as _foreach_sinh, _foreach_sinh_ as _foreach_sinh_, _foreach_sqrt as _foreach_sqrt, _foreach_sqrt_ as _foreach_sqrt_, _foreach_sub as _foreach_sub, _foreach_sub_ as _foreach_sub_, _foreach_tan as _foreach_tan, _foreach_tan_ as _foreach_tan_, _foreach_tanh as _foreach_tanh, _foreach_tanh_ as _foreach_tanh_, _foreach_trunc as _foreach_trunc, _foreach_trunc_ as _foreach_trunc_, _foreach_zero_ as _foreach_zero_, _neg_view as _neg_view, _neg_view_copy as _neg_view_copy, _standard_gamma as _standard_gamma, _standard_gamma_grad as _standard_gamma_grad

__version__: str
def as_tensor(*args: Any, **kwargs: Any) -> Tensor: ...
def asarray(*args: Any, **kwargs: Any) -> Tensor: ...
def broadcast_tensors(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]: ...
def einsum(*args: Any, **kwargs: Any) -> Tensor: ...
def from_dlpack(*args: Any, **kwargs: Any) -> Tensor: ...
def from_numpy(*args: Any, **kwargs: Any) -> Tensor: ...
def frombuffer(*args: Any, **kwargs: Any) -> Tensor: ...
def meshgrid(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]: ...
def norm(*args: Any, **kwargs: Any) -> Tensor: ...
def tensor(*args: Any, **kwargs: Any) -> Tensor: ...
def tensordot(*args: Any, **kwargs: Any) -> Tensor: ...
