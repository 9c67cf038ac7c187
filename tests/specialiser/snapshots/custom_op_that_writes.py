def fill(x, value):
    # lesson::fill(Tensor(a0!) x, float value) -> ()
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (x._autograd is not None and x._autograd.requires_grad):
        node = begin(op, [x, value])
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        if x._counter is None:
            raise inference_tensor_written()
        # CPU: fill (default backend kernel), ops/custom_op.py
        state = get_state()
        inner = state.memo.get(autograd_adinplaceorview) or state.after(autograd_adinplaceorview)
        token = set_state(inner)
        try:
            function_2 = function(x, value)
        finally:
            reset_state(token)
        if function_2 is not None:
            raise wrong_results(schema, function_2)
        if x._counter is not None:
            x._counter[0] += 1
        return None if node is None else finish(op, node, [x, value], None)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    if x._counter is None:
        raise inference_tensor_written()
    # CPU: fill (default backend kernel), ops/custom_op.py
    state = get_state()
    inner_2 = state.memo.get(autograd_adinplaceorview) or state.after(autograd_adinplaceorview)
    token_2 = set_state(inner_2)
    try:
        function_3 = function(x, value)
    finally:
        reset_state(token_2)
    if function_3 is not None:
        raise wrong_results(schema, function_3)
    if x._counter is not None:
        x._counter[0] += 1
    return None
