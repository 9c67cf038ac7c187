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
            window = known_cell.cell_contents.get((looks, ()))
            if window is None:
                value_4 = known_cell.cell_contents
                geometry_2 = geometry(self)
                window = remember(value_4, (looks, ()), self, geometry_2)
            value_5 = window.looks
            value_6 = self._array
            value_7 = self._store
            counted = self._counter is not None
            result = new(Tensor)
            result._keyset = window.keyset if counted else window.inference_keyset
            result._counter = [0] if counted else None
            result._autograd = None
            result._store = self._storage if value_7 is None else value_7
            result._array = value_6
            result._shape = value_5.shape
            result._stride = value_5.stride
            result._offset = self._offset + window.start
            result._dtype = value_5.dtype
            result._device = value_5.device
            result._view = None
            result._looks = value_5
            if value_6 is None:
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
        window_3 = known_cell.cell_contents.get((looks_2, ()))
        if window_3 is None:
            value_9 = known_cell.cell_contents
            geometry_3 = geometry(self)
            window_3 = remember(value_9, (looks_2, ()), self, geometry_3)
        value_10 = window_3.looks
        value_11 = self._array
        value_12 = self._store
        counted_2 = self._counter is not None
        result_2 = new(Tensor)
        result_2._keyset = window_3.keyset if counted_2 else window_3.inference_keyset
        result_2._counter = [0] if counted_2 else None
        result_2._autograd = None
        result_2._store = self._storage if value_12 is None else value_12
        result_2._array = value_11
        result_2._shape = value_10.shape
        result_2._stride = value_10.stride
        result_2._offset = self._offset + window_3.start
        result_2._dtype = value_10.dtype
        result_2._device = value_10.device
        result_2._view = None
        result_2._looks = value_10
        if value_11 is None:
            self._storage.hand_out(result_2)
        result_2._counter = self._counter
        return finish_otherwise(operator_derivative, op, node, [self], result_2)
    # ADInplaceOrView: tracking (kernel), ops/copying.py
    # CPU: detach_kernel (default backend kernel), ops/geometry.py
    looks_3 = self._looks or looks_of(self)
    window_5 = known_cell.cell_contents.get((looks_3, ()))
    if window_5 is None:
        value_14 = known_cell.cell_contents
        geometry_4 = geometry(self)
        window_5 = remember(value_14, (looks_3, ()), self, geometry_4)
    value_15 = window_5.looks
    value_16 = self._array
    value_17 = self._store
    counted_3 = self._counter is not None
    result_3 = new(Tensor)
    result_3._keyset = window_5.keyset if counted_3 else window_5.inference_keyset
    result_3._counter = [0] if counted_3 else None
    result_3._autograd = None
    result_3._store = self._storage if value_17 is None else value_17
    result_3._array = value_16
    result_3._shape = value_15.shape
    result_3._stride = value_15.stride
    result_3._offset = self._offset + window_5.start
    result_3._dtype = value_15.dtype
    result_3._device = value_15.device
    result_3._view = None
    result_3._looks = value_15
    if value_16 is None:
        self._storage.hand_out(result_3)
    result_3._counter = self._counter
    return result_3
