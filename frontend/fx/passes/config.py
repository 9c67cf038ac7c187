"""Passes of a program's own in PyTorch's places: `post_grad_custom_pre_pass` runs ahead of all others of `run_passes`,
`post_grad_custom_post_pass` behind them, and ahead of those that bring writes in. Each is a function of a graph."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from redispatch.utils._config_module import patch_of

post_grad_custom_pre_pass: Callable[[Any], Any] | None = None
post_grad_custom_post_pass: Callable[[Any], Any] | None = None
patch = patch_of(sys.modules[__name__])
