def double(x, times):
    # lesson::double(Tensor x, float by=2., *, int? times=None) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (x._autograd is not None and x._autograd.requires_grad):
        node = begin(op, [x, 2.0, times])
        # CPU: <lambda> (kernel), test_snapshots.py
        state = get_state()
        inner = state.excluding(AUTOGRAD)
        token = set_state(inner)
        try:
            function_2 = function(x, times=times)
        finally:
            reset_state(token)
        if not isinstance(function_2, TensorBase):
            raise no_tensor(schema, function_2)
        return function_2 if node is None else finish(op, node, [x, 2.0, times], function_2)
    # CPU: <lambda> (kernel), test_snapshots.py
    state = get_state()
    inner_2 = state.excluding(AUTOGRAD)
    token_2 = set_state(inner_2)
    try:
        function_3 = function(x, times=times)
    finally:
        reset_state(token_2)
    if not isinstance(function_3, TensorBase):
        raise no_tensor(schema, function_3)
    return function_3
