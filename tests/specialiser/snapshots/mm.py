def mm(self, mat2):
    # aten::mm(Tensor self, Tensor mat2) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad) or (mat2._autograd is not None and mat2._autograd.requires_grad):
        node = node_class()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        value_2 = self._autograd
        value_3 = self._view
        result = None if value_2 is None else ((value_2.grad_fn, value_2.output_nr) if value_2.grad_fn is not None and (value_3 is None or value_3.version == self._counter[0]) else ((value_2.accumulator, 0, self) if value_3 is None and value_2.accumulator is not None and value_2.requires_grad else other_gradient_edge(self)))
        value_7 = mat2._autograd
        value_8 = mat2._view
        result_2 = None if value_7 is None else ((value_7.grad_fn, value_7.output_nr) if value_7.grad_fn is not None and (value_8 is None or value_8.version == mat2._counter[0]) else ((value_7.accumulator, 0, mat2) if value_8 is None and value_7.accumulator is not None and value_7.requires_grad else other_gradient_edge(mat2)))
        node.next_edges = (result, result_2)
        value_13 = mat2 if result is not None else UNSAVED
        version_of = (mat2._counter[0] if mat2._counter is not None else refuse_inference_tensor(mat2)) if result is not None else None
        value_15 = self if result_2 is not None else UNSAVED
        version_of_2 = (self._counter[0] if self._counter is not None else refuse_inference_tensor(self)) if result_2 is not None else None
        node.kept = (value_13, version_of, value_15, version_of_2)
        node.facts = (self._shape, self._stride, mat2._shape, mat2._stride)
        if WATCH.on:
            look_on(operator_derivative, node)
        # CPU: structured mm (kernel), kernels/ops/linalg.py
        metadata = self._interned or metadata_of(self)
        metadata_2 = mat2._interned or metadata_of(mat2)
        plan = plans_get(metadata if metadata is metadata_2 else (metadata, metadata_2))
        if plan is None:
            plan = new_plan((metadata, metadata_2), (self, mat2))
        spec = plan.outputs[0]
        result_5 = new(Tensor)
        result_5._keyset = spec.keyset
        result_5._counter = [0]
        result_5._autograd = None
        result_5._store = None
        result_5._array = empty(spec.elements, spec.array) if spec.sure else memory_for(spec, result_5)
        result_5._shape = spec.shape
        result_5._stride = spec.stride
        result_5._offset = 0
        result_5._dtype = spec.dtype
        result_5._device = spec.device
        result_5._view = None
        result_5._interned = spec.metadata
        value_21 = plan.run
        value_22 = result_5._array
        array = self._array
        if array is None:
            array = self._operand.array
        array_3 = mat2._array
        if array_3 is None:
            array_3 = mat2._operand.array
        value_21(value_22, 0, array, self._offset, array_3, mat2._offset)
        if (result_5._autograd is None and (not (result_5 is self or result_5 is mat2))) and result_5._dtype.category >= 2:
            value_31 = result_5._interned or metadata_of(result_5)
            node.outputs = value_31.alone
            record = ResultRecord()
            record.requires_grad = True
            record.grad_fn = node
            record.output_nr = 0
            record.grad = None
            record.accumulator = None
            record.hooks = None
            record.post_accumulate_hooks = None
            record.retains_grad = None
            result_5._autograd = record
            return result_5
        return finish_slow(operator_derivative, op, node, [self, mat2], result_5)
    # CPU: structured mm (kernel), kernels/ops/linalg.py
    metadata_3 = self._interned or metadata_of(self)
    metadata_4 = mat2._interned or metadata_of(mat2)
    plan_3 = plans_get(metadata_3 if metadata_3 is metadata_4 else (metadata_3, metadata_4))
    if plan_3 is None:
        plan_3 = new_plan((metadata_3, metadata_4), (self, mat2))
    spec_2 = plan_3.outputs[0]
    result_6 = new(Tensor)
    result_6._keyset = spec_2.keyset
    result_6._counter = [0]
    result_6._autograd = None
    result_6._store = None
    result_6._array = empty(spec_2.elements, spec_2.array) if spec_2.sure else memory_for(spec_2, result_6)
    result_6._shape = spec_2.shape
    result_6._stride = spec_2.stride
    result_6._offset = 0
    result_6._dtype = spec_2.dtype
    result_6._device = spec_2.device
    result_6._view = None
    result_6._interned = spec_2.metadata
    value_28 = plan_3.run
    value_29 = result_6._array
    array_5 = self._array
    if array_5 is None:
        array_5 = self._operand.array
    array_7 = mat2._array
    if array_7 is None:
        array_7 = mat2._operand.array
    value_28(value_29, 0, array_5, self._offset, array_7, mat2._offset)
    return result_6
