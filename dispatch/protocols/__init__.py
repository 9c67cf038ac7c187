"""Protocols that come before any key: `__torch_function__`, function modes, and the stacks of modes.

Read in this order: override, mode_stack.
"""
