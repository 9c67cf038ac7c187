"""From a program to PTX by the library's own translator and LLVM, which numba brings along: no compiler of NVIDIA's.

A graph's kernels are compiled so, and have the very scalar functions that the CPU's have: what is pointwise gives the
same bits on both. Read next: `translation.py`.
"""

from __future__ import annotations

from functools import cache as once
from typing import TYPE_CHECKING, Any

from .translation import GPUUnit

if TYPE_CHECKING:
    from ..engine.program import Program

TRIPLE = "nvptx64-nvidia-cuda"


@once
def machine(target: str) -> Any:
    """A card of a compute capability ("sm_80"), as LLVM knows it."""
    import llvmlite.binding as llvm  # here, because importing it takes 40 ms, and no kernel may be needed

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=target, opt=3)


def llvm_text(program: Program, signature: tuple[str, ...], fused: bool = False) -> str:
    """The last function of a program as a kernel, in LLVM's language. Unknown for what is not translated.

    fused: whether a product and a sum behind it may be rounded once, as numba-cuda has it. A graph's kernels may not:
        they are to have the CPU's bits.
    """
    return GPUUnit().entry(program, signature, frozenset({"contract"} if fused else ()))


def optimised(text: str, target: str) -> Any:
    """A kernel as a module of LLVM's, optimised for a target."""
    import llvmlite.binding as llvm  # here, because importing it takes 40 ms, and no kernel may be needed

    card = machine(target)
    module = llvm.parse_assembly(f'target datalayout = "{card.target_data}"\ntarget triple = "{TRIPLE}"\n{text}')
    for one in (*module.functions, *module.global_variables):
        if not one.is_declaration and one.name != "kernel":
            one.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization = False, False
    llvm.create_pass_builder(card, options).getModulePassManager().run(module, llvm.create_pass_builder(card, options))
    return module


def compiled(program: Program, signature: tuple[str, ...], target: str, fused: bool = False) -> str:
    """The PTX of a program's last function. Unknown for what is not translated."""
    text: str = machine(target).emit_assembly(optimised(llvm_text(program, signature, fused), target))
    return text
