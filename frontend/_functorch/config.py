"""Switches of PyTorch's compiler of graphs that programs set, for which there is nothing to switch here."""

check_custom_op_aliasing = True
custom_op_default_layout_constraint = "needs_exact_strides"
functionalize_rng_ops = False
fake_tensor_allow_meta = True
fake_tensor_propagate_real_tensors = False
