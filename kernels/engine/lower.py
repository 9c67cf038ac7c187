"""The one place that talks to numba: for programs that have more than `translate/` knows, such as a user's may.

numba writes the loop and all that it calls in LLVM's language, as one module, and no further. It would make machine
code of each function that a loop calls by itself, and then again of the loop. Here a function is code for the module of
who calls it; `native.py` optimises the whole, once.
"""

from __future__ import annotations

from functools import cache as once
from typing import Any

import numpy as np

from ..maths.vecmath import define
from . import native, primitives
from .program import Program
from .translate.promote import leaves, llvm

# A loop as numba lowers it, under our name
ADAPTER = """
declare i32 @"{loop}"({types})
define internal i32 @{name}({parameters}) alwaysinline {{
  %exception = alloca ptr
  {lines}
  %status = call i32 @"{loop}"({passed})
  ret i32 %status
}}
"""


def lowered(program: Program, signature: tuple[str, ...], fastmath: frozenset[str]) -> tuple[str, Any, str]:
    """The program's last function: as a text that defines the loop, the module that it needs, and its result's type."""
    import numba  # here, because importing numba takes 0.3 s

    njit: Any = numba.njit  # its stubs do not know all of its options
    types: Any = numba.types

    primitives.register()
    define.register()

    def numba_type(name: str) -> Any:
        if name.endswith("[]"):
            return types.Array(numba_type(name[:-2]), 1, "C")
        return types.boolean if name == "bool" else getattr(types, name)

    # error_model "numpy": a division by zero gives inf or nan. Python's would raise, and keep loops from vectorising.
    # _nrt: no numba runtime, which counts references to arrays. Callers hold theirs while a kernel runs, and kernels
    # allocate none.
    options: dict[str, Any] = dict(_nrt=False, error_model="numpy", no_cfunc_wrapper=True, no_cpython_wrapper=True)
    options["pipeline_class"] = pipeline()
    if fastmath:
        options["fastmath"] = set(fastmath)
    namespace = program.load()
    for name in program.compiled[:-1]:  # always inlined: a call that LLVM leaves standing keeps its loop scalar
        namespace[name] = njit(forceinline=True, **options)(namespace[name])
    dispatcher = njit(**options)(namespace[program.compiled[-1]])
    dispatcher.compile(tuple(numba_type(name) for name in signature))
    (overload,) = dispatcher.overloads.values()
    overload.library.finalize()
    module = overload.library._final_module
    loop = overload.fndesc.llvm_func_name
    wanted = [str(one.type) for one in module.get_function(loop).arguments]
    return _adapter(loop, wanted, signature), module, str(overload.fndesc.restype)


def _adapter(loop: str, types: list[str], signature: tuple[str, ...]) -> str:
    """Passes a loop what numba expects.

    The first two are the places of the result and of an exception. An array is seven: two objects that are not used,
    the number of elements, the bytes of one, the pointer, size and stride of the one dimension.
    """
    parameters, passed, lines = ["ptr %result"], ["ptr %result", "ptr %exception"], []
    for at, kind in enumerate(signature):
        if kind.endswith("[]"):
            size = np.dtype(kind[:-2]).itemsize
            parameters += [f"ptr %d{at}", f"i64 %n{at}"]
            passed += [
                "ptr null",
                "ptr null",
                f"i64 %n{at}",
                f"i64 {size}",
                f"ptr %d{at}",
                f"i64 %n{at}",
                f"i64 {size}",
            ]
            continue
        for number, leaf in enumerate(leaves(kind)):
            name, wanted = f"%x{at}_{number}", types[len(passed)]
            parameters.append(f"{llvm(leaf)} {name}")
            if wanted != llvm(leaf):  # numba passes a bool as a byte
                lines.append(f"{name}.wide = zext {llvm(leaf)} {name} to {wanted}")
                name += ".wide"
            passed.append(f"{wanted} {name}")
    return ADAPTER.format(
        loop=loop, name=native.LOOP, types=", ".join(types), parameters=", ".join(parameters),
        lines="\n  ".join(lines), passed=", ".join(passed),
    )  # fmt: skip


@once
def pipeline() -> Any:
    """numba's compiler that ends with a function's code in LLVM's language, given as a class (`pipeline_class`)."""
    # here, because importing numba takes 0.4 s
    from numba import _dynfunc  # type: ignore[attr-defined]  # a part in C, without stubs
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.typed_passes import (
        AnnotateTypes,
        IRLegalization,
        NativeLowering,
        NoPythonBackend,
        NopythonTypeInference,
        PreLowerStripPhis,
    )
    from numba.core.untyped_passes import (
        DeadBranchPrune,
        FixupArgs,
        GenericRewrites,
        IRProcessing,
        ReconstructSSA,
        RewriteSemanticConstants,
        TranslateByteCode,
    )

    class Code(JITCodeLibrary):
        """A function's code with that of all that it calls, as it was written."""

        def add_llvm_module(self, module: Any) -> None:
            self._final_module.link_in(module)

        def finalize(self) -> None:
            for library in dict.fromkeys(self._linking_libraries):
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            self._finalized = True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Lowering(NativeLowering):
        """Lowers a function without machine code, and tells callers of it all the same."""

        _name = "redispatch_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = library = Code(state.targetctx.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            super().run_pass(state)
            lowered = state["cr"]
            # numba knows a function by the object that Python would call: here one that nobody calls
            known = _dynfunc.make_function(lowered.fndesc.lookup_module(), "", "", 0, lowered.env, (library,))
            state.targetctx.insert_user_function(known, lowered.fndesc, [library])
            state["cr"] = lowered._replace(cfunc=known)
            return True

    class Compiler(CompilerBase):
        """Those of numba's passes that a loop over numbers needs: it has no closures, generators, lists or `raise`."""

        def define_pipelines(self) -> list[Any]:
            passes = PassManager("redispatch")
            for one in (
                *(TranslateByteCode, FixupArgs, IRProcessing),
                *(RewriteSemanticConstants, DeadBranchPrune, GenericRewrites, ReconstructSSA),
                *(NopythonTypeInference, PreLowerStripPhis, IRLegalization, AnnotateTypes),
                *(Lowering, NoPythonBackend),
            ):
                passes.add_pass(one, one.__name__)
            passes.finalize()
            return [passes]

    return Compiler
