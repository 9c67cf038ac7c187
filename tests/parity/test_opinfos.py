"""PyTorch's own table of operators (the OpInfos in its wheel), on both libraries: do all its samples end the same way?

Compared are values, dtypes and shapes; which results share memory with which arguments; what becomes of the arguments;
gradients; the classes and words of errors; and the forms of an operator: function, method, in-place, `out=`, aliases.
The other file of this folder goes through our table and asks for more of each call; this one knows which calls
PyTorch's authors found worth testing. DIFFERENT lists where we differ knowingly, each with the reason.

Of the dtypes of an operator some are drawn, and all are tried with `--all`.
Read next: test_op_db_against_torch.py.
"""

import dataclasses
import functools
import itertools
import re
import sys
import types
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with real torch, which is not installed here")

from torch.testing._internal import common_methods_invocations  # noqa: E402  # after importorskip
from torch.utils import _pytree as pytree  # noqa: E402  # after importorskip

import redispatch as rd  # noqa: E402  # after importorskip: without torch nothing here is of use

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests import drawing  # noqa: E402  # after the path is set

# operator -> aspect, in which the name of a form and a number do not count -> why it differs
ABSENT = {
    "no sparse tensors": "sparse.sampled_addmm sparse.mm.reduce to_sparse",
    "no float8": "torch._scaled_mm torch._scaled_mm_v2",
}
DIFFERENT: dict[str, dict[str, str]] = {
    **{name: {"": why} for why, names in ABSENT.items() for name in names.split()},
    "cholesky_inverse": {"tangents": "PyTorch's of complex numbers are not those of its gradient"},
    "as_strided_scatter": {"gradients": "PyTorch's is that of another part; ours is that of finite differences"},
    "renorm": {
        "gradients": "PyTorch's is NaN for the greatest of complex numbers (p = inf)",
        "tangents": "PyTorch's of 16 bits are in float32",
    },
    "matrix_exp": {"values": "PyTorch's overflows in 16 bits"},
    **dict.fromkeys(
        ["nn.functional.grid_sample", "grid_sampler_2d", "grid_sampler_3d"],
        dict.fromkeys(("values", "gradients"), "PyTorch computes places in 16 bits; ours are in float32"),
    ),
    "nn.functional.normalize": {"gradients": "in 16 bits PyTorch's terms cancel to another number than ours"},
    "frexp": {"tangents": "PyTorch's of 16 bits are in float32"},
    **dict.fromkeys(
        ["mode", "nn.functional.fractional_max_pool2d", "nn.functional.fractional_max_pool3d"],
        {"tangents": "of equal elements another is named, whose tangent it is"},
    ),
    "norm": dict.fromkeys(["gradient errors", "tangent errors"], "PyTorch divides no complex numbers of 32 bits"),
    "logcumsumexp": {"tangents": "PyTorch adds 1e-13 to the sum by which it divides"},
    **dict.fromkeys(["fft.ihfft2", "fft.ihfftn"], {"values": "PyTorch leaves the out= of one dimension unwritten"}),
}

# Operators that name places of elements -> where `dim` stands among their arguments, if at all. Of equal elements any
# may be named, and have the gradient.
CHOOSES = dict(kthvalue=2, median=1, nanmedian=1, mode=1, topk=2, sort=1, argsort=1, msort=-1)

# Operators whose results PyTorch has with so many times the usual error: series of 8 digits (4 in float32), logarithms
# and products that are added up in float32, a sixth in float32; the gradient of one element's deviation, which is 0,
# times a thousand; gradients that are divided by the distance of two eigenvalues.
LESS_EXACT = {
    **dict.fromkeys(["polygamma", "special.polygamma", "digamma"], 50),
    **dict.fromkeys(["nn.functional.ctc_loss", "linalg.householder_product", "nn.functional.normalize"], 50),
    **dict.fromkeys(["native_layer_norm", "nn.functional.layer_norm"], 20),
    "nn.functional.hardsigmoid": 100,
    "cov": 20,
    "linalg.eigh": 20,
}


class How(NamedTuple):
    """The way to compare an operator: where its `dim` stands if it chooses, whether memory is unset, how loosely."""

    chooses: int | None
    unset: bool
    loose: float


EXACTLY = How(None, False, 1)
TENSORS = torch.Tensor | rd.Tensor
DTYPES = [torch.float32, torch.float64, torch.complex64, torch.int64, torch.bfloat16, torch.bool]


