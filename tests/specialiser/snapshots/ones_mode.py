def ones(size):
    # aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
    # DispatchKeySet(BackendSelect, Python, ADInplaceOrView, PythonTLSSnapshot), modes
    # PythonTLSSnapshot: python_tls_snapshot (backend fallback), dispatch/layers/python.py
    # Python: python (backend fallback), dispatch/layers/python.py
    found = _HANDLING_get(())
    result = in_order(()) if found is None else found
    state = get_state()
    inner = state.entered()
    mode = inner.modes[-1]
    inner_2 = state.memo.get(entered_answering) or state.after(entered_answering)
    token = set_state(inner_2)
    try:
        result_2 = mode.__torch_dispatch__(op, result, (size,), {})
    finally:
        reset_state(token)
    if result_2 is not NotImplemented:
        if not isinstance(result_2, TensorBase):
            raise no_tensor(schema, result_2)
        return result_2
    token_2 = set_state(inner)
    try:
        return ask_in_turn(op, result, result, (size,), {})
    finally:
        reset_state(token_2)
