def max_dim(self, dim):
    # aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
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
        node.facts = (self._shape, dim, False)
        if WATCH.on:
            look_on(operator_derivative, node)
        # CPU: max_dim_kernel (kernel), kernels/ops/extremes.py
        metadata = self._interned or metadata_of(self)
        value_8 = INDEXED_get(('max', metadata, dim, False))
        plan = value_8 or new_indexed(('max', metadata, dim, False), self)
        spec = plan.outputs[0]
        result_2 = new(Tensor)
        result_2._keyset = spec.keyset
        result_2._counter = [0]
        result_2._autograd = None
        result_2._store = None
        result_2._array = empty(spec.elements, spec.array) if spec.sure else memory_for(spec, result_2)
        result_2._shape = spec.shape
        result_2._stride = spec.stride
        result_2._offset = 0
        result_2._dtype = spec.dtype
        result_2._device = spec.device
        result_2._view = None
        result_2._interned = spec.metadata
        spec_2 = plan.outputs[1]
        result_3 = new(Tensor)
        result_3._keyset = spec_2.keyset
        result_3._counter = [0]
        result_3._autograd = None
        result_3._store = None
        result_3._array = empty(spec_2.elements, spec_2.array) if spec_2.sure else memory_for(spec_2, result_3)
        result_3._shape = spec_2.shape
        result_3._stride = spec_2.stride
        result_3._offset = 0
        result_3._dtype = spec_2.dtype
        result_3._device = spec_2.device
        result_3._view = None
        result_3._interned = spec_2.metadata
        if self._array is not None:
            plan.run(result_2._array, 0, result_3._array, 0, self._array, self._offset)
        else:
            if self._device.type != 'meta':
                find_extremes('max', self, dim, result_2, result_3)
        if result_2._autograd is None and not (result_2 is self) and result_3._autograd is None and not (result_3 is self):
            value_26 = None if result_2._dtype.category < 2 else metadata_of(result_2)
            node.outputs = (value_26, None)
            if result_2._dtype.category >= 2:
                record = ResultRecord()
                record.requires_grad = True
                record.grad_fn = node
                record.output_nr = 0
                record.grad = None
                record.accumulator = None
                record.hooks = None
                record.post_accumulate_hooks = None
                record.retains_grad = None
                result_2._autograd = record
            items = [result_2, result_3]
            node.results = kept_outputs(operator_derivative, node, items)
            return (result_2, result_3)
        return finish_slow(operator_derivative, op, node, [self, dim, False], (result_2, result_3))
    # CPU: max_dim_kernel (kernel), kernels/ops/extremes.py
    metadata_2 = self._interned or metadata_of(self)
    value_17 = INDEXED_get(('max', metadata_2, dim, False))
    plan_2 = value_17 or new_indexed(('max', metadata_2, dim, False), self)
    spec_3 = plan_2.outputs[0]
    result_4 = new(Tensor)
    result_4._keyset = spec_3.keyset
    result_4._counter = [0]
    result_4._autograd = None
    result_4._store = None
    result_4._array = empty(spec_3.elements, spec_3.array) if spec_3.sure else memory_for(spec_3, result_4)
    result_4._shape = spec_3.shape
    result_4._stride = spec_3.stride
    result_4._offset = 0
    result_4._dtype = spec_3.dtype
    result_4._device = spec_3.device
    result_4._view = None
    result_4._interned = spec_3.metadata
    spec_4 = plan_2.outputs[1]
    result_5 = new(Tensor)
    result_5._keyset = spec_4.keyset
    result_5._counter = [0]
    result_5._autograd = None
    result_5._store = None
    result_5._array = empty(spec_4.elements, spec_4.array) if spec_4.sure else memory_for(spec_4, result_5)
    result_5._shape = spec_4.shape
    result_5._stride = spec_4.stride
    result_5._offset = 0
    result_5._dtype = spec_4.dtype
    result_5._device = spec_4.device
    result_5._view = None
    result_5._interned = spec_4.metadata
    if self._array is not None:
        plan_2.run(result_4._array, 0, result_5._array, 0, self._array, self._offset)
    else:
        if self._device.type != 'meta':
            find_extremes('max', self, dim, result_4, result_5)
    return (result_4, result_5)
