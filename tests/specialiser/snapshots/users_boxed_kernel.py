def counted(x, n):
    # lesson::counted(Tensor x, Tensor? y=None, int n=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), no grad
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    # CPU: counted (kernel), test_snapshots.py
    if n > 1:
        state = get_state()
        inner = state.excluding(AUTOGRAD)
        token = set_state(inner)
        try:
            result = x.mul(n)
        finally:
            reset_state(token)
    else:
        state = get_state()
        inner_2 = state.excluding(AUTOGRAD)
        token_2 = set_state(inner_2)
        try:
            result = x.clone()
        finally:
            reset_state(token_2)
    return result
