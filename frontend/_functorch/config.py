"""Switches of PyTorch's compiler of graphs. Those of fake tensors are heeded; the others say how it is.

fake_tensor_allow_meta: whether fakes may be on the meta device. fake_tensor_propagate_real_tensors: whether fakes are
computed with, too, which gives hints to sizes that depend on elements. A FakeTensorMode reads both when it is made.
"""

import sys

from redispatch.modes.fake.tensor import SWITCHES
from redispatch.utils._config_module import patch_of

check_custom_op_aliasing = True
custom_op_default_layout_constraint = "needs_exact_strides"
functionalize_rng_ops = False
fake_tensor_allow_meta = True
fake_tensor_propagate_real_tensors = False

patch = patch_of(sys.modules[__name__])
SWITCHES.append(sys.modules[__name__])
