def prod(self):
    # aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    state = get_state()
    if (not (self._dtype.is_floating_point and self._device.type == 'cpu' and self._dtype.itemsize < 8)) or self._dtype is float32:
        result = self
    else:
        cache = state.excluding(keys(KEY_OF_DEVICE['cpu'])).autocast_cache
        autograd = self._autograd
        is_parameter = autograd is not None and autograd.requires_grad and autograd.grad_fn is None
        if cache is not None and is_parameter and self._dtype is float32 and self._view is None:
            token = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
            try:
                result = kept_cast(cache, self, float32)
            finally:
                reset_state(token)
        else:
            last = _to_copy_code.last
            code = last.code if last.state is state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys and last.tensors is self._keyset else _to_copy_code.find(state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys, self._keyset)
            token_2 = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
            try:
                result = code(self, float32)
            finally:
                reset_state(token_2)
    last_2 = prod_code.last
    code_2 = last_2.code if last_2.state is state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys and last_2.tensors is result._keyset else prod_code.find(state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys, result._keyset)
    token_3 = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
    try:
        return code_2(result)
    finally:
        reset_state(token_3)
