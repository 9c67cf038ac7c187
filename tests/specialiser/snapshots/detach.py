def detach(self):
    # aten::detach(Tensor(a) self) -> Tensor(a)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        # ADInplaceOrView: tracking (kernel), kernels/ops/copying.py
        # CPU: detach_kernel (default backend kernel), kernels/ops/geometry.py
        metadata = self._interned or metadata_of(self)
        window = windows_get(metadata)
        if window is None:
            geometry_2 = geometry(self)
            window = remember((metadata,), self, geometry_2)
        value_2 = window.metadata
        value_3 = self._store
        if value_3 is None:
            value_3 = self._storage
        array = self._array
        counted = self._counter is not None
        result = new(Tensor)
        result._keyset = window.keyset if counted else window.inference_keyset
        result._counter = [0] if counted else None
        result._autograd = None
        result._store = value_3
        result._array = array
        result._shape = value_2.shape
        result._stride = value_2.stride
        result._offset = self._offset + window.start
        result._dtype = value_2.dtype
        result._device = value_2.device
        result._view = None
        result._interned = value_2
        if array is None and value_3._array is not None:
            value_3.hand_out(result)
        result._counter = self._counter
        return result
    # ADInplaceOrView: tracking (kernel), kernels/ops/copying.py
    # CPU: detach_kernel (default backend kernel), kernels/ops/geometry.py
    metadata_2 = self._interned or metadata_of(self)
    window_3 = windows_get(metadata_2)
    if window_3 is None:
        geometry_3 = geometry(self)
        window_3 = remember((metadata_2,), self, geometry_3)
    value_5 = window_3.metadata
    value_6 = self._store
    if value_6 is None:
        value_6 = self._storage
    array_2 = self._array
    counted_2 = self._counter is not None
    result_2 = new(Tensor)
    result_2._keyset = window_3.keyset if counted_2 else window_3.inference_keyset
    result_2._counter = [0] if counted_2 else None
    result_2._autograd = None
    result_2._store = value_6
    result_2._array = array_2
    result_2._shape = value_5.shape
    result_2._stride = value_5.stride
    result_2._offset = self._offset + window_3.start
    result_2._dtype = value_5.dtype
    result_2._device = value_5.device
    result_2._view = None
    result_2._interned = value_5
    if array_2 is None and value_6._array is not None:
        value_6.hand_out(result_2)
    result_2._counter = self._counter
    return result_2
