def cat(tensors):
    # aten::cat(Tensor[] tensors, int dim=0) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    tensors_0, tensors_1 = tensors
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    state = get_state()
    dict_2 = dict(state.excluding(keys(KEY_OF_DEVICE['cpu'])).autocast_dtypes)
    widest = widest_dtype([tensors, 0], 'cpu', dict_2['cpu'])
    if widest is None:
        policy = [tensors, 0]
    else:
        if (not (tensors_0._dtype.is_floating_point and tensors_0._device.type == 'cpu' and tensors_0._dtype.itemsize < 8)) or tensors_0._dtype is widest:
            result = tensors_0
        else:
            cache = state.excluding(keys(KEY_OF_DEVICE['cpu'])).autocast_cache
            autograd = tensors_0._autograd
            is_parameter = autograd is not None and autograd.requires_grad and autograd.grad_fn is None
            if cache is not None and is_parameter and tensors_0._dtype is float32 and tensors_0._view is None:
                token = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
                try:
                    result = kept_cast(cache, tensors_0, widest)
                finally:
                    reset_state(token)
            else:
                last = _to_copy_code.last
                code = last.code if last.state is state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys and last.tensors is tensors_0._keyset else _to_copy_code.find(state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys, tensors_0._keyset)
                token_2 = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
                try:
                    result = code(tensors_0, widest)
                finally:
                    reset_state(token_2)
        if (not (tensors_1._dtype.is_floating_point and tensors_1._device.type == 'cpu' and tensors_1._dtype.itemsize < 8)) or tensors_1._dtype is widest:
            result_3 = tensors_1
        else:
            cache_2 = state.excluding(keys(KEY_OF_DEVICE['cpu'])).autocast_cache
            autograd_2 = tensors_1._autograd
            is_parameter_2 = autograd_2 is not None and autograd_2.requires_grad and autograd_2.grad_fn is None
            if cache_2 is not None and is_parameter_2 and tensors_1._dtype is float32 and tensors_1._view is None:
                token_3 = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
                try:
                    result_3 = kept_cast(cache_2, tensors_1, widest)
                finally:
                    reset_state(token_3)
            else:
                last_2 = _to_copy_code_2.last
                code_2 = last_2.code if last_2.state is state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys and last_2.tensors is tensors_1._keyset else _to_copy_code_2.find(state.excluding(keys(KEY_OF_DEVICE['cpu'])).keys, tensors_1._keyset)
                token_4 = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
                try:
                    result_3 = code_2(tensors_1, widest)
                finally:
                    reset_state(token_4)
        policy = [[result, result_3], 0]
    token_5 = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
    try:
        return call(op, policy)
    finally:
        reset_state(token_5)
