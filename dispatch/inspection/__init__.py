"""Inspection: traces, explanations and breakpoints of calls, the origins of tensors, tracebacks without own frames.

Read in this order: explain, trace, breakpoint, origins, frames.
"""
