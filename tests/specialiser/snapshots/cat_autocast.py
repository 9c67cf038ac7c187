def cat(tensors):
    # aten::cat(Tensor[] tensors, int dim=0) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    tensors_0, tensors_1 = tensors
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    state = get_state()
    token = set_state(state.excluding(keys(KEY_OF_DEVICE['cpu'])))
    try:
        policy = promote(op, [tensors, 0], 'cpu')
        return call(op, policy)
    finally:
        reset_state(token)
