def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView), no grad, inference
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    metadata = self._interned or metadata_of(self)
    metadata_2 = other._interned or metadata_of(other)
    plan = plans_get(metadata if metadata is metadata_2 else (metadata, metadata_2))
    if plan is None:
        plan = new_plan(variant, (metadata, metadata_2, int), (self, other, 1))
    spec = plan.outputs[0]
    result = new(Tensor)
    result._keyset = spec.inference_keyset
    result._counter = None
    result._autograd = None
    result._store = None
    result._array = empty(spec.elements, spec.array) if spec.sure else memory_for(spec, result)
    result._shape = spec.shape
    result._stride = spec.stride
    result._offset = 0
    result._dtype = spec.dtype
    result._device = spec.device
    result._view = None
    result._interned = spec.metadata
    loop = plan.run
    if loop is None:
        loop_2 = loop_into_fresh(variant, plan, result, (self, other, 1))
        plan.run = loop_2
        loop = loop_2
    value_6 = result._array
    array = self._array
    if array is None:
        raise no_memory(self)
    array_2 = other._array
    if array_2 is None:
        raise no_memory(other)
    values = self._offset
    values_2 = other._offset
    entry = loop.entry
    if entry is None:
        loop.run(value_6, 0, array, values, array_2, values_2)
        return result
    entry(0, loop.numel, value_6, 0, array, values, array_2, values_2)
    return result
