"""Three operands, element by element: addcmul, addcdiv, lerp."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor, result_type

from ..declare.operator import operator, passed_on, pointwise
from ..declare.pointwise import WHOLE
from ..declare.public import public
from ..declare.structured import c_name

# --- addcmul, addcdiv ------------------------------------------------------------------------------------------------


@operator(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    inplace=True,
    out="out",
    autocast={"cuda": "promote"},
    refuses={"bool": "addcmul_cpu_out"},
    derivative={
        "self": passed_on,
        "tensor1": lambda grad, tensor2, value: grad * (tensor2 * value),
        "tensor2": lambda grad, tensor1, value: grad * (tensor1 * value),
    },
)
def addcmul(self, tensor1, tensor2, value):
    """Returns self + value tensor1 tensor2."""
    return self + value * tensor1 * tensor2


@addcmul.op.scalar(when={"value": 1})
def added_plain_product(self, tensor1, tensor2):
    return self + tensor1 * tensor2


@operator(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    inplace=True,
    out="out",
    autocast={"cuda": "promote"},
    refuses={WHOLE: "addcdiv_cpu_out"},
    derivative={
        "self": passed_on,
        "tensor1": lambda grad, tensor2, value: grad * (value / tensor2),
        "tensor2": lambda grad, tensor1, tensor2, value: -grad * (value * tensor1 / (tensor2 * tensor2)),
    },
)
def addcdiv(self, tensor1, tensor2, value):
    """Returns self + value tensor1 / tensor2."""
    return self + value * tensor1 / tensor2


@addcdiv.op.check
def check_addcdiv(self, tensor1, tensor2, value):
    kind = result_type(tensor1, tensor2)
    if not kind.is_floating_point and not kind.is_complex:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value "
            "* torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value "
            "* tensor1 / tensor2), for all dtypes."
        )


# --- lerp ------------------------------------------------------------------------------------------------------------


def between(self, end, weight):
    """From the nearer end, so that both ends are met exactly."""
    return self + weight * (end - self) if abs(weight) < 0.5 else end - (end - self) * (1 - weight)


def left(grad: Any, weight: Any) -> Any:
    return grad * (1 - weight)


def weighted(grad: Any, weight: Any) -> Any:
    return grad * weight


lerp_scalar_op = pointwise(
    "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
    between,
    inplace=True,
    out="Scalar_out",
    refuses={WHOLE: "lerp_kernel_scalar"},
    derivative={"self": left, "end": weighted},
)
lerp_tensor_op = pointwise(
    "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
    between,
    inplace=True,
    out="Tensor_out",
    refuses={WHOLE: "lerp_kernel_tensor"},
    derivative={"self": left, "end": weighted, "weight": lambda grad, self, end: grad * (end - self)},
    node="LerpBackward1",
)
lerp = public(lerp_scalar_op, lerp_tensor_op, doc="Returns self + weight (end - self).")


@lerp_scalar_op.check
def check_ends(self, end, weight):
    check_kind("end", self, end)


@lerp_tensor_op.check
def check_ends_and_weight(self, end, weight):
    check_kind("end", self, end)
    check_kind("weight", self, weight)


def check_kind(name: str, self: Tensor, other: Tensor) -> None:
    if self._dtype is not other._dtype:
        raise RuntimeError(f"expected dtype {c_name(self._dtype)} for `{name}` but got dtype {c_name(other._dtype)}")
