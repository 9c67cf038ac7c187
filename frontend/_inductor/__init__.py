"""The compiler's back: graphs become few loops. Read first `lowering.py`, or `compile_fx.py` for how it is used."""

from redispatch.compiler import cudagraph_mark_step_begin

from .compile_fx import CompiledFxGraph, compile_fx_inner

__all__ = ["CompiledFxGraph", "compile_fx_inner", "cudagraph_mark_step_begin"]
