"""The graph that backward walks, and the engine that walks it.

Read in this order: hooks, node, accumulate, saved, views, history, derivative, formulas, saving, operator_node, engine,
api; then forward mode and transforms: grad_level, forward, jvp_level, forward_ad; then what stands beside: grad_mode,
anomaly_mode, function, op_function, graph, variable.
"""

from . import anomaly_mode, forward_ad, function, grad_mode, graph
from .anomaly_mode import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_anomaly_enabled,
    set_detect_anomaly,
)
from .api import GradientEdge, backward, grad
from .derivative import NoDerivative, differentiable
from .fallback import FALLBACK
from .forward import FORWARD
from .function import Function, FunctionCtx, once_differentiable
from .grad_level import GradLevel, pulled_back
from .grad_mode import (
    _unsafe_preserve_version_counter,
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    is_transformed,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .hooks import RemovableHandle
from .jvp_level import JvpLevel
from .node import BATCHED, ONES_LIKE, ZEROS, Node
from .op_function import register_function_derivative
from .saved import SavedTensor
from .variable import Variable

__all__ = [
    "_unsafe_preserve_version_counter",
    "set_multithreading_enabled",
    "is_multithreading_enabled",
    "enforce_grad_layout_policy",
    "anomaly_mode",
    "BATCHED",
    "FALLBACK",
    "FORWARD",
    "Function",
    "FunctionCtx",
    "GradLevel",
    "GradientEdge",
    "JvpLevel",
    "NoDerivative",
    "Node",
    "ONES_LIKE",
    "RemovableHandle",
    "SavedTensor",
    "Variable",
    "ZEROS",
    "backward",
    "detect_anomaly",
    "differentiable",
    "enable_grad",
    "forward_ad",
    "function",
    "grad",
    "grad_mode",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_transformed",
    "no_grad",
    "once_differentiable",
    "pulled_back",
    "register_function_derivative",
    "set_anomaly_enabled",
    "set_detect_anomaly",
    "set_grad_enabled",
]
