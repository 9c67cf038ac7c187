def mm(self, mat2):
    # aten::mm(Tensor self, Tensor mat2) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    state = get_state()
    inner = state.excluding(keyset)
    dict_2 = dict(inner.autocast_dtypes)
    dtype = dict_2['cpu']
    if (not (self._dtype.is_floating_point and self._device.type == 'cpu' and self._dtype.itemsize < 8)) or self._dtype is dtype:
        result = self
    else:
        cache = inner.autocast_cache
        autograd = self._autograd
        is_parameter = autograd is not None and autograd.requires_grad and autograd.grad_fn is None
        if cache is not None and is_parameter and self._dtype is float32 and self._view is None:
            token = set_state(inner)
            try:
                result = kept_cast(cache, self, dtype)
            finally:
                reset_state(token)
        else:
            if dtype is None:
                result = self
            else:
                token_2 = set_state(inner)
                try:
                    result = _to_copy_code[(self._keyset | inner.added) & inner.kept](self, dtype)
                finally:
                    reset_state(token_2)
    if (not (mat2._dtype.is_floating_point and mat2._device.type == 'cpu' and mat2._dtype.itemsize < 8)) or mat2._dtype is dtype:
        result_3 = mat2
    else:
        cache_2 = inner.autocast_cache
        autograd_2 = mat2._autograd
        is_parameter_2 = autograd_2 is not None and autograd_2.requires_grad and autograd_2.grad_fn is None
        if cache_2 is not None and is_parameter_2 and mat2._dtype is float32 and mat2._view is None:
            token_3 = set_state(inner)
            try:
                result_3 = kept_cast(cache_2, mat2, dtype)
            finally:
                reset_state(token_3)
        else:
            if dtype is None:
                result_3 = mat2
            else:
                token_4 = set_state(inner)
                try:
                    result_3 = _to_copy_code[(mat2._keyset | inner.added) & inner.kept](mat2, dtype)
                finally:
                    reset_state(token_4)
    token_5 = set_state(inner)
    try:
        return mm_code[(result._keyset | result_3._keyset | inner.added) & inner.kept](result, result_3)
    finally:
        reset_state(token_5)
