"""The operators that know the rare dtypes: a table of PyTorch's kernels, by which ours refuse what its refuse.

Loops are compiled here for any dtype that can be computed in, so that nothing would stop `float8 + float8`, and a
program that relies on it would fail on PyTorch. The table says for each of PyTorch's kernels which classes of dtypes it
was not written for: complex32, wide unsigned integers, float8, and what only has bits. What is in no row computes.

`tests/parity/rare_dtypes.py` compares all of it with PyTorch. Read next: dispatch/layers/rare_dtypes.py, which asks.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload
from redispatch.dispatch.layers.ad_inplace_or_view import tensors_in
from redispatch.dispatch.layers.rare_dtypes import CHECK_DTYPES
from redispatch.dispatch.tensor import dtype, dtypes

from ..declare.declare import DECLARED
from ..declare.pointwise import Pointwise
from ..declare.structured import not_implemented

# The classes that a kernel does not know, its name with "*" for the operator's, and the operators.
REFUSED = """
u f   b  add_stub                     add sub rsub
u f c b  *_vml_cpu                    exp expm1 log log10 log1p log2 sqrt sin cos tan asin acos atan tanh erf erfc
u f c b  *_vml_cpu                    erfinv lgamma i0
  f   b  *_vml_cpu                    floor ceil round trunc
u f c b  *_cpu                        sinh cosh asinh acosh atanh rsqrt reciprocal sinc logit angle sigmoid
u f c b  *                            exp2 digamma bmm trace
  f c b  *                            nan_to_num
u f   b  *_cpu                        neg sign frac atan2 hypot gcd lcm heaviside copysign nextafter fmod remainder
u f   b  *_cpu                        maximum minimum lt le gt ge bitwise_not
  f   b  *_cpu                        signbit bitwise_and bitwise_or bitwise_xor
u     b  *_cpu                        abs
u f c b  *_cpu                        logical_and logical_or logical_xor logical_not logaddexp logaddexp2 igamma igammac
u f c b  *_cpu                        hardswish hardsigmoid silu mish elu softplus leaky_relu hardshrink xlogy zeta addr
      b  *_cpu                        mul eq ne
  f c b  *_cpu                        div
u f   b  div_floor_cpu                floor_divide
u f c b  pow                          pow ldexp
u f   b  sign_cpu                     sgn
u     b  maximum_cpu                  fmax
u     b  minimum_cpu                  fmin
  f      *_cpu                        fmax fmin
  f   b  *                            isinf
      b  ne_cpu                       isnan
u f c b  lerp_kernel_scalar           lerp.Scalar
u f c b  lerp_kernel_tensor           lerp.Tensor
u f   b  addcmul_cpu_out              addcmul
u f   b  addcdiv_cpu_out              addcdiv
u f   b  lshift_cpu                   __lshift__ bitwise_left_shift
u f   b  rshift_cpu                   __rshift__ bitwise_right_shift
u f   b  GeluKernelImpl               gelu
u f c b  softshrink_check             softshrink
u f   b  clamp_scalar_cpu             clamp hardtanh
u f   b  clamp_min_scalar_cpu         relu clamp_min
u f   b  clamp_max_scalar_cpu         clamp_max
u f   b  mse_cpu                      mse_loss
u f c b  sum_cpu                      sum
  f c    sum_cpu                      mean
  f   b  *_cpu                        nansum
u f c b  *_out_cpu                    prod cumsum cumprod logcumsumexp
u f   b  *_cpu                        cummax cummin aminmax median mode argmax argmin
u f   b  median_cpu                   nanmedian
u f   b  max_values_cpu               amax
u f   b  min_values_cpu               amin
  f      max_values_cpu               logsumexp
    c    exp_vml_cpu                  logsumexp
u f   b  *_cpu                        max.dim min.dim
u f   b  *_all                        max min
  f      norm_cpu                     linalg_vector_norm
  f      std_cpu                      std_mean var_mean
u f   b  nonzero_count_cpu            nonzero count_nonzero
  f c b  equal_notnan_cpu             equal
u f c b  aminmax_cpu                  histc
  f   b  softmax_lastdim_kernel_impl  _softmax _log_softmax
u   c b  addmm_impl_cpu_              mm addmm
u f c b  addmv_impl_cpu               mv addmv
u f c b  dot                          dot
u f   b  dot                          vdot
    c    vdot                         vdot
u f   b  slow_conv2d_cpu              convolution
u f c b  cross                        linalg_cross
  f      gather_expanded_index        gather
u   c b  scatter_gather_tensor_cpu    gather
u f c b  scatter_gather_tensor_cpu    scatter.src scatter_add
u f c b  scatter_gather_scalar_cpu    scatter.value
u f c b  *_cpu                        take
u     b  *                            index_select index_put _index_put_impl_ masked_select
u f   b  index_add_                   index_add
u f   b  *_cpu                        index_copy
u f   b  index_fill_cpu               index_fill
      b  index_cpu                    index
u f   b  *                            masked_fill tril triu
u f c b  *                            masked_scatter reflection_pad1d
u f c b  flip_cpu                     flip
  f   b  sorting_kernel_method_name   sort
