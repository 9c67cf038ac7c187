def add_out(self, other, out):
    # aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad) or (other._autograd is not None and other._autograd.requires_grad) or (out._autograd is not None and out._autograd.requires_grad):
        node = begin(op, [self, other, 1, out])
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        if out._counter is None:
            raise inference_tensor_written()
        # CPU: pointwise add (kernel), ops/arithmetic.py
        result = run_out(self, other, 1, out)
        if out._counter is not None:
            out._counter[0] += 1
        return out if node is None else finish(op, node, [self, other, 1, out], out)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    if out._counter is None:
        raise inference_tensor_written()
    # CPU: pointwise add (kernel), ops/arithmetic.py
    result_2 = run_out(self, other, 1, out)
    if out._counter is not None:
        out._counter[0] += 1
    return out
