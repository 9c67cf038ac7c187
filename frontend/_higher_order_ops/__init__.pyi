"""Made by `python -m redispatch.stubs`."""

from .control_flow import associative_scan as associative_scan, cond as cond, map as map, scan as scan, while_loop as while_loop
from .effects import auto_functionalized_v2 as auto_functionalized_v2, print as print, with_effects as with_effects
from .regions import foreach_map as foreach_map, hints_wrapper as hints_wrapper, invoke_subgraph as invoke_subgraph, local_map_hop as local_map_hop, strict_mode as strict_mode
from .wrap import auto_functionalized as auto_functionalized, out_dtype as out_dtype, tag_activation_checkpoint as tag_activation_checkpoint, wrap as wrap, wrap_activation_checkpoint as wrap_activation_checkpoint, wrap_with_autocast as wrap_with_autocast, wrap_with_set_grad_enabled as wrap_with_set_grad_enabled

