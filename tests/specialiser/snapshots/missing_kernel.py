def absent(x):
    # lesson::absent(Tensor x) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), no grad
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    # CPU: _missing (missing), missing.py
    state = get_state()
    inner = state.excluding(AUTOGRAD)
    token = set_state(inner)
    try:
        return boxed(op, keyset, [x])
    finally:
        reset_state(token)
