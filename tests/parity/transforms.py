"""What transforms give, and what they refuse in which words, on both libraries: a table of small calls.

Run with a Python that has torch: `python tests/parity/transforms.py [names]`. Exits non-zero on any difference. Where
both refuse, the classes are to be equal, and the texts up to what ours adds: their first forty characters. Not in the
table is what works here and not there: `aux` of anything, hooks on saved tensors under `grad`, batches of no examples.
"""

from __future__ import annotations

import math
import sys
import warnings

import torch

import redispatch


def x(lib, *shape):
    return (lib.arange(math.prod(shape), dtype=lib.float64) / 7 - 0.5).reshape(shape)


def linear(lib):
    module = lib.nn.Linear(2, 2).double()
    with lib.no_grad():
        module.weight.copy_(x(lib, 2, 2))
        module.bias.copy_(x(lib, 2))
    return module


def tied(lib):
    """A module with two layers of the same parameters, and a buffer."""

    class Tied(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = linear(lib), lib.nn.Linear(2, 2).double()
            self.b.weight, self.b.bias = self.a.weight, self.a.bias
            self.register_buffer("buf", lib.zeros(2, dtype=lib.float64))

        def forward(self, value, scale=1):
            return self.b(self.a(value)) * scale + self.buf

    return Tied()


CASES = {
    "no args": lambda lib: lib.func.vmap(lambda: lib.ones(2))(),
    "no tensor": lambda lib: lib.func.vmap(lambda a: a)(3),
    "in dims none all": lambda lib: lib.func.vmap(lambda a: a, in_dims=None)(x(lib, 3)),
    "in dims tuple none": lambda lib: lib.func.vmap(lambda a, b: a, in_dims=(None, None))(x(lib, 3), x(lib, 3)),
    "in dims len": lambda lib: lib.func.vmap(lambda a, b: a + b, in_dims=(0,))(x(lib, 3), x(lib, 3)),
    "in dims len2": lambda lib: lib.func.vmap(lambda a: a, in_dims=(0, 0))(x(lib, 3)),
    "in dims type": lambda lib: lib.func.vmap(lambda a: a, in_dims="x")(x(lib, 3)),
    "in dims type2": lambda lib: lib.func.vmap(lambda a: a, in_dims=("x",))(x(lib, 3)),
    "in dims float": lambda lib: lib.func.vmap(lambda a: a, in_dims=0.5)(x(lib, 3)),
    "in dims list": lambda lib: lib.func.vmap(lambda a, b: a + b, in_dims=[0, 0])(x(lib, 3), x(lib, 3)),
    "in dims dict mismatch": lambda lib: lib.func.vmap(lambda d: d["a"], in_dims=({"b": 0},))({"a": x(lib, 3)}),
    "in dims struct": lambda lib: lib.func.vmap(lambda p: p[0] + p[1], in_dims=((0, 0, 0),))((x(lib, 3), x(lib, 3))),
    "in dims range": lambda lib: lib.func.vmap(lambda a: a, in_dims=2)(x(lib, 3)),
    "in dims range neg": lambda lib: lib.func.vmap(lambda a: a, in_dims=-2)(x(lib, 3)),
    "in dims neg": lambda lib: lib.func.vmap(lambda a: a.sum(), in_dims=-1)(x(lib, 3, 2)),
    "in dims nontensor": lambda lib: lib.func.vmap(lambda a, b: a * b, in_dims=(0, 0))(x(lib, 3), 2),
    "in dims int nontensor": lambda lib: lib.func.vmap(lambda a, b: a * b)(x(lib, 3), 2),
    "in dims tensor none nontensor": lambda lib: lib.func.vmap(lambda a, b: a * b, in_dims=(0, None))(x(lib, 3), 2),
    "scalar input": lambda lib: lib.func.vmap(lambda a: a)(lib.tensor(1.0)),
    "sizes": lambda lib: lib.func.vmap(lambda a, b: a + b)(x(lib, 3), x(lib, 2)),
    "sizes3": lambda lib: lib.func.vmap(lambda a, b: a + b, in_dims=(0, 1))(x(lib, 3, 2), x(lib, 3, 4)),
    "out nontensor": lambda lib: lib.func.vmap(lambda a: 3)(x(lib, 3)),
    "out none": lambda lib: lib.func.vmap(lambda a: None)(x(lib, 3)),
    "out str": lambda lib: lib.func.vmap(lambda a: (a, "x"))(x(lib, 3)),
    "out dict": lambda lib: lib.func.vmap(lambda a: {"k": a})(x(lib, 3)),
    "out nested": lambda lib: lib.func.vmap(lambda a: (a, [a, (a,)]))(x(lib, 3)),
    "out dims len": lambda lib: lib.func.vmap(lambda a: (a, a), out_dims=(0, 0, 0))(x(lib, 3)),
    "out dims type": lambda lib: lib.func.vmap(lambda a: a, out_dims="x")(x(lib, 3)),
    "out dims range": lambda lib: lib.func.vmap(lambda a: a, out_dims=1)(x(lib, 3)),
    "out dims range neg": lambda lib: lib.func.vmap(lambda a: a, out_dims=-2)(x(lib, 3)),
    "out dims neg": lambda lib: lib.func.vmap(lambda a: a, out_dims=-1)(x(lib, 3, 2)),
    "out dims tuple single": lambda lib: lib.func.vmap(lambda a: a, out_dims=(0,))(x(lib, 3, 2)),
    "out dims none batched": lambda lib: lib.func.vmap(lambda a: a, out_dims=None)(x(lib, 3)),
    "out dims none unbatched": lambda lib: lib.func.vmap(lambda a: lib.ones(2), out_dims=None)(x(lib, 3)),
    "out dims partial": lambda lib: lib.func.vmap(lambda a: (a, (a, lib.ones(2))), out_dims=(0, (0, None)))(x(lib, 3)),
    "out unbatched": lambda lib: lib.func.vmap(lambda a: lib.ones(2))(x(lib, 3)),
    "item": lambda lib: lib.func.vmap(lambda a: a.item())(x(lib, 3)),
    "item sum": lambda lib: lib.func.vmap(lambda a: a.sum().item())(x(lib, 3, 2)),
    "item unbatched": lambda lib: lib.func.vmap(lambda a: a * lib.ones(()).item())(x(lib, 3)),
    "if": lambda lib: lib.func.vmap(lambda a: a if a > 0 else -a)(x(lib, 3)),
    "bool": lambda lib: lib.func.vmap(lambda a: bool(a.any()))(x(lib, 3, 2)),
    "float": lambda lib: lib.func.vmap(lambda a: float(a))(x(lib, 3)),
    "int": lambda lib: lib.func.vmap(lambda a: int(a))(x(lib, 3)),
    "tolist": lambda lib: lib.func.vmap(lambda a: a.tolist())(x(lib, 3)),
    "len": lambda lib: lib.func.vmap(lambda a: a * len(a))(x(lib, 3, 2)),
    "iter": lambda lib: lib.func.vmap(lambda a: sum(b for b in a))(x(lib, 3, 2)),
    "nonzero": lambda lib: lib.func.vmap(lambda a: a.nonzero())(x(lib, 3, 2)),
    "masked select": lambda lib: lib.func.vmap(lambda a: a.masked_select(a > 0))(x(lib, 3, 2)),
    "boolindex": lambda lib: lib.func.vmap(lambda a: a[a > 0])(x(lib, 3, 2)),
    "unique": lambda lib: lib.func.vmap(lambda a: lib.unique(a))(x(lib, 3, 2)),
    "where1": lambda lib: lib.func.vmap(lambda a: lib.where(a > 0))(x(lib, 3, 2)),
    "allclose": lambda lib: lib.func.vmap(lambda a: lib.allclose(a, a))(x(lib, 3, 2)),
    "equal": lambda lib: lib.func.vmap(lambda a: lib.equal(a, a))(x(lib, 3, 2)),
    "inplace unbatched in": lambda lib: lib.func.vmap(lambda a, b: b.mul_(a), in_dims=(0, None))(
        x(lib, 2, 3), lib.ones(3, dtype=lib.float64)
    ),
    "chunk dims": lambda lib: lib.func.vmap(lambda a, b: (a + b, a), in_dims=(1, None), out_dims=(0, 1), chunk_size=2)(
        x(lib, 2, 3), x(lib, 2)
    ),
    "chunk0": lambda lib: lib.func.vmap(lambda a: a, chunk_size=0)(x(lib, 5)),
    "chunkneg": lambda lib: lib.func.vmap(lambda a: a, chunk_size=-1)(x(lib, 5)),
    "chunkbig": lambda lib: lib.func.vmap(lambda a: a, chunk_size=50)(x(lib, 5)),
    "rand err": lambda lib: lib.func.vmap(lambda a: a + lib.rand(2))(x(lib, 3, 2)),
    "rand bad": lambda lib: lib.func.vmap(lambda a: a, randomness="x")(x(lib, 3, 2)),
    "rand err dropout": lambda lib: lib.func.vmap(lambda a: lib.nn.functional.dropout(a))(x(lib, 3, 50)),
    "rand err inplace": lambda lib: lib.func.vmap(lambda a: a.normal_())(x(lib, 3, 5)),
    "rand err bern": lambda lib: lib.func.vmap(lambda a: lib.bernoulli(a))(x(lib, 3, 5) * 0),
    "rand err perm": lambda lib: lib.func.vmap(lambda a: lib.randperm(3))(x(lib, 3, 5)),
    "rand err multinomial": lambda lib: lib.func.vmap(lambda a: lib.multinomial(a, 1))(x(lib, 3, 5) + 9),
    "rand diff inplace unb": lambda lib: (
        lib.func.vmap(lambda a: lib.zeros(5).normal_() + a, randomness="different")(lib.zeros(3, 5)).shape
    ),
    "rand grad of vmap": lambda lib: lib.func.grad(lambda x: lib.func.vmap(lambda a: a * lib.rand(()))(x).sum())(
        x(lib, 3)
    ),
    "jacrev argnums tuple": lambda lib: lib.func.jacrev(lambda x, y: x.sin() * y, argnums=(0, 1))(x(lib, 3), x(lib, 3)),
    "jacrev argnums 1tuple": lambda lib: lib.func.jacrev(lambda x, y: x.sin() * y, argnums=(0,))(x(lib, 3), x(lib, 3)),
    "jacrev argnums neg": lambda lib: lib.func.jacrev(lambda x, y: x.sin() * y, argnums=-1)(x(lib, 3), x(lib, 3)),
    "jacrev argnums oob": lambda lib: lib.func.jacrev(lambda x, y: x.sin() * y, argnums=2)(x(lib, 3), x(lib, 3)),
    "jacrev argnums dup": lambda lib: lib.func.jacrev(lambda x, y: x.sin() * y, argnums=(0, 0))(x(lib, 3), x(lib, 3)),
    "jacrev argnums dupneg": lambda lib: lib.func.jacrev(lambda x, y: x.sin() * y, argnums=(0, -2))(
        x(lib, 3), x(lib, 3)
    ),
    "jacrev argnums empty": lambda lib: lib.func.jacrev(lambda x, y: x.sin() * y, argnums=())(x(lib, 3), x(lib, 3)),
    "jacrev argnums type": lambda lib: lib.func.jacrev(lambda x, y: x.sin() * y, argnums="x")(x(lib, 3), x(lib, 3)),
    "jacrev argnums type2": lambda lib: lib.func.jacrev(lambda x, y: x.sin() * y, argnums=("x",))(x(lib, 3), x(lib, 3)),
    "jacrev argnums list": lambda lib: lib.func.jacrev(lambda x, y: x.sin() * y, argnums=[0])(x(lib, 3), x(lib, 3)),
    "jacrev aux": lambda lib: lib.func.jacrev(lambda x: (x.sin(), x.sum()), has_aux=True)(x(lib, 3)),
    "jacrev aux bad": lambda lib: lib.func.jacrev(lambda x: x.sin(), has_aux=True)(x(lib, 3)),
    "jacrev aux bad3": lambda lib: lib.func.jacrev(lambda x: (x.sin(), x, x), has_aux=True)(x(lib, 3)),
    "jacrev chunk": lambda lib: lib.func.jacrev(lambda x: x.sin(), chunk_size=2)(x(lib, 3)),
    "jacrev chunk1": lambda lib: lib.func.jacrev(lambda x: x.sin(), chunk_size=1)(x(lib, 3)),
    "jacrev chunk0": lambda lib: lib.func.jacrev(lambda x: x.sin(), chunk_size=0)(x(lib, 3)),
    "jacrev chunkneg": lambda lib: lib.func.jacrev(lambda x: x.sin(), chunk_size=-2)(x(lib, 3)),
    "jacrev out dict": lambda lib: lib.func.jacrev(lambda x: {"a": x.sin(), "b": (x.sum(),)})(x(lib, 3)),
    "jacrev in dict": lambda lib: lib.func.jacrev(lambda d: d["a"] * d["b"])({"a": x(lib, 2), "b": x(lib, 2)}),
    "jacrev out nontensor": lambda lib: lib.func.jacrev(lambda x: 3)(x(lib, 3)),
    "jacrev out none": lambda lib: lib.func.jacrev(lambda x: None)(x(lib, 3)),
    "jacrev out tuple non": lambda lib: lib.func.jacrev(lambda x: (x, 3))(x(lib, 3)),
    "jacrev in nontensor": lambda lib: lib.func.jacrev(lambda x: x)(3.0),
    "jacrev in none": lambda lib: lib.func.jacrev(lambda x: x)(None),
    "jacrev int": lambda lib: lib.func.jacrev(lambda x: x * 2)(lib.arange(3)),
    "jacrev int out": lambda lib: lib.func.jacrev(lambda x: x > 0)(x(lib, 3)),
    "jacrev indep": lambda lib: lib.func.jacrev(lambda x: lib.ones(2))(x(lib, 3)),
    "jacrev complex": lambda lib: lib.func.jacrev(lambda x: x * x)(x(lib, 2).to(lib.complex128)),
    "jacfwd argnums tuple": lambda lib: lib.func.jacfwd(lambda x, y: x.sin() * y, argnums=(0, 1))(x(lib, 3), x(lib, 3)),
    "jacfwd aux": lambda lib: lib.func.jacfwd(lambda x: (x.sin(), x.sum()), has_aux=True)(x(lib, 3)),
    "jacfwd aux bad": lambda lib: lib.func.jacfwd(lambda x: x.sin(), has_aux=True)(x(lib, 3)),
    "jacfwd rand": lambda lib: lib.func.jacfwd(lambda x: x * lib.rand(3))(x(lib, 3)).shape,
    "jacfwd rand same": lambda lib: lib.func.jacfwd(lambda x: x * lib.rand(3), randomness="same")(x(lib, 3)).shape,
    "jacfwd int": lambda lib: lib.func.jacfwd(lambda x: x * 2)(lib.arange(3)),
    "jacfwd out nontensor": lambda lib: lib.func.jacfwd(lambda x: 3)(x(lib, 3)),
    "jacfwd dict": lambda lib: lib.func.jacfwd(lambda d: d["a"] * d["b"])({"a": x(lib, 2), "b": x(lib, 2)}),
    "jacfwd indep": lambda lib: lib.func.jacfwd(lambda x: lib.ones(2))(x(lib, 3)),
    "jacfwd oob": lambda lib: lib.func.jacfwd(lambda x: x, argnums=1)(x(lib, 3)),
    "jacfwd outstruct": lambda lib: lib.func.jacfwd(lambda x: {"a": x.sin(), "b": (x.sum(),)})(x(lib, 3)),
    "hessian": lambda lib: lib.func.hessian(lambda x: (x**3).sum())(x(lib, 2)),
    "hessian argnums": lambda lib: lib.func.hessian(lambda x, y: (x**2 * y).sum(), argnums=(0, 1))(
        x(lib, 2), x(lib, 2)
    ),
    "hessian vec": lambda lib: lib.func.hessian(lambda x: x**3)(x(lib, 2)),
    "grad nonscalar": lambda lib: lib.func.grad(lambda x: x)(x(lib, 3)),
    "grad nontensor": lambda lib: lib.func.grad(lambda x: 3.0)(x(lib, 3)),
    "grad in nontensor": lambda lib: lib.func.grad(lambda x: x)(3.0),
    "grad in str": lambda lib: lib.func.grad(lambda x, y: x.sum(), argnums=(0, 1))(x(lib, 3), "a"),
    "grad int": lambda lib: lib.func.grad(lambda x: x.sum())(lib.arange(3)),
    "grad 1elt": lambda lib: lib.func.grad(lambda x: x)(x(lib, 1)),
    "grad aux": lambda lib: lib.func.grad(lambda x: (x.sum(), x), has_aux=True)(x(lib, 3)),
    "grad aux bad": lambda lib: lib.func.grad(lambda x: x.sum(), has_aux=True)(x(lib, 3)),
    "grad noaux tuple": lambda lib: lib.func.grad(lambda x: (x.sum(), x))(x(lib, 3)),
    "gav": lambda lib: lib.func.grad_and_value(lambda x: x.sum())(x(lib, 3)),
    "gav aux tensor": lambda lib: lib.func.grad_and_value(lambda x: (x.sum(), x), has_aux=True)(x(lib, 3)),
    "grad argnums oob": lambda lib: lib.func.grad(lambda x: x.sum(), argnums=1)(x(lib, 3)),
    "grad argnums neg": lambda lib: lib.func.grad(lambda x, y: (x * y * y).sum(), argnums=-1)(x(lib, 3), x(lib, 3)),
    "grad argnums type": lambda lib: lib.func.grad(lambda x: x.sum(), argnums=0.5)(x(lib, 3)),
    "grad kwargs": lambda lib: lib.func.grad(lambda x, *, k: (x * k).sum())(x(lib, 3), k=x(lib, 3)),
    "grad indep": lambda lib: lib.func.grad(lambda x: lib.ones(()))(x(lib, 3)),
    "grad dict": lambda lib: lib.func.grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x(lib, 2), "b": [x(lib, 2)]}),
    "grad bool": lambda lib: lib.func.grad(lambda x: x.any())(x(lib, 3) > 0),
    "grad complex": lambda lib: lib.func.grad(lambda x: x.sum())(x(lib, 3).to(lib.complex128)),
    "grad complex real": lambda lib: lib.func.grad(lambda x: x.abs().sum())(x(lib, 3).to(lib.complex128) + 1j),
    "grad detach": lambda lib: lib.func.grad(lambda x: (x * x.detach()).sum())(x(lib, 3)),
    "grad data": lambda lib: lib.func.grad(lambda x: (x * x.data).sum())(x(lib, 3)),
    "vjp out nontensor": lambda lib: lib.func.vjp(lambda x: 3, x(lib, 2)),
    "vjp out empty": lambda lib: lib.func.vjp(lambda x: (), x(lib, 2)),
    "vjp out none": lambda lib: lib.func.vjp(lambda x: None, x(lib, 2)),
    "vjp in nontensor": lambda lib: lib.func.vjp(lambda x: x, 3.0),
    "vjp no in": lambda lib: lib.func.vjp(lambda: x(lib, 2)),
    "vjp aux bad": lambda lib: lib.func.vjp(lambda x: x, x(lib, 2), has_aux=True),
    "jvp": lambda lib: lib.func.jvp(lambda x: x.exp(), (x(lib, 2),), (x(lib, 2),)),
    "jvp notuple": lambda lib: lib.func.jvp(lambda x: x.exp(), x(lib, 2), (x(lib, 2),)),
    "jvp notuple t": lambda lib: lib.func.jvp(lambda x: x.exp(), (x(lib, 2),), x(lib, 2)),
    "jvp len": lambda lib: lib.func.jvp(lambda x: x.exp(), (x(lib, 2),), (x(lib, 2), x(lib, 2))),
    "jvp empty": lambda lib: lib.func.jvp(lambda: x(lib, 2), (), ()),
    "jvp shape": lambda lib: lib.func.jvp(lambda x: x.exp(), (x(lib, 2),), (x(lib, 3),)),
    "jvp dtype": lambda lib: lib.func.jvp(lambda x: x.exp(), (x(lib, 2),), (x(lib, 2).float(),)),
    "jvp nontensor": lambda lib: lib.func.jvp(lambda x: x.exp(), (3.0,), (x(lib, 2),)),
    "jvp nontensor t": lambda lib: lib.func.jvp(lambda x: x.exp(), (x(lib, 2),), (3.0,)),
    "jvp out nontensor": lambda lib: lib.func.jvp(lambda x: 3, (x(lib, 2),), (x(lib, 2),)),
    "jvp out none": lambda lib: lib.func.jvp(lambda x: None, (x(lib, 2),), (x(lib, 2),)),
    "jvp struct": lambda lib: lib.func.jvp(
        lambda d, y: {"o": d["a"] * y, "p": [y]}, ({"a": x(lib, 2)}, x(lib, 2)), ({"a": x(lib, 2)}, x(lib, 2))
    ),
    "jvp aux": lambda lib: lib.func.jvp(lambda x: (x.exp(), x), (x(lib, 2),), (x(lib, 2),), has_aux=True),
    "jvp aux bad": lambda lib: lib.func.jvp(lambda x: x.exp(), (x(lib, 2),), (x(lib, 2),), has_aux=True),
    "jvp indep": lambda lib: lib.func.jvp(lambda x: lib.ones(2), (x(lib, 2),), (x(lib, 2),)),
    "jvp strict": lambda lib: lib.func.jvp(lambda x: lib.ones(2), (x(lib, 2),), (x(lib, 2),), strict=True),
    "jvp int": lambda lib: lib.func.jvp(lambda x: x * 2, (lib.arange(2),), (lib.arange(2),)),
    "jvp nested": lambda lib: lib.func.jvp(
        lambda x: lib.func.jvp(lambda y: y**3, (x,), (lib.ones_like(x),))[1], (x(lib, 2),), (x(lib, 2),)
    ),
    "jvp grad": lambda lib: lib.func.jvp(lib.func.grad(lambda x: (x**3).sum()), (x(lib, 2),), (x(lib, 2),)),
    "vmap vmap vmap": lambda lib: lib.func.vmap(lib.func.vmap(lib.func.vmap(lambda a: a.sum())))(x(lib, 2, 2, 2, 2)),
    "vmap kwargs": lambda lib: lib.func.vmap(lambda a, k: a * k)(x(lib, 3), k=x(lib, 3)),
    "vmap kwargs all": lambda lib: lib.func.vmap(lambda *, k: k)(k=x(lib, 3)),
    "sms empty": lambda lib: lib.func.stack_module_state([]),
    "sms classes": lambda lib: lib.func.stack_module_state([linear(lib), lib.nn.ReLU()]),
    "sms shapes": lambda lib: lib.func.stack_module_state([linear(lib), lib.nn.Linear(3, 3).double()]),
    "vjp int out": lambda lib: lib.func.vjp(lambda x: x.argmax(), x(lib, 2)),
    "vjp int in": lambda lib: lib.func.vjp(lambda x: x * 2, lib.arange(2)),
    "jacfwd complex": lambda lib: lib.func.jacfwd(lambda x: x * x)(x(lib, 2).to(lib.complex128)),
    "jacrev complex out": lambda lib: lib.func.jacrev(lambda x: x * 1j)(x(lib, 2)),
    "jacfwd complex out": lambda lib: lib.func.jacfwd(lambda x: x * 1j)(x(lib, 2)),
    "hessian complex": lambda lib: lib.func.hessian(lambda x: (x * x).sum())(x(lib, 2).to(lib.complex128)),
    "jacrev mixed int": lambda lib: lib.func.jacrev(lambda x: (x, x > 0))(x(lib, 2)),
    "functionalize bad": lambda lib: lib.func.functionalize(lambda x: x, remove="x")(x(lib, 2)),
    "vmap functionalize": lambda lib: lib.func.vmap(lib.func.functionalize(lambda x: x.clone().add_(1)))(x(lib, 2)),
    "linalg vmap": lambda lib: lib.func.vmap(lib.linalg.inv)(lib.eye(2).expand(3, 2, 2)),
    "new tensor": lambda lib: lib.func.vmap(lambda a: a.new_tensor([1.0, 2.0]) + a)(x(lib, 2, 2)),
    "data ptr": lambda lib: lib.func.vmap(lambda a: a.data_ptr())(x(lib, 2, 2)),
    "storage": lambda lib: lib.func.vmap(lambda a: a.untyped_storage())(x(lib, 2, 2)),
    "data ptr grad": lambda lib: lib.func.grad(lambda a: a.data_ptr())(x(lib, 2)),
    "item grad": lambda lib: lib.func.grad(lambda a: a.sum() * a[0].item())(x(lib, 2)),
    "if grad": lambda lib: lib.func.grad(lambda a: a.sum() if a.sum() > 0 else -a.sum())(x(lib, 2)),
    "tolist grad": lambda lib: lib.func.grad(lambda a: a.sum() * len(a.tolist()))(x(lib, 2)),
    "stride": lambda lib: lib.func.vmap(lambda a: a * a.stride(0) + a.storage_offset(), in_dims=1)(x(lib, 2, 3)),
}


def words(value, lib):
    """A result in words that are the same for both libraries."""
    if isinstance(value, lib.Tensor):
        numbers = torch.tensor(value.detach().tolist(), dtype=torch.float64) if not value.is_complex() else value
        return f"{[round(n, 5) + 0.0 for n in numbers.flatten().tolist()]} {tuple(value.shape)} {value.dtype}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(words(one, lib) for one in value)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {words(one, lib)}' for key, one in value.items())}}}"
    return "a function" if callable(value) else repr(value)


def outcome(case, lib):
    try:
        return words(case(lib), lib)
    except Exception as error:
        kind = next(one.__name__ for one in type(error).__mro__ if one.__module__ == "builtins")
        return f"{kind}: {str(error)[:40]}"


def main(*names: str) -> int:
    warnings.simplefilter("ignore")
    different = 0
    for name, case in CASES.items():
        if names and name not in names:
            continue
        theirs, ours = outcome(case, torch), outcome(case, redispatch)
        if theirs != ours:
            different += 1
            print(f"{name}\n  theirs  {theirs}\n  ours    {ours}")
    print(f"{len(CASES)} calls, {different} differences")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
