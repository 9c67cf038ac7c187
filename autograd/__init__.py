"""The graph that backward walks, and the engine that walks it.

Read in this order: hooks, node, accumulate, saved, views, copy_slices, history, derivative, formulas, keeping,
operator_node, straight, no_derivative, engine, api; then what stands beside: grad_mode, anomaly, watch, function,
op_function, graph, gradcheck, variable.
"""

from . import function, grad_mode, graph
from .anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from .api import GradientEdge, backward, grad
from .derivative import differentiable
from .function import Function, FunctionCtx, once_differentiable
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .gradcheck import GradcheckError, gradcheck, gradgradcheck
from .hooks import RemovableHandle
from .needs import ONES_LIKE, ZEROS
from .no_derivative import NoDerivative
from .node import Node
from .op_function import register_function_derivative
from .saved import SavedTensor
from .variable import Variable

__all__ = [
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "GradientEdge",
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
    "function",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "register_function_derivative",
    "set_detect_anomaly",
    "set_grad_enabled",
]
