"""grouped_mm: products of matrices of which one has groups of rows or of columns, one product a group.

`offs` says where each group ends. Layers with experts are so: the rows of a batch are sorted by expert, and each group
is multiplied by its expert's matrix. What the groups cut follows from the dimensions: rows of the first (2 and 3
dimensions), columns of the second (3 and 2), or the dimension that is summed over (2 and 2); 3 and 3 have no groups.
Both gradients are grouped products again, with the same ends.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes, empty

from ..declare.operator import leaf_kernel

TAKES = dtypes.float32, dtypes.bfloat16, dtypes.float16


def check(first: Tensor, second: Tensor, offs: Tensor | None, bias: Any) -> None:
    """RuntimeError for operands that have no grouped product."""
    for name, one in (("mat_a", first), ("mat_b", second)):
        if one._dtype not in TAKES:
            found = one._dtype.tensor_name
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {found}")
        if one.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if first._dtype is not second._dtype:
        raise RuntimeError("Expected mat_a and mat_b to be the same type")
    if first._shape[-1] != second._shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (offs is None) != (first.dim() == second.dim() == 3):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is not None and (offs.dim() != 1 or offs._dtype is not dtypes.int32):
        raise RuntimeError("Offsets have to be int32, in one dimension")
    groups = {one._shape[0] for one in (first, second) if one.dim() == 3}
    if len(groups | ({offs.numel()} if offs is not None else set())) > 1:
        raise RuntimeError(f"matrix batch sizes have to match, and be as many as offsets; got {sorted(groups)}")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")


@leaf_kernel(
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor",
    dispatches=True,
    derivative={
        "self": lambda grad, mat2, offs: grouped_mm_op.functional(grad, mat2.transpose(-2, -1), offs),
        "mat2": lambda grad, self, offs: grouped_mm_op.functional(self.transpose(-2, -1), grad, offs),
    },
    face=False,
)
def grouped_mm_op(self: Tensor, mat2: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: Any) -> Tensor:
    """The product of each group. Errors: RuntimeError for other shapes, dtypes and ends than said at the file's top."""
    check(self, mat2, offs, bias)
    if out_dtype is not None and out_dtype is not self._dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if offs is None:
        return self.bmm(mat2)
    rows, columns = self._shape[-2], mat2._shape[-1]
    shape = [offs.numel(), rows, columns] if self.dim() == mat2.dim() else [rows, columns]
    if self._device.type == "meta":
        return empty(shape, self._dtype, self._device)
    found = self.new_zeros(shape)
    cut = self._shape[1] if self.dim() == mat2.dim() else rows if self.dim() == 2 else columns
    for group, (start, end) in enumerate(pairwise([0, *offs.tolist()])):
        if not 0 <= start <= end <= cut:
            raise RuntimeError(f"offs: a group from {start} to {end} of {cut}")
        if self.dim() == mat2.dim():
            found[group].copy_(self[:, start:end].mm(mat2[start:end]))
        elif self.dim() == 2:
            found[start:end].copy_(self[start:end].mm(mat2[group]))
        else:
            found[:, start:end].copy_(self[group].mm(mat2[:, start:end]))
    return found


def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """Returns one product of matrices for each group; `offs`, int32, says where each ends. See this file's beginning.

    mat_a, mat_b: of float32, bfloat16 or float16. bias: none yet, as in PyTorch. out_dtype: that of `mat_a`.

    >>> import redispatch as rd
    >>> experts = rd.stack([rd.eye(2), 10 * rd.eye(2)])
    >>> rd.nn.functional.grouped_mm(rd.ones(3, 2), experts, offs=rd.tensor([1, 3], dtype=rd.int32))
    tensor([[ 1.,  1.],
            [10., 10.],
            [10., 10.]])
    """
    return grouped_mm_op.functional(mat_a, mat_b, offs, bias, out_dtype)
