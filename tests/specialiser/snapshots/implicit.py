def square(self):
    # aten::square(Tensor self) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: square (math kernel), kernels/ops/arithmetic.py
    return function(self)
