"""`redispatch.autograd`: gradients under PyTorch's names. The graph and its engine are in dispatch/autograd/."""

from sys import modules

from redispatch import _names
from redispatch.dispatch.autograd import anomaly_mode, forward_ad, function, grad_mode, graph, variable

from . import functional

torch = modules[__package__.partition(".")[0]]  # the library, which old programs find here under this name

__all__ = _names.take(
    globals(),
    {
        "redispatch.dispatch.autograd": """
            BATCHED FORWARD Function FunctionCtx GradLevel GradientEdge JvpLevel NoDerivative Node ONES_LIKE
            RemovableHandle SavedTensor Variable ZEROS _unsafe_preserve_version_counter backward detect_anomaly
            differentiable enable_grad enforce_grad_layout_policy grad inference_mode is_anomaly_check_nan_enabled
            is_anomaly_enabled is_grad_enabled is_inference_mode_enabled is_multithreading_enabled is_transformed
            no_grad once_differentiable pulled_back register_function_derivative set_anomaly_enabled
            set_detect_anomaly set_grad_enabled set_multithreading_enabled
        """,
        ".gradcheck": "GradcheckError gradcheck gradgradcheck",
    },
)
_places, __getattr__, __dir__ = _names.late(
    globals(),
    {"redispatch._autograd_profiler": "_profiler_enabled kineto_available", ".": "_functions profiler profiler_util"},
)
__all__ += ["anomaly_mode", "forward_ad", "function", "functional", "grad_mode", "graph", "variable"]
