def detach(self):
    # aten::detach(Tensor(a) self) -> Tensor(a)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        value = wanted_of([self])
        if not value:
            # ADInplaceOrView: tracking (kernel), ops/copying.py
            # CPU: detach_kernel (default backend kernel), ops/geometry.py
            looks = self._looks or looks_of(self)
            window = windows_get(looks)
            if window is None:
                geometry_2 = geometry(self)
                window = remember((looks,), self, geometry_2)
            value_4 = window.looks
            value_5 = self._store
            if value_5 is None:
                value_5 = self._storage
            array = self._array
            counted = self._counter is not None
            result = new(Tensor)
            result._keyset = window.keyset if counted else window.inference_keyset
            result._counter = [0] if counted else None
            result._autograd = None
            result._store = value_5
            result._array = array
            result._shape = value_4.shape
            result._stride = value_4.stride
            result._offset = self._offset + window.start
            result._dtype = value_4.dtype
            result._device = value_4.device
            result._view = None
            result._looks = value_4
            if array is None:
                self._storage.hand_out(result)
            result._counter = self._counter
            return result
        node = node_class()
        node.sequence = next_sequence()
        node.hooks = None
        node.next_edges = ()
        if WATCH.on:
            look_on(operator_derivative, node)
        # ADInplaceOrView: tracking (kernel), ops/copying.py
        # CPU: detach_kernel (default backend kernel), ops/geometry.py
        looks_2 = self._looks or looks_of(self)
        window_3 = windows_get(looks_2)
        if window_3 is None:
            geometry_3 = geometry(self)
            window_3 = remember((looks_2,), self, geometry_3)
        value_7 = window_3.looks
        value_8 = self._store
        if value_8 is None:
            value_8 = self._storage
        array_2 = self._array
        counted_2 = self._counter is not None
        result_2 = new(Tensor)
        result_2._keyset = window_3.keyset if counted_2 else window_3.inference_keyset
        result_2._counter = [0] if counted_2 else None
        result_2._autograd = None
        result_2._store = value_8
        result_2._array = array_2
        result_2._shape = value_7.shape
        result_2._stride = value_7.stride
        result_2._offset = self._offset + window_3.start
        result_2._dtype = value_7.dtype
        result_2._device = value_7.device
        result_2._view = None
        result_2._looks = value_7
        if array_2 is None:
            self._storage.hand_out(result_2)
        result_2._counter = self._counter
        return finish_otherwise(operator_derivative, op, node, [self], result_2)
    # ADInplaceOrView: tracking (kernel), ops/copying.py
    # CPU: detach_kernel (default backend kernel), ops/geometry.py
    looks_3 = self._looks or looks_of(self)
    window_5 = windows_get(looks_3)
    if window_5 is None:
        geometry_4 = geometry(self)
        window_5 = remember((looks_3,), self, geometry_4)
    value_10 = window_5.looks
    value_11 = self._store
    if value_11 is None:
        value_11 = self._storage
    array_3 = self._array
    counted_3 = self._counter is not None
    result_3 = new(Tensor)
    result_3._keyset = window_5.keyset if counted_3 else window_5.inference_keyset
    result_3._counter = [0] if counted_3 else None
    result_3._autograd = None
    result_3._store = value_11
    result_3._array = array_3
    result_3._shape = value_10.shape
    result_3._stride = value_10.stride
    result_3._offset = self._offset + window_5.start
    result_3._dtype = value_10.dtype
    result_3._device = value_10.device
    result_3._view = None
    result_3._looks = value_10
    if array_3 is None:
        self._storage.hand_out(result_3)
    result_3._counter = self._counter
    return result_3
