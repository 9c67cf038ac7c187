"""`_prims_common` against PyTorch's: dtypes of pairs, strides of random layouts, dimensions, shapes, checks.

Run with a Python that has torch: `python tests/parity/prims_common.py`. Exits non-zero on any difference.
"""

from __future__ import annotations

import itertools
import random
import sys
import warnings

import torch
import torch._prims_common

import redispatch as rd
import redispatch._prims_common

LIBRARIES = ((rd, rd._prims_common), (torch, torch._prims_common))
DTYPES = "bool uint8 int8 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
KINDS = "DEFAULT NO_OPMATH INT_TO_FLOAT ALWAYS_BOOL COMPLEX_TO_FLOAT BOOL_TO_LONG".split()
OF_DTYPES = """
    is_boolean_dtype is_integer_dtype is_float_dtype is_complex_dtype is_grad_dtype is_low_precision_dtype
    corresponding_real_dtype corresponding_complex_dtype get_computation_dtype dtype_to_type
""".split()
OF_LAYOUTS = """
    is_contiguous is_channels_last_contiguous is_channels_last_contiguous_2d is_channels_last_contiguous_3d
    is_non_overlapping_and_dense_or_false suggest_memory_format compute_elementwise_output_strides
    compute_elementwise_output_logical_to_physical_perm
""".split()
differences = compared = 0


def compare(what, ask):
    """Prints what the two libraries answer, where it is not the same; of an error, its class."""
    global differences, compared
    answers = []
    for library, common in LIBRARIES:
        try:
            answers.append(str(ask(library, common)).replace("redispatch.", "torch."))
        except Exception as error:
            answers.append(f"raises {type(error).__name__}")
    compared += 1
    if answers[0] != answers[1]:
        differences += 1
        print(what, *answers, sep="\n    ")


def arguments(library):
    """Tensors of all dtypes, with and without dimensions, and numbers."""
    tensors = [library.ones(shape, dtype=getattr(library, name)) for name in DTYPES for shape in [(2,), ()]]
    return [*tensors, True, 2, 2.5, 1j]


def dtypes():
    given = {library: arguments(library) for library, _ in LIBRARIES}
    for a, b in itertools.product(range(len(given[rd])), repeat=2):
        for kind in KINDS:
            compare(
                f"elementwise_dtypes {kind} {given[rd][a]} {given[rd][b]}",
                lambda lib, c, a=a, b=b, kind=kind: c.elementwise_dtypes(
                    given[lib][a], given[lib][b], type_promotion_kind=getattr(c.ELEMENTWISE_TYPE_PROMOTION_KIND, kind)
                ),
            )
        compare(f"higher {a} {b}", lambda lib, c, a=a, b=b: c.get_higher_dtype(given[lib][a], given[lib][b]))
    for name, function in itertools.product(DTYPES, OF_DTYPES):
        compare(f"{function} {name}", lambda lib, c, n=name, f=function: getattr(c, f)(getattr(lib, n)))
    for name, kind in itertools.product(DTYPES, ["SAME", "COMPLEX_TO_FLOAT", "KEEP_PROMOTED_TYPE", "ALWAYS_BOOL"]):
        compare(
            f"reduction_dtypes {kind} {name}",
            lambda lib, c, n=name, k=kind: c.reduction_dtypes(
                lib.ones(2, dtype=getattr(lib, n)), getattr(c.REDUCTION_OUTPUT_TYPE_KIND, k)
            ),
        )


def layout(rng, shape):
    """Strides of a permuted tensor of that shape, with or without gaps, or expanded."""
    order = rng.sample(range(len(shape)), len(shape))
    sizes, strides, step = list(shape), [0] * len(shape), 1
    for at in order:
        strides[at] = step * (sizes[at] == 1 or rng.random() > 0.1)
        step *= sizes[at] + (rng.random() < 0.2)
    return strides


