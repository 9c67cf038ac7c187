def prod(self):
    # aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    if (not (self._dtype.is_floating_point and self._device.type == 'cpu' and self._dtype.itemsize < 8)) or self._dtype is float32:
        result = self
    else:
        autograd = self._autograd
        if autograd is not None and autograd.requires_grad and autograd.grad_fn is None:
            state = get_state()
            inner = state.excluding(keyset)
            cache = inner.autocast_cache
            if cache is not None and inner.autocast_keeps and self._dtype is float32 and self._view is None:
                token = set_state(inner)
                try:
                    result = kept_cast(cache, self, float32)
                finally:
                    reset_state(token)
            else:
                last = _to_copy_code.last
                code = last.code if last.state is inner.keys and last.tensors is self._keyset else _to_copy_code.find(inner.keys, self._keyset)
                token_2 = set_state(inner)
                try:
                    result = code(self, float32)
                finally:
                    reset_state(token_2)
        else:
            state = get_state()
            inner_2 = state.excluding(keyset)
            last_2 = _to_copy_code_2.last
            code_2 = last_2.code if last_2.state is inner_2.keys and last_2.tensors is self._keyset else _to_copy_code_2.find(inner_2.keys, self._keyset)
            token_3 = set_state(inner_2)
            try:
                result = code_2(self, float32)
            finally:
                reset_state(token_3)
    state = get_state()
    inner_3 = state.excluding(keyset)
    last_3 = prod_code.last
    code_3 = last_3.code if last_3.state is inner_3.keys and last_3.tensors is result._keyset else prod_code.find(inner_3.keys, result._keyset)
    token_4 = set_state(inner_3)
    try:
        return code_3(result)
    finally:
        reset_state(token_4)