# --- from theirs to ours ----------------------------------------------------------------------------------------------


# PyTorch's table gives each random operator the same seed, which would hide that it is one
common_methods_invocations.wrapper_set_seed = lambda call, *args, **kwargs: call(*args, **kwargs)


class Globals(dict):
    """The globals of a function of PyTorch's, as our function sees them: translated when they are asked for."""

    def __init__(self, theirs):
        super().__init__({"__builtins__": theirs["__builtins__"], "__name__": theirs["__name__"]})
        self.theirs = theirs

    def __missing__(self, name):
        if name not in self.theirs:
            raise KeyError(name)
        self[name] = ours(self.theirs[name])
        return self[name]


def named(path):
    """Our object of a dotted name below `torch`, or None."""
    return functools.reduce(lambda found, name: getattr(found, name, None), path.removeprefix("torch.").split("."), rd)


@functools.cache
def ours_of(x):
    """Our counterpart of a function, class, module or constant of PyTorch's."""
    if isinstance(x, torch.dtype | torch.layout | torch.memory_format):
        return named(str(x))
    if isinstance(x, types.ModuleType):
        return named(x.__name__) if x.__name__ != "torch" else rd
    if isinstance(x, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return named(
            f"ops.{x._qualified_op_name.replace('::', '.')}" if hasattr(x, "_qualified_op_name") else f"ops.{x}"
        )
    if isinstance(x, functools.partial):
        return functools.partial(ours(x.func), *ours(x.args), **ours(x.keywords))
    module, name = getattr(x, "__module__", None), getattr(x, "__name__", "")
    if isinstance(x, types.FunctionType) and module.startswith("torch.testing"):
        cells = x.__closure__ and tuple(types.CellType(ours(cell.cell_contents)) for cell in x.__closure__)
        mine = types.FunctionType(x.__code__, Globals(x.__globals__), x.__name__, x.__defaults__, cells)
        mine.__kwdefaults__ = x.__kwdefaults__
        return mine
    if isinstance(x, types.MethodDescriptorType | types.WrapperDescriptorType) or module == "torch._tensor":
        return getattr(rd.Tensor, x.__name__, None)
    if module and module.split(".")[0] == "torch":
        return named(f"{module}.{name}")
    return x


def ours(x):
    """A value of PyTorch's as ours, whatever it is; tensors have `Copies`."""
    if isinstance(x, list | dict | tuple) and not isinstance(x, torch.Size):
        return pytree.tree_map(ours, x)
    if isinstance(x, types.ModuleType):
        return ours_of(x)
    if isinstance(x, torch.device):
        return rd.device(str(x))
    if isinstance(x, torch.Generator):
        return rd.Generator().manual_seed(x.initial_seed())
    if isinstance(x, torch.Tensor):
        return Copies(rd)(x)
    if dataclasses.is_dataclass(x) and hasattr(rd.nn, type(x).__name__):
        return getattr(rd.nn, type(x).__name__)(
            **{one.name: ours(getattr(x, one.name)) for one in dataclasses.fields(x)}
        )
    if isinstance(x, torch.nn.Module):  # which has no tensors, and was made without arguments
        return getattr(rd.nn, type(x).__name__)()
    try:
        return ours_of(x) if callable(x) or type(x).__module__.startswith("torch") else x
    except TypeError:  # it has no hash: an entry of their table
        return x


class Copies:
    """Copies of tensors in one of the libraries: the same memory byte for byte, and shared where it was shared."""

    def __init__(self, library):
        self.library, self.storages, self.tensors = library, {}, {}

    def storage(self, x):
        storage = x.untyped_storage()
        if storage._cdata not in self.storages:
            data = torch.empty(0, dtype=torch.uint8).set_(storage).numpy().copy()
            self.storages[storage._cdata] = self.library.from_numpy(data).clone().untyped_storage()
        return self.storages[storage._cdata]

    def tensor(self, x):
        if x.layout is not torch.strided:
            raise NotImplementedError(f"a tensor of another layout: {x.layout}")
        dtype = x.dtype if self.library is torch else ours(x.dtype)
        if x.device.type == "meta":
            return self.library.empty_strided(tuple(x.shape), x.stride(), dtype=dtype, device="meta")
        out = self.library.empty(0, dtype=dtype)
        out.set_(self.storage(x), x.storage_offset(), tuple(x.shape), x.stride())
        out = out.conj() if x.is_conj() else out
        out = out._neg_view() if x.is_neg() else out
        out = self.library.nn.Parameter(out) if isinstance(x, torch.nn.Parameter) else out
        return out.detach().requires_grad_() if x.requires_grad else out

    def __call__(self, x):
        if isinstance(x, torch.Tensor):
            if id(x) not in self.tensors:
                self.tensors[id(x)] = self.tensor(x.detach().requires_grad_(x.requires_grad)), x
            return self.tensors[id(x)][0]
        return x if self.library is torch else ours(x)


def copied(library, tree):
    copies = Copies(library)
    return pytree.tree_map(copies, tree, is_leaf=lambda x: isinstance(x, torch.Size))


# --- one call in both libraries ---------------------------------------------------------------------------------------


def leaves(tree):
    """The values in lists, tuples and dicts; two libraries have two classes of named tuples, one of structure."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        return [x for item in tree for x in leaves(item)]
    return [tree]


def outcome(call, args, kwargs):
    """(result, None) or (None, the error)"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call(*args, **kwargs), None
        except Exception as error:
            return None, error


def values(x):
    if not isinstance(x, TENSORS):
        return x
    library = torch if isinstance(x, torch.Tensor) else rd
    x = torch.zeros_like(x) if library is torch and x._is_zerotensor() else x
    x = x.detach().resolve_conj().resolve_neg()
    wider = {"bfloat16": "float32", "complex32": "complex64"}.get(str(x.dtype).removeprefix("torch."))
    x = x.to(getattr(library, wider)) if wider else x
    x = x.view(library.uint8) if "float8" in str(x.dtype) else x  # numpy has none
    return x.contiguous().numpy()


PRECISION = {"float16": 4e-3, "bfloat16": 2e-2, "complex32": 4e-3, "float32": 4e-6, "complex64": 4e-6}


def equal(a, b, dtype, how, floor=0.1):
    """Whether the values are the same; floats, as exactly as two orders of summation are."""
    if not isinstance(b, np.ndarray) or b.dtype.kind not in "fc":
        return np.array_equal(a, b) or np.ndim(b) == 0 and bool(a != a and b != b)
    rtol = PRECISION.get(dtype.removeprefix("torch."), 1e-9) * how.loose
    with np.errstate(all="ignore"):
        size = np.abs(b[np.isfinite(b)]).max(initial=0)
    return np.allclose(a, b, rtol=rtol, atol=rtol * max(size, 1 if rtol > 1e-3 else floor), equal_nan=True)


def looks(x):
    if isinstance(x, TENSORS):
        return str(x.dtype), str(x.layout), tuple(x.shape)
    return type(x).__name__


def strides(x):
    """Returns where elements lie in memory: the strides of dimensions that have several, the offset, the lazy bits."""
    steps = [stride if size > 1 and x.numel() else None for size, stride in zip(x.shape, x.stride(), strict=True)]
    return steps, x.storage_offset(), x.is_conj(), x.is_neg()


def memory(x):
    return x.untyped_storage().data_ptr() if x.layout in (torch.strided, rd.strided) else 0


def sharing(results, arguments):
    """For each result the arguments whose memory it has, and whether it is the argument itself."""
    given = [x for x in leaves(arguments) if isinstance(x, TENSORS)]
    return [
        [(i, x is result) for i, x in enumerate(given) if memory(x) and memory(x) == memory(result)]
        for result in leaves(results)
        if isinstance(result, TENSORS)
    ]


def short(x, limit=300):
    return " ".join(str(x).split())[:limit]


def compare_errors(mine, other):
    if mine is None or other is None:
        return {"errors": f"{short(repr(mine))} instead of {short(repr(other))}"}
    if type(other).__name__ not in [kind.__name__ for kind in type(mine).__mro__]:
        return {"error class": f"{short(repr(mine))} instead of {short(repr(other))}"}
    return {}


def picked(result, args, how):
    """The result, with what its indices pick in their place: of equal elements, any may be named."""
    x = args[0][0] if args[0] else None
    if how.chooses in (None, -1) or not isinstance(x, TENSORS) or not x.dim():
        return result
    found, places = (None, result) if isinstance(result, TENSORS) else result
    dim = dict(enumerate(args[0])).get(how.chooses, args[1].get("dim", -1))
    places = places if places.dim() == x.dim() else places.unsqueeze(dim)
    return [found, x.gather(dim, places) if places.dtype in (torch.int64, rd.int64) else places]


def compare_results(mine, other, random, how):
    """Returns the difference between two results; of random ones only what they look like."""
    mine, other = leaves(mine), leaves(other)
    if len(mine) != len(other):
        return {"values": f"{len(mine)} results instead of {len(other)}"}
    found = {}
    for a, b in zip(mine, other, strict=True):
        if looks(a) != looks(b):
            found["dtypes"] = f"{looks(a)} instead of {looks(b)}"
            continue
        if isinstance(b, torch.Tensor) and b.layout is not torch.strided:
            a, b = a.to_dense(), b.to_dense()
        if isinstance(b, torch.Tensor) and not random and not equal(values(a), values(b), str(b.dtype), how):
            found["values"] = f"{short(a)} instead of {short(b)}"
        elif isinstance(b, torch.Tensor) and strides(a) != strides(b):
            found["strides"] = f"{strides(a)} instead of {strides(b)}"
        elif isinstance(b, int | float | complex | str) and not random and not equal(a, b, "", how):
            found["values"] = f"{a} instead of {b}"
    return found


def compare_gradients(mine, other, our_leaves, their_leaves, how):
    our_results = [x for x in leaves(mine) if isinstance(x, rd.Tensor) and x.requires_grad]
    their_results = [x for x in leaves(other) if isinstance(x, torch.Tensor) and x.requires_grad]
    if len(our_results) != len(their_results):
        return {"requires_grad": f"{len(our_results)} results instead of {len(their_results)}"}
    if not their_results or not their_leaves:
        return {}
    torch.manual_seed(1)
    seeds = [
        torch.randn(x.shape, dtype=torch.float32 if x.dtype.itemsize < 8 and not x.is_complex() else x.dtype).to(
            x.dtype
        )
        for x in their_results
    ]
    b, their_error = outcome(torch.autograd.grad, (their_results, their_leaves, seeds), {"allow_unused": True})
    a, our_error = outcome(rd.autograd.grad, (our_results, our_leaves, copied(rd, seeds)), {"allow_unused": True})
    if our_error or their_error:
        return {f"gradient {k}": v for k, v in compare_errors(our_error, their_error).items()}
    for x, y, leaf in zip(a, b, their_leaves, strict=True):
        if looks(x) != looks(y):
            return {"gradients": f"{looks(x)} instead of {looks(y)}"}
        if y is not None and not equal(*(of_values(values(one), leaf, how) for one in (x, y)), str(y.dtype), how, 5):
            return {"gradients": f"{short(x)} instead of {short(y)}"}
    return {}


def of_values(grad, leaf, how):
    """The gradient; where equal elements may have it for each other, that of each value."""
    if how.chooses is None:
        return grad
    found, which = np.unique(values(leaf), return_inverse=True)
    return np.bincount(which.ravel(), grad.ravel().astype(np.float64), len(found))


def tangents(library, call, tree, process):
    """The tangents of the results, where each argument that may have a gradient has a tangent."""
    dual = library.autograd.forward_ad
    torch.manual_seed(1)
    with dual.dual_level():

        def with_tangent(x):
            if not isinstance(x, TENSORS) or not x.requires_grad:
                return x
            seed = torch.randn(tuple(x.shape), dtype=torch.complex128 if x.is_complex() else torch.float64)
            if x.dim() > 1 and x.shape[-1] == x.shape[-2] and equal(values(x.mH), values(x), str(x.dtype), EXACTLY):
                seed = seed + seed.mH  # of a hermitian matrix, functions read what part they like
            return dual.make_dual(x.detach(), copied(library, seed).to(x.dtype))

        args, kwargs = pytree.tree_map(with_tangent, copied(library, tree))
        result, error = outcome(lambda: process(call(*args, **kwargs)), (), {})
        return error or [dual.unpack_dual(x).tangent for x in leaves(result) if isinstance(x, TENSORS)]


def compare_tangents(call, mine, tree, how, process):
    other, result = tangents(torch, call, tree, process), tangents(rd, mine, tree, ours(process))
    if isinstance(other, Exception):  # ours may do more
        return {}
    if isinstance(result, Exception):
        return {"tangent errors": short(repr(result))}
    for x, y in zip(result, other, strict=True):
        if y is None or x is None and not values(y).any():  # a tangent that PyTorch has not; a zero, which is none
            continue
        if looks(x) != looks(y):
            return {"tangents": f"{looks(x)} instead of {looks(y)}"}
        if not equal(values(x), values(y), str(y.dtype), how, 5):
            return {"tangents": f"{short(x)} instead of {short(y)}"}
    return {}


def compare(call, mine, tree, how, process=lambda x: x):
    """The difference when `call` of PyTorch's, and `mine`, are given copies of `tree`, a pair of args and kwargs."""
    if mine is None:
        return {"missing": "there is no such function"}
    their_args, our_args = copied(torch, tree), copied(rd, tree)
    torch.manual_seed(1)
    other, their_error = outcome(lambda *a, **k: process(call(*a, **k)), *their_args)
    result, our_error = outcome(lambda *a, **k: ours(process)(mine(*a, **k)), *our_args)
    if their_error or our_error:
        return compare_errors(our_error, their_error)
    random = how.unset or is_random(call, tree, process, other)
    found = compare_results(picked(result, our_args, how), picked(other, their_args, how), random, how)
    shared = sharing(result, our_args), sharing(other, their_args)
    if shared[0] != shared[1]:
        found["views"] = f"{shared[0]} instead of {shared[1]}"
    if not found:
        given = [
            [*args, *(x for name, x in kwargs.items() if name != "out")] for args, kwargs in (our_args, their_args)
        ]
        found = {f"{k} of arguments": v for k, v in compare_results(*given, random, how).items()}
    if not found and not random:
        their_leaves = [x for x in leaves(their_args) if isinstance(x, torch.Tensor) and x.requires_grad and x.is_leaf]
        our_leaves = [x for x in leaves(our_args) if isinstance(x, rd.Tensor) and x.requires_grad and x.is_leaf]
        found = compare_gradients(result, other, our_leaves, their_leaves, how)
        if not found and their_leaves:
            found = compare_tangents(call, mine, tree, how, process)
    return found


def is_random(call, tree, process, result):
    """Whether PyTorch gives another result for another seed, or for other memory."""
    few = sum(x.numel() for x in leaves(result) if isinstance(x, torch.Tensor)) < 40
    for seed in range(2, 20 if few else 3):
        torch.manual_seed(seed)
        junk = [torch.full((count,), float("nan")) for count in range(1, 40)]
        del junk
        again, error = outcome(lambda *a, **k: process(call(*a, **k)), *copied(torch, tree))
        if error is not None or not all(map(same, leaves(result), leaves(again))):
            return True
    return False


def same(x, y):
    """Whether two results of PyTorch's are the same to the last bit."""
    if not isinstance(x, torch.Tensor) or x.layout is not torch.strided:
        return True
    return x.shape == y.shape and np.array_equal(values(x), values(y), equal_nan=values(x).dtype.kind in "fc")


# --- one operator -----------------------------------------------------------------------------------------------------


def function(info):
    """Our function for an entry of the table."""
    written_there = isinstance(info.op, types.FunctionType) and info.op.__module__.startswith("torch.testing")
    is_operator = isinstance(info.op, torch._ops.OpOverload | torch._ops.OpOverloadPacket)
    found = None if written_there or is_operator else named(info.name)
    return ours(info.op) if found is None or isinstance(found, rd.dtype) else found  # torch.cfloat is a dtype


def tree(sample):
    return (sample.input, *sample.args), sample.kwargs


def forms(info):
    """Returns the other names of an operator: name -> PyTorch's, ours."""
    given = {
        "method": (info.get_method(), None),
        "inplace": (info.get_inplace(), None),
        "operator": (info.get_operator(), None),
        "inplace operator": (info.get_inplace_operator(), None),
    }
    for alias in info.aliases:
        given[alias.name] = alias.op, named(alias.name)
        given[f"{alias.name} method"] = alias.method_variant, None
        given[f"{alias.name} inplace"] = alias.inplace_variant, None
    return {name: (call, mine or ours(call)) for name, (call, mine) in given.items() if call is not None}


def samples(info, dtype, requires_grad, limit):
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(itertools.islice(info.sample_inputs("cpu", dtype, requires_grad=requires_grad), limit))
    except Exception:  # torch's own samples, in a dtype for which they were not meant
        return []


def all_of(info, dtypes, limit):
    """All differences: aspect -> the first of them."""
    found = {}

    def note(differences, where):
        for aspect, text in differences.items():
            found.setdefault(aspect, f"{text}    for {where}")

    mine, how = function(info), How(CHOOSES.get(info.name), "empty" in info.name, LESS_EXACT.get(info.name, 1))
    if mine is None:
        return {"missing": "there is no such function"}
    for dtype in dtypes:
        for requires_grad in (False, True):
            if requires_grad and dtype not in info.supported_backward_dtypes("cpu"):
                continue
            for number, sample in enumerate(samples(info, dtype, requires_grad, limit)):
                where = f"{dtype} {'with gradients ' if requires_grad else ''}{short(sample.summary(), 600)}"
                note(compare(info.op, mine, tree(sample), how, sample.output_process_fn_grad), where)
                if number >= 5 or not isinstance(sample.input, torch.Tensor) or requires_grad:
                    continue
                for form, (call, our_form) in forms(info).items():
                    note({f"{form}: {k}": v for k, v in compare(call, our_form, tree(sample), how).items()}, where)
                if info.supports_out:
                    note({f"out: {k}": v for k, v in with_out(info, mine, sample, how).items()}, where)
    for number, case in enumerate(error_inputs(info)):
        call, sample = info.op, case.sample_input
        differences = compare(call, mine, tree(sample), how)
        note({f"{aspect} {number}": text for aspect, text in differences.items()}, short(sample.summary()))
        if not differences:
            note(words(case, mine, number), short(sample.summary()))
    return found


def error_inputs(info):
    try:
        return list(info.error_inputs("cpu")) if info.error_inputs_func else []
    except Exception:
        return []


def words(case, mine, number):
    _, error = outcome(mine, *copied(rd, tree(case.sample_input)))
    if error is not None and not re.search(case.error_regex, str(error)):
        return {f"error words {number}": f"{short(error)} instead of {case.error_regex}"}
    return {}


def with_out(info, mine, sample, how):
    """Returns the difference where the results are written into tensors that are given."""
    expected, error = outcome(info.op, *copied(torch, tree(sample)))
    results = leaves(expected)
    if error or not all(isinstance(x, torch.Tensor) for x in results) or isinstance(expected, list):
        return {}
    out = [torch.zeros_like(x) for x in results]
    args, kwargs = tree(sample)
    kwargs = kwargs | {"out": tuple(out) if isinstance(expected, tuple) else out[0]}
    return compare(info.op, mine, (args, kwargs), how, sample.output_process_fn_grad)


def supported(info):
    kinds = [x for x in info.supported_dtypes("cpu") if ours(x) is not None]  # complex32 is not here
    return [x for x in DTYPES if x in kinds] + sorted((x for x in kinds if x not in DTYPES), key=str)


# Left out is what has no dtype on the CPU, as what compiles CUDA.
COMPARED = [info for info in common_methods_invocations.op_db if info.supported_dtypes("cpu")]
COMPARED = [info for info in COMPARED if type(info.op).__name__ != "_JittedFunction"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("info", COMPARED, ids=lambda info: info.full_name)
def test_an_operator_of_pytorchs_table_ends_the_same_way(info, record_property):
    if absent := reason(info, ""):
        record_property(f"opinfo:{info.full_name}", {"": absent})
        return
    dtypes = supported(info)
    first = [x for x in dtypes if x in info.supported_backward_dtypes("cpu")][:1] or dtypes[:1]
    drawn = first + drawing.draw([x for x in dtypes if x not in first], "opinfo", info.full_name)
    found = all_of(info, drawn, None if drawing.everything else 25)
    why = {aspect: reason(info, aspect) or f"NOT KNOWN: {text}" for aspect, text in found.items()}
    record_property(f"opinfo:{info.full_name}", why)
    grave = [f"{aspect}: {text}" for aspect, text in found.items() if not reason(info, aspect)]
    assert not grave, "\n".join(grave)


def reason(info, aspect):
    """The reason for which an operator differs in an aspect, where it is known; what is absent is so in all of them."""
    known = DIFFERENT.get(info.full_name, {})
    return known.get("") or known.get(aspect.rpartition(": ")[2])
