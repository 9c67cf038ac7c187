"""The functions that make tensors of no others, and take a device."""

from __future__ import annotations

import redispatch as rd

_NAMES = """
    _cudnn_init_dropout_state arange bartlett_window blackman_window _empty_affine_quantized empty_strided eye full
    from_file hann_window hamming_window kaiser_window linspace logspace ones scalar_tensor rand randint randn randperm
    range _efficientzerotensor zeros tril_indices triu_indices tensor
""".split()  # fmt: skip

tensor_factory_functions = tuple(getattr(rd, name) for name in _NAMES if hasattr(rd, name))
