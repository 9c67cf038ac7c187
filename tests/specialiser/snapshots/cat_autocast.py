def cat(tensors):
    # aten::cat(Tensor[] tensors, int dim=0) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    tensors_0, tensors_1 = tensors
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    state = get_state()
    inner = state.excluding(keyset)
    widest = widest_dtype([tensors, 0], 'cpu', inner.autocast_dtypes['cpu'])
    if widest is None:
        last = cat_code.last
        code = last.code if last.state is inner.keys and last.tensors is tensors_0._keyset is tensors_1._keyset else cat_code.find(inner.keys, tensors_0._keyset, tensors_1._keyset)
        token = set_state(inner)
        try:
            return code(tensors)
        finally:
            reset_state(token)
    if (not (tensors_0._dtype.is_floating_point and tensors_0._device.type == 'cpu' and tensors_0._dtype.itemsize < 8)) or tensors_0._dtype is widest:
        result_2 = tensors_0
    else:
        autograd = tensors_0._autograd
        if autograd is not None and autograd.requires_grad and autograd.grad_fn is None:
            cache = inner.autocast_cache
            if cache is not None and inner.autocast_keeps and tensors_0._dtype is float32 and tensors_0._view is None:
                token_2 = set_state(inner)
                try:
                    result_2 = kept_cast(cache, tensors_0, widest)
                finally:
                    reset_state(token_2)
            else:
                last_2 = _to_copy_code.last
                code_2 = last_2.code if last_2.state is inner.keys and last_2.tensors is tensors_0._keyset else _to_copy_code.find(inner.keys, tensors_0._keyset)
                token_3 = set_state(inner)
                try:
                    result_2 = code_2(tensors_0, widest)
                finally:
                    reset_state(token_3)
        else:
            last_3 = _to_copy_code_2.last
            code_3 = last_3.code if last_3.state is inner.keys and last_3.tensors is tensors_0._keyset else _to_copy_code_2.find(inner.keys, tensors_0._keyset)
            token_4 = set_state(inner)
            try:
                result_2 = code_3(tensors_0, widest)
            finally:
                reset_state(token_4)
    if (not (tensors_1._dtype.is_floating_point and tensors_1._device.type == 'cpu' and tensors_1._dtype.itemsize < 8)) or tensors_1._dtype is widest:
        result_5 = tensors_1
    else:
        autograd_2 = tensors_1._autograd
        if autograd_2 is not None and autograd_2.requires_grad and autograd_2.grad_fn is None:
            cache_2 = inner.autocast_cache
            if cache_2 is not None and inner.autocast_keeps and tensors_1._dtype is float32 and tensors_1._view is None:
                token_5 = set_state(inner)
                try:
                    result_5 = kept_cast(cache_2, tensors_1, widest)
                finally:
                    reset_state(token_5)
            else:
                last_4 = _to_copy_code_3.last
                code_4 = last_4.code if last_4.state is inner.keys and last_4.tensors is tensors_1._keyset else _to_copy_code_3.find(inner.keys, tensors_1._keyset)
                token_6 = set_state(inner)
                try:
                    result_5 = code_4(tensors_1, widest)
                finally:
                    reset_state(token_6)
        else:
            last_5 = _to_copy_code_4.last
            code_5 = last_5.code if last_5.state is inner.keys and last_5.tensors is tensors_1._keyset else _to_copy_code_4.find(inner.keys, tensors_1._keyset)
            token_7 = set_state(inner)
            try:
                result_5 = code_5(tensors_1, widest)
            finally:
                reset_state(token_7)
    last_6 = cat_code_2.last
    code_6 = last_6.code if last_6.state is inner.keys and last_6.tensors is result_2._keyset is result_5._keyset else cat_code_2.find(inner.keys, result_2._keyset, result_5._keyset)
    token_8 = set_state(inner)
    try:
        return code_6([result_2, result_5])
    finally:
        reset_state(token_8)
