def square(self):
    # aten::square(Tensor self) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView), no grad, inference
    # CPU: square (math kernel), kernels/ops/arithmetic.py
    return function(self)
