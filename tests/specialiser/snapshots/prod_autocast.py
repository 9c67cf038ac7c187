def prod(self):
    # aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    if (not (self._dtype.is_floating_point and self._device.type == 'cpu' and self._dtype.itemsize < 8)) or self._dtype is float32:
        result = self
    else:
        state = get_state()
        inner = state.excluding(keyset)
        cache = inner.autocast_cache
        autograd = self._autograd
        is_parameter = autograd is not None and autograd.requires_grad and autograd.grad_fn is None
        if cache is not None and is_parameter and self._dtype is float32 and self._view is None:
            token = set_state(inner)
            try:
                result = kept_cast(cache, self, float32)
            finally:
                reset_state(token)
        else:
            token_2 = set_state(inner)
            try:
                result = _to_copy_code[(self._keyset | inner.added) & inner.kept](self, float32)
            finally:
                reset_state(token_2)
    state = get_state()
    inner_2 = state.excluding(keyset)
    token_3 = set_state(inner_2)
    try:
        return prod_code[(result._keyset | inner_2.added) & inner_2.kept](result)
    finally:
        reset_state(token_3)
