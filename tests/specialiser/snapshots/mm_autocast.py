def mm(self, mat2):
    # aten::mm(Tensor self, Tensor mat2) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    state = get_state()
    inner = state.excluding(keyset)
    dtype = inner.autocast_dtypes['cpu']
    if (not (self._dtype.is_floating_point and self._device.type == 'cpu' and self._dtype.itemsize < 8)) or self._dtype is dtype:
        result = self
    else:
        autograd = self._autograd
        if autograd is not None and autograd.requires_grad and autograd.grad_fn is None:
            cache = inner.autocast_cache
            if cache is not None and inner.autocast_keeps and self._dtype is float32 and self._view is None:
                token = set_state(inner)
                try:
                    result = kept_cast(cache, self, dtype)
                finally:
                    reset_state(token)
            else:
                if dtype is None:
                    result = self
                else:
                    last = _to_copy_code.last
                    code = last.code if last.state is inner.keys and last.tensors is self._keyset else _to_copy_code.find(inner.keys, self._keyset)
                    token_2 = set_state(inner)
                    try:
                        result = code(self, dtype)
                    finally:
                        reset_state(token_2)
        else:
            if dtype is None:
                result = self
            else:
                last_2 = _to_copy_code_2.last
                code_2 = last_2.code if last_2.state is inner.keys and last_2.tensors is self._keyset else _to_copy_code_2.find(inner.keys, self._keyset)
                token_3 = set_state(inner)
                try:
                    result = code_2(self, dtype)
                finally:
                    reset_state(token_3)
    if (not (mat2._dtype.is_floating_point and mat2._device.type == 'cpu' and mat2._dtype.itemsize < 8)) or mat2._dtype is dtype:
        result_4 = mat2
    else:
        autograd_2 = mat2._autograd
        if autograd_2 is not None and autograd_2.requires_grad and autograd_2.grad_fn is None:
            cache_2 = inner.autocast_cache
            if cache_2 is not None and inner.autocast_keeps and mat2._dtype is float32 and mat2._view is None:
                token_4 = set_state(inner)
                try:
                    result_4 = kept_cast(cache_2, mat2, dtype)
                finally:
                    reset_state(token_4)
            else:
                if dtype is None:
                    result_4 = mat2
                else:
                    last_3 = _to_copy_code_3.last
                    code_3 = last_3.code if last_3.state is inner.keys and last_3.tensors is mat2._keyset else _to_copy_code_3.find(inner.keys, mat2._keyset)
                    token_5 = set_state(inner)
                    try:
                        result_4 = code_3(mat2, dtype)
                    finally:
                        reset_state(token_5)
        else:
            if dtype is None:
                result_4 = mat2
            else:
                last_4 = _to_copy_code_4.last
                code_4 = last_4.code if last_4.state is inner.keys and last_4.tensors is mat2._keyset else _to_copy_code_4.find(inner.keys, mat2._keyset)
                token_6 = set_state(inner)
                try:
                    result_4 = code_4(mat2, dtype)
                finally:
                    reset_state(token_6)
    last_5 = mm_code.last
    code_5 = last_5.code if last_5.state is inner.keys and last_5.tensors is result._keyset is result_4._keyset else mm_code.find(inner.keys, result._keyset, result_4._keyset)
    token_7 = set_state(inner)
    try:
        return code_5(result, result_4)
    finally:
        reset_state(token_7)
