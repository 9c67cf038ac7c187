"""The engine: from a scalar function to compiled loops over whole operands, cached on disk. No tensors.

Read in this order: primitives, convert, program, compile, cache, elementwise, pool.
"""
