"""The processor."""

from __future__ import annotations

from functools import cache

from redispatch.kernels.engine.plain import has_llvm


@cache
def get_cpu_capability() -> str:
    """The widest vectors that kernels are compiled for: "AVX512", "AVX2", "SVE256" or "DEFAULT"."""
    if not has_llvm():
        return "DEFAULT"
    import llvmlite.binding as llvm  # here, because nothing else at import needs it

    features = llvm.get_host_cpu_features()
    for name, wanted in (("AVX512", ("avx512f", "avx512vl")), ("AVX2", ("avx2", "fma")), ("SVE256", ("sve",))):
        if all(features.get(feature) for feature in wanted):
            return name
    return "DEFAULT"
