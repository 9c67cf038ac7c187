def square(self):
    # aten::square(Tensor self) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, Python, ADInplaceOrView, AutogradCPU, PythonTLSSnapshot), modes
    # PythonTLSSnapshot: python_tls_snapshot (backend fallback), dispatch/layers/python.py
    # AutogradCPU: square (math kernel), kernels/ops/arithmetic.py
    state = get_state()
    inner = state.entered()
    token = set_state(inner)
    try:
        return function(self)
    finally:
        reset_state(token)