u f   b  *_cpu                        topk kthvalue bincount
u f   b  searchsorted_out_cpu         searchsorted bucketize
u f c b  isin_default_cpu             isin.Tensor_Tensor
  f   b  unique                       _unique2 unique_consecutive
u f c b  max_pool1d_impl              max_pool2d_with_indices
  f   b  check_uniform_bounds         uniform_
  f   b  normal_kernel_cpu            normal_
u f   b  random_kernel_cpu            random_.default
  f      random_update_from_to        random_.from
u f   b  bernoulli_scalar_cpu_        bernoulli_.float
u f   b  bernoulli_tensor_cpu_self_   bernoulli bernoulli_.Tensor
  f      exponential_cpu              exponential_
      b  fill_cpu                     fill_ constant_pad_nd ones ones_like full full_like
u f   b  arange_cpu                   arange
u f c b  linspace_cpu                 linspace
u   c b  *                            eye
u f      *                            randperm
"""

# By other rules: float8 with a number, where PyTorch has another loop; sums of whole numbers, which are int64
REDUCED = {"mul": "mul_cpu_reduced_float", "div": "div_cpu_reduced_float", "sigmoid": "sigmoid_cpu_reduced_float"}
REDUCED["floor_divide"] = "div_floor_cpu_reduced_float"
OF_EXPONENTS = {"abs": "abs_cpu", "mm": "addmm_impl_cpu_", "addmm": "addmm_impl_cpu_"}  # not of float8_e8m0fnu
WIDENED = {"sum", "prod", "cumsum", "cumprod", "nansum"}


def read(table: str) -> dict[tuple[str, str], str]:
    """The name of the kernel by (class, operator), of what is refused."""
    found: dict[tuple[str, str], str] = {}
    for row in table.strip("\n").splitlines():
        kernel, *names = row[9:].split()
        for letter in row[:8].replace(" ", ""):
            found |= {(letter, name): kernel.replace("*", name.partition(".")[0]) for name in names}
    return found


KERNELS = read(REFUSED)


def class_of(element: dtype) -> str:
    """The letter of the class in the table; "" for what all kernels know, and for what is quantised."""
    if element in dtypes.FLOAT8:
        return "f"
    if element is dtypes.complex32:
        return "c"
    if element.name in ("uint16", "uint32", "uint64"):
        return "u"
    return "" if element.name in dtypes.DTYPES or element.name.startswith("q") else "b"


def check_factory(name: str, element: dtype | None, on: Any) -> None:
    """NotImplementedError where a factory, which gets no tensor, fills none of this dtype on the CPU."""
    if element is not None and element.bits and (on is None or on.type == "cpu"):
        if kernel := KERNELS.get((class_of(element), name)):
            raise not_implemented(kernel, element)


@CHECK_DTYPES.fill
def check_dtypes(op: OpOverload, stack: list[Any]) -> None:
    """NotImplementedError, under PyTorch's name for the kernel, where an operator does not know a dtype."""
    declared = DECLARED.get(op)
    if declared is None or op.schema.is_view:
        return
    element = computed_in(declared, op, stack)
    kind, name = class_of(element), declared.base_name
    if name == "copy_":
        check_copy(element, stack[1]._dtype)
    kernel = KERNELS.get((kind, f"{name}.{op._overloadname or 'default'}")) or KERNELS.get((kind, name))
    if element is dtypes.float8_e8m0fnu:
        kernel = kernel or OF_EXPONENTS.get(name)
    number = isinstance(declared, Pointwise) and any(
        isinstance(stack[i], bool | int | float | complex) for i in declared._operands
    )
    if kind == "f" and name in REDUCED and (number or name == "sigmoid"):
        kernel = REDUCED[name]
    elif kind == "b" and kernel and number and name not in ("pow", "clamp"):
        kernel = "copy_"  # of the number
    elif name == "clamp" and kernel and None in stack[1:3]:
        kernel = "clamp_max_scalar_cpu" if stack[1] is None else "clamp_min_scalar_cpu"
    if kernel:
        raise not_implemented(kernel, element)


def check_copy(to: dtype, of: dtype) -> None:
    """Raises where elements cannot be written as those of another dtype; few bits are not even by their own kind."""
    if isinstance(to, dtypes.Bare) and "int" in to.name:
        raise not_implemented("copy_kernel", to)
    if to is not of and class_of(to) == "b":
        raise not_implemented("copy_", to)


def computed_in(declared: Any, op: OpOverload, stack: list[Any]) -> dtype:
    """The dtype in which the operator would compute."""
    if isinstance(declared, Pointwise) and declared.variants:
        common = declared.common(tuple(stack))
        return common if class_of(common) == "b" else declared.computed_in(tuple(stack))
    for argument, value in zip(op.schema.arguments, stack, strict=True):
        if argument.name == "dtype" and isinstance(value, dtype):
            return value
    element: dtype = next(one for value in stack for one in tensors_in(value))._dtype
    whole = declared.base_name in WIDENED and element.category == dtypes.INTEGER and class_of(element) == "u"
    return dtypes.int64 if whole else element
