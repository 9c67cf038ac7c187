"""Helpers with public module paths of their own, such as `_pytree`, `_python_dispatch`, `checkpoint` and `data`."""

from redispatch import _moved
from redispatch._names import late

# Lower rooms use this one, and few programs need these.
PLACES, __getattr__, __dir__ = late(
    globals(),
    {
        ".": """
            _contextlib _dtype_abbrs _mode_utils _python_dispatch _pytree backend_registration benchmark checkpoint
            collect_env data deterministic dlpack flop_counter hooks module_tracker type_names weak
        """,
        ".backend_registration": "generate_methods_for_privateuse1_backend rename_privateuse1_backend",
        ".settings": "set_module",
        "redispatch.dispatch.tensor": "swap_tensors",
    },
)

_moved.join(__name__)
