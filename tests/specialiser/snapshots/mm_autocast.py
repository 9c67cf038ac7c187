def mm(self, mat2):
    # aten::mm(Tensor self, Tensor mat2) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    state = get_state()
    dict_2 = dict(state.excluding(keys(KEY_OF_DEVICE['cpu'])).autocast_dtypes)
    dtype = dict_2['cpu']
    if (not (self._dtype.is_floating_point and self._device.type == 'cpu' and self._dtype.itemsize < 8)) or self._dtype is dtype:
        result = self
    else:
        cache = state.excluding(keys(KEY_OF_DEVICE['cpu'])).autocast_cache
        autograd = self._autograd
        is_parameter = autograd is not None and autograd.requires_grad and autograd.grad_fn is None
        if cache is not None and is_parameter and self._dtype is float32 and self._view is None:
            token = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
            try:
                result = kept_cast(cache, self, dtype)
            finally:
                reset_state(token)
        else:
            if dtype is None:
                result = self
            else:
                last = _to_copy_code.last
                code = last.code if last.state is state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys and last.tensors is self._keyset else _to_copy_code.find(state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys, self._keyset)
                token_2 = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
                try:
                    result = code(self, dtype)
                finally:
                    reset_state(token_2)
    if (not (mat2._dtype.is_floating_point and mat2._device.type == 'cpu' and mat2._dtype.itemsize < 8)) or mat2._dtype is dtype:
        result_3 = mat2
    else:
        cache_2 = state.excluding(keys(KEY_OF_DEVICE['cpu'])).autocast_cache
        autograd_2 = mat2._autograd
        is_parameter_2 = autograd_2 is not None and autograd_2.requires_grad and autograd_2.grad_fn is None
        if cache_2 is not None and is_parameter_2 and mat2._dtype is float32 and mat2._view is None:
            token_3 = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
            try:
                result_3 = kept_cast(cache_2, mat2, dtype)
            finally:
                reset_state(token_3)
        else:
            if dtype is None:
                result_3 = mat2
            else:
                last_2 = _to_copy_code_2.last
                code_2 = last_2.code if last_2.state is state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys and last_2.tensors is mat2._keyset else _to_copy_code_2.find(state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys, mat2._keyset)
                token_4 = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
                try:
                    result_3 = code_2(mat2, dtype)
                finally:
                    reset_state(token_4)
    last_3 = mm_code.last
    code_3 = last_3.code if last_3.state is state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys and last_3.tensors is result._keyset is result_3._keyset else mm_code.find(state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys, result._keyset, result_3._keyset)
    token_5 = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
    try:
        return code_3(result, result_3)
    finally:
        reset_state(token_5)
