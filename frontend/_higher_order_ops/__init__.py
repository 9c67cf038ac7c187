"""Higher-order operators: control flow and regions, as operators that take functions.

They are transparent: run eagerly they are the Python loop or branch that they stand for, recorded by autograd, seen by
modes and transforms as what their bodies call. A mode that wants the operator itself sets
`supports_higher_order_operators`, or registers a rule by `py_impl`.

Read next: control_flow.py.
"""

from redispatch import _moved, _names

__all__ = _names.take(
    globals(),
    {
        ".control_flow": "associative_scan cond map scan while_loop",
        ".effects": "auto_functionalized_v2 print with_effects",
        ".regions": "foreach_map hints_wrapper invoke_subgraph local_map_hop strict_mode",
        ".wrap": """
            auto_functionalized out_dtype tag_activation_checkpoint wrap wrap_activation_checkpoint wrap_with_autocast
            wrap_with_set_grad_enabled
        """,
    },
)

_moved.join(__name__)
