def ones(size):
    # aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
    # DispatchKeySet(BackendSelect, ADInplaceOrView)
    # BackendSelect: backend_select (kernel), dispatch/layers/backend_select.py
    # CPU: ones_kernel (default backend kernel), kernels/ops/creation.py
    value = tuple(size)
    dtype = get_default_dtype()
    result = CONSTANTS_get((value, dtype, None))
    if result is None:
        return filled_first(size, 1, None, None, None)
    spec = result.outputs[0]
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
    if result.run is None:
        result.near(result_3, 1)
    else:
        result.run(result_3._array, 0, 1)
    return result_3
