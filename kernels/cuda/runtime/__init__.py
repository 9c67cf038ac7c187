"""CUDA devices: what makes `device="cuda"` work. frontend/cuda/ has the public names.

Read memory.py (the caching allocator), operands.py, pointwise.py, copies.py (the kernels at the key CUDA), devices.py
(what is registered) and streams.py; `redispatch.kernels.first_use` is what leads here.
"""
