def both(x, out):
    # lesson::both(Tensor x, Tensor(a!)? out=None) -> (Tensor, Tensor(a!))
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (x._autograd is not None and x._autograd.requires_grad) or (out._autograd is not None and out._autograd.requires_grad):
        node = begin(op, [x, out])
        # CPU: <lambda> (kernel), test_snapshots.py
        state = get_state()
        inner = state.excluding(AUTOGRAD)
        token = set_state(inner)
        try:
            function_2 = function(x, out)
        finally:
            reset_state(token)
        if not (isinstance(function_2, union_type) and len(function_2) == 2):
            raise wrong_results(schema, function_2)
        result = tuple(function_2)
        return result if node is None else finish(op, node, [x, out], result)
    # CPU: <lambda> (kernel), test_snapshots.py
    state = get_state()
    inner_2 = state.excluding(AUTOGRAD)
    token_2 = set_state(inner_2)
    try:
        function_3 = function(x, out)
    finally:
        reset_state(token_2)
    if not (isinstance(function_3, union_type_2) and len(function_3) == 2):
        raise wrong_results(schema, function_3)
    return tuple(function_3)
