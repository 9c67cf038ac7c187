def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, Conjugate, ADInplaceOrView, AutogradCPU), no grad
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    # Conjugate: conjugate (backend fallback), dispatch/layers/conjugate.py
    if self._keyset & CONJUGATE:
        state = get_state()
        inner = state.excluding(AUTOGRAD)
        token = set_state(inner)
        try:
            result = clone_of(self)
        finally:
            reset_state(token)
    else:
        result = self
    if other._keyset & CONJUGATE:
        state = get_state()
        inner_2 = state.excluding(AUTOGRAD)
        token_2 = set_state(inner_2)
        try:
            result_2 = clone_of(other)
        finally:
            reset_state(token_2)
    else:
        result_2 = other
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    metadata = result._interned or metadata_of(result)
    metadata_2 = result_2._interned or metadata_of(result_2)
    plan = plans_get(metadata if metadata is metadata_2 else (metadata, metadata_2))
    if plan is None:
        plan = new_plan(variant, (metadata, metadata_2, int), (result, result_2, 1))
    spec = plan.outputs[0]
    result_3 = new(Tensor)
    result_3._keyset = spec.keyset
    result_3._counter = [0]
    result_3._autograd = None
    result_3._store = None
    result_3._array = empty(spec.elements, spec.array) if spec.sure else memory_for(spec, result_3)
    result_3._shape = spec.shape
    result_3._stride = spec.stride
    result_3._offset = 0
    result_3._dtype = spec.dtype
    result_3._device = spec.device
    result_3._view = None
    result_3._interned = spec.metadata
    loop = plan.run
    if loop is None:
        loop_2 = loop_into_fresh(variant, plan, result_3, (result, result_2, 1))
        plan.run = loop_2
        loop = loop_2
    value_6 = result_3._array
    array = result._array
    if array is None:
        raise no_memory(result)
    array_2 = result_2._array
    if array_2 is None:
        raise no_memory(result_2)
    values = result._offset
    values_2 = result_2._offset
    entry = loop.entry
    if entry is None:
        loop.run(value_6, 0, array, values, array_2, values_2)
    else:
        entry(0, loop.numel, value_6, 0, array, values, array_2, values_2)
    return result_3
