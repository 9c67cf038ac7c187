"""What writers of decompositions ask: dtypes, dimensions, strides; `out`; and an operator's part in a table."""

import torch
from torch._decomp import get_decompositions, register_decomposition
from torch._prims_common import (
    ELEMENTWISE_TYPE_PROMOTION_KIND as KIND,
)
from torch._prims_common import (
    canonicalize_dims,
    compute_elementwise_output_strides,
    compute_required_storage_length,
    corresponding_complex_dtype,
    dtype_to_type,
    elementwise_dtypes,
    get_higher_dtype,
    infer_size,
    make_contiguous_strides_for,
    reduction_dims,
    set_correction,
    suggest_memory_format,
    type_to_dtype,
)
from torch._prims_common.wrappers import elementwise_type_promotion_wrapper, out_wrapper
from torch.fx.experimental.proxy_tensor import make_fx

ints, halves, flag = torch.ones(1, dtype=torch.int32), torch.ones(1, dtype=torch.bfloat16), torch.ones(1).bool()
for operands, kind in (
    ((ints, 1.5), KIND.DEFAULT),
    ((ints, 1j), KIND.DEFAULT),
    ((halves, torch.tensor(1.0)), KIND.DEFAULT),
    ((halves, 1j), KIND.NO_OPMATH),
    ((flag,), KIND.INT_TO_FLOAT),
    ((flag, flag), KIND.BOOL_TO_LONG),
    ((halves,), KIND.ALWAYS_BOOL),
    ((torch.ones(1).to(torch.complex64), 2), KIND.COMPLEX_TO_FLOAT),
):
    print(kind.name, *elementwise_dtypes(*operands, type_promotion_kind=kind))
print(canonicalize_dims(3, (-1, 0)), reduction_dims((2, 3), None), infer_size((-1, 2), 6), set_correction(False))
print(make_contiguous_strides_for((2, 3, 4)), make_contiguous_strides_for((2, 3, 4), row_major=False))
print(compute_elementwise_output_strides(torch.ones(2, 3).t()), compute_required_storage_length((2, 3), (3, 1), 4))
print(corresponding_complex_dtype(torch.float64), dtype_to_type(torch.bool), type_to_dtype(int))
print(get_higher_dtype(torch.int32, halves), suggest_memory_format(torch.ones(2, 3, 4, 5).mT.permute(0, 3, 1, 2)))


@out_wrapper()
@elementwise_type_promotion_wrapper(type_promoting_args=("a", "b"), type_promotion_kind=KIND.INT_TO_FLOAT)
def ratio(a, b):
    return a / b


out = torch.empty(0)
print(ratio(ints, 2), ratio(torch.ones(2), torch.full((2,), 4.0), out=out) is out, out)

library = torch.library.Library("rules", "DEF")
library.define("twice(Tensor x) -> Tensor")
library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")


@register_decomposition(torch.ops.rules.twice)
def twice(x):
    return x + x


table = get_decompositions([torch.ops.rules.twice])
print(make_fx(torch.ops.rules.twice, decomposition_table=table)(torch.ones(1)).code.strip())
