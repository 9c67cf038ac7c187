def view(self, size):
    # aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), no grad
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    # CPU: viewed (default backend kernel), kernels/ops/geometry.py
    metadata = self._interned or metadata_of(self)
    key = tuple(size)
    window = windows_get((metadata, key))
    if window is None:
        geometry_2 = geometry(self, size)
        window = remember((metadata, key), self, geometry_2)
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
    if self._counter is not None and result is not self and result._autograd is None:
        result._counter = self._counter
        if result._dtype.category >= 2:
            former = self._view
            if result._dtype is not self._dtype or result._keyset is not self._keyset:
                enter_other_view(result, self, op, [self, size], 0, NO_GRAD_MODE)
            else:
                if former is None:
                    history = ViewHistory()
                    history.base = self
                    history.creation = NO_GRAD_MODE
                    history.version = result._counter[0]
                    result._view = history
                    result._autograd = history
                else:
                    if former.replay is None:
                        base = former.base
                        history_2 = ViewHistory()
                        history_2.base = base
                        history_2.creation = NO_GRAD_MODE
                        history_2.version = result._counter[0]
                        result._view = history_2
                        result._autograd = history_2
                    else:
                        enter_other_view(result, self, op, [self, size], 0, NO_GRAD_MODE)
    return result
