def fill(x, value):
    # lesson::fill(Tensor(a0!) x, float value) -> ()
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (x._autograd is not None and x._autograd.requires_grad):
        node = begin(op, [x, value])
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        if x._counter is None:
            raise inference_tensor_written(x)
        # CPU: fill (default backend kernel), test_snapshots.py
        chosen = origin if self._disabled and device_type_cell.cell_contents in self._disabled else origin
        state = get_state()
        inner = state.memo.get(autograd_adinplaceorview) or state.after(autograd_adinplaceorview)
        token = set_state(inner)
        try:
            result = chosen(x, value)
        finally:
            reset_state(token)
        if not (type(result) is Tensor and (result._store is None and (not (x is result or value is result)))):
            result = with_declared_aliases(op, chosen, (x, value), {}, result)
        check_nothing(schema, result)
        if x._counter is not None:
            x._counter[0] += 1
        return None if node is None else finish(op, node, [x, value], None)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    if x._counter is None:
        raise inference_tensor_written(x)
    # CPU: fill (default backend kernel), test_snapshots.py
    chosen_2 = origin if self._disabled and device_type_cell.cell_contents in self._disabled else origin
    state = get_state()
    inner_2 = state.memo.get(autograd_adinplaceorview) or state.after(autograd_adinplaceorview)
    token_2 = set_state(inner_2)
    try:
        result_3 = chosen_2(x, value)
    finally:
        reset_state(token_2)
    if not (type(result_3) is Tensor and (result_3._store is None and (not (x is result_3 or value is result_3)))):
        result_3 = with_declared_aliases(op, chosen_2, (x, value), {}, result_3)
    check_nothing(schema, result_3)
    if x._counter is not None:
        x._counter[0] += 1
    return None