def layouts(rng):
    for _ in range(600):
        shape = [rng.choice([1, 2, 3, 4]) for _ in range(rng.randrange(6))]
        several = [layout(rng, shape) for _ in range(rng.randrange(1, 4))]

        def given(lib, shape=shape, several=several):
            return [lib.empty(2000).as_strided(shape, strides) for strides in several]

        for name in OF_LAYOUTS:
            count = None if name.startswith("compute") else 1
            compare(f"{name} {shape} {several}", lambda lib, c, n=name, count=count: getattr(c, n)(*given(lib)[:count]))
        compare(f"contiguous {shape}", lambda lib, c, s=shape: c.make_contiguous_strides_for(s))
        compare(f"transposed {shape}", lambda lib, c, s=shape: c.make_contiguous_strides_for(s, False))
        compare(f"channels last {shape}", lambda lib, c, s=shape: c.make_channels_last_strides_for(s))
        compare(
            f"storage {shape} {several[0]}",
            lambda lib, c, s=shape, t=several[0]: c.compute_required_storage_length(s, t, 3),
        )
        compare(
            f"significant {shape} {several}",
            lambda lib, c: c.check_significant_strides(given(lib)[0], given(lib)[-1], only_cuda=False),
        )


def shapes():
    for rank, at in itertools.product(range(-1, 4), range(-4, 4)):
        compare(f"canonicalize_dim {rank} {at}", lambda lib, c, r=rank, i=at: c.canonicalize_dim(r, i))
        compare(f"of scalars {rank} {at}", lambda lib, c, r=rank, i=at: c.canonicalize_dim(r, i, False))
        compare(f"several {rank} {at}", lambda lib, c, r=rank, i=at: c.canonicalize_dims(r, (i, 0)))
    for shape, count in itertools.product([[-1], [2, -1], [2, 3], [-1, -1], [0, -1], [3, -1]], [0, 6, 7]):
        compare(f"infer_size {shape} {count}", lambda lib, c, s=shape, n=count: c.infer_size(s, n))
    for expression in """
        infer_size_shapes((2, 1), (3,)); is_expandable_to((1, 3), (2, 2, 3)); is_expandable_to((2, 3), (3,))
        set_correction(); set_correction(False); set_correction(None, 2); set_correction(True, 2)
        extract_shape_from_varargs((2, 3)); extract_shape_from_varargs(((2, 3),)); extract_dims_from_varargs(((1, 2),))
        reduction_dims((2, 3), None); reduction_dims((2, 3), [-1]); reduction_dims((2, 3), [0, -2])
        compute_reduction_output_shape((2, 3), (1,)); is_valid_permutation(3, [0, 2, 1]); invert_perm([2, 0, 1])
        apply_perm([5, 6, 7], [2, 0, 1]); type_to_dtype(int); type_to_dtype(complex); get_higher_type(int, bool)
        is_weakly_lesser_type(int, float); can_safe_cast_to(cast_to=lib.int64, cast_from=lib.float32)
        compare_tensor_meta(lib.ones(2), lib.ones(3)); compare_tensor_meta(lib.ones(2), lib.ones(2), check_strides=True)
        compare_tensor_meta(lib.ones(2, 2), lib.ones(2, 2).t(), check_strides=True)
        check_same_dtype(lib.ones(1), lib.ones(1).double()); check_same_dtype(lib.ones(1), 2)
        [kind.name for kind in c.RETURN_TYPE]; check_is_matrix(lib.ones(1), "f"); check_fp_or_complex(lib.int8, "f")
        clone_preserve_strides(lib.ones(3, 2).t()).stride(); mask_tensor(lib.ones(1) > 2, lib.ones(1))
    """.replace("\n", ";").split(";"):
        call = expression.strip()
        if call:
            text = call if call.startswith("[") else f"c.{call}"
            compare(call, lambda lib, c, t=text: eval(t, {"lib": lib, "c": c}))
    pairs = ["lib.ones(2)", "lib.ones(3)", "lib.ones(2, device='meta')", "lib.ones(())", "2.0", "'x'"]
    for name, a, b, allow in itertools.product(
        ["check_same_device", "check_same_shape", "extract_shape"], pairs, pairs, [True, False]
    ):
        text = f"c.{name}({a}, {b}, allow_cpu_scalar_tensors={allow})"
        compare(text, lambda lib, c, t=text: eval(t, {"lib": lib, "c": c}))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    dtypes()
    layouts(random.Random(0))
    shapes()
    print(f"{compared} answers compared, {differences} differ")
    sys.exit(differences > 0)
