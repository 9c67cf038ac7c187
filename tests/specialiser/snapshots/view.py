def view(self, size):
    # aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        node = node_class()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        value_2 = self._autograd
        value_3 = self._view
        result = None if value_2 is None else ((value_2.grad_fn, value_2.output_nr) if value_2.grad_fn is not None and (value_3 is None or value_3.version == self._counter[0]) else ((value_2.accumulator, 0, self) if value_3 is None and value_2.accumulator is not None and value_2.requires_grad else other_gradient_edge(self)))
        node.next_edges = (result,)
        node.facts = (self._shape,)
        if WATCH.on:
            look_on(operator_derivative, node)
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        # CPU: viewed (default backend kernel), kernels/ops/geometry.py
        metadata = self._interned or metadata_of(self)
        key = tuple(size)
        window = windows_get((metadata, key))
        if window is None:
            geometry_2 = geometry(self, size)
            window = remember((metadata, key), self, geometry_2)
        value_8 = window.metadata
        value_9 = self._store
        if value_9 is None:
            value_9 = self._storage
        array = self._array
        counted = self._counter is not None
        result_2 = new(Tensor)
        result_2._keyset = window.keyset if counted else window.inference_keyset
        result_2._counter = [0] if counted else None
        result_2._autograd = None
        result_2._store = value_9
        result_2._array = array
        result_2._shape = value_8.shape
        result_2._stride = value_8.stride
        result_2._offset = self._offset + window.start
        result_2._dtype = value_8.dtype
        result_2._device = value_8.device
        result_2._view = None
        result_2._interned = value_8
        if array is None and value_9._array is not None:
            value_9.hand_out(result_2)
        if self._counter is not None and result_2 is not self and result_2._autograd is None:
            result_2._counter = self._counter
            if result_2._dtype.category >= 2:
                former = self._view
                if result_2._dtype is not self._dtype or result_2._keyset is not self._keyset:
                    enter_other_view(result_2, self, op, [self, size], 0, DEFAULT_CREATION)
                else:
                    if former is None:
                        history = ViewHistory()
                        history.base = self
                        history.version = result_2._counter[0]
                        result_2._view = history
                        result_2._autograd = history
                    else:
                        if former.replay is None:
                            base = former.base
                            creation = former.creation
                            history_2 = ViewHistory()
                            history_2.base = base
                            if creation is not DEFAULT_CREATION:
                                history_2.creation = creation
                                history_2.version = result_2._counter[0]
                                result_2._view = history_2
                                result_2._autograd = history_2
                            else:
                                history_2.version = result_2._counter[0]
                                result_2._view = history_2
                                result_2._autograd = history_2
                        else:
                            enter_other_view(result_2, self, op, [self, size], 0, DEFAULT_CREATION)
        record = result_2._autograd
        if record is not None and record is result_2._view and record.grad_fn is None and not record.asked and not (result_2 is self) and result_2._dtype.category >= 2:
            value_14 = result_2._interned or metadata_of(result_2)
            node.outputs = value_14.alone
            record_2 = result_2._autograd
            record_2.grad_fn = node
            record_2.asked = True
            return result_2
        return finish_slow(operator_derivative, op, node, [self, size], result_2)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    # CPU: viewed (default backend kernel), kernels/ops/geometry.py
    metadata_2 = self._interned or metadata_of(self)
    key_2 = tuple(size)
    window_3 = windows_get((metadata_2, key_2))
    if window_3 is None:
        geometry_3 = geometry(self, size)
        window_3 = remember((metadata_2, key_2), self, geometry_3)
    value_11 = window_3.metadata
    value_12 = self._store
    if value_12 is None:
        value_12 = self._storage
    array_2 = self._array
    counted_2 = self._counter is not None
    result_3 = new(Tensor)
    result_3._keyset = window_3.keyset if counted_2 else window_3.inference_keyset
    result_3._counter = [0] if counted_2 else None
    result_3._autograd = None
    result_3._store = value_12
    result_3._array = array_2
    result_3._shape = value_11.shape
    result_3._stride = value_11.stride
    result_3._offset = self._offset + window_3.start
    result_3._dtype = value_11.dtype
    result_3._device = value_11.device
    result_3._view = None
    result_3._interned = value_11
    if array_2 is None and value_12._array is not None:
        value_12.hand_out(result_3)
    if self._counter is not None and result_3 is not self and result_3._autograd is None:
        result_3._counter = self._counter
        if result_3._dtype.category >= 2:
            former_2 = self._view
            if result_3._dtype is not self._dtype or result_3._keyset is not self._keyset:
                enter_other_view(result_3, self, op, [self, size], 0, DEFAULT_CREATION)
            else:
                if former_2 is None:
                    history_3 = ViewHistory()
                    history_3.base = self
                    history_3.version = result_3._counter[0]
                    result_3._view = history_3
                    result_3._autograd = history_3
                else:
                    if former_2.replay is None:
                        base_2 = former_2.base
                        creation_2 = former_2.creation
                        history_4 = ViewHistory()
                        history_4.base = base_2
                        if creation_2 is not DEFAULT_CREATION:
                            history_4.creation = creation_2
                            history_4.version = result_3._counter[0]
                            result_3._view = history_4
                            result_3._autograd = history_4
                        else:
                            history_4.version = result_3._counter[0]
                            result_3._view = history_4
                            result_3._autograd = history_4
                    else:
                        enter_other_view(result_3, self, op, [self, size], 0, DEFAULT_CREATION)
    return result_3
