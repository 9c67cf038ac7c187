"""From a function in numba's Python to LLVM's language, as one module with all that it calls, and no further.

numba would make machine code of each function that a loop calls by itself, and then again of the loop. Here a function
is code for the module of who calls it; `native.py` optimises the whole, once.
"""

from __future__ import annotations

from functools import cache as once
from typing import Any


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
