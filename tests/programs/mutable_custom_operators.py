"""After the part on mutable operators: what is written is declared, and counted."""

import torch
from torch import Tensor


@torch.library.custom_op("programs::sin_into", mutates_args={"out"})
def sin_into(x: Tensor, out: Tensor) -> None:
    out.copy_(torch.from_numpy(x.detach().numpy().copy()).sin())


@torch.library.custom_op("programs::accumulate", mutates_args=["totals"])
def accumulate(totals: list[Tensor], x: Tensor) -> Tensor:
    for total in totals:
        total.add_(x)
    return torch.stack([total.sum() for total in totals])


@torch.library.custom_op("programs::liar", mutates_args=())
def liar(x: Tensor) -> Tensor:
    x.add_(1)
    return x.clone()


print(torch.ops.programs.sin_into.default._schema)
print(torch.ops.programs.accumulate.default._schema)

x, out = torch.tensor([0.0, 1.0]), torch.empty(2)
sin_into(x, out)
print(out, out._version > 0)
out_view = torch.zeros(2, 2)
sin_into(x, out_view[1])
print(out_view, out_view._version > 0)

totals = [torch.zeros(2), torch.ones(2)]
print(accumulate(totals, x), totals, [t._version > 0 for t in totals])

print(torch.library.opcheck(sin_into, (x, torch.empty(2)), test_utils="test_schema"))
try:
    torch.library.opcheck(liar, (torch.ones(2),), test_utils="test_schema")
except Exception as problem:
    print(type(problem).__name__, "mutated" in str(problem))

weight = torch.ones(2, requires_grad=True)
saved = weight * 2
product = saved * saved
sin_into(x, saved.detach())
try:
    product.sum().backward()
except RuntimeError as problem:
    print("modified by an inplace operation" in str(problem))
try:
    sin_into.register_autograd(lambda ctx, grad: None)
except RuntimeError as problem:
    print(type(problem).__name__)
