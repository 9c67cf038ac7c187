def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad) or (other._autograd is not None and other._autograd.requires_grad):
        node = node_class()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        value_2 = self._autograd
        value_3 = self._view
        result = None if value_2 is None else ((value_2.grad_fn, value_2.output_nr) if value_2.grad_fn is not None and (value_3 is None or value_3.version == self._counter[0]) else ((value_2.accumulator, 0, self) if value_3 is None and value_2.accumulator is not None and value_2.requires_grad else other_gradient_edge(self)))
        value_7 = other._autograd
        value_8 = other._view
        result_2 = None if value_7 is None else ((value_7.grad_fn, value_7.output_nr) if value_7.grad_fn is not None and (value_8 is None or value_8.version == other._counter[0]) else ((value_7.accumulator, 0, other) if value_8 is None and value_7.accumulator is not None and value_7.requires_grad else other_gradient_edge(other)))
        node.next_edges = (result, result_2)
        node.facts = (1,)
        if WATCH.on:
            look_on(operator_derivative, node)
        # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
        metadata = self._interned or metadata_of(self)
        metadata_2 = other._interned or metadata_of(other)
        plan = plans_get(metadata if metadata is metadata_2 else (metadata, metadata_2))
        if plan is None:
            plan = new_plan(variant, (metadata, metadata_2, int), (self, other, 1))
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
            loop_2 = loop_into_fresh(variant, plan, result_3, (self, other, 1))
            plan.run = loop_2
            loop = loop_2
        value_17 = result_3._array
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
            loop.run(value_17, 0, array, values, array_2, values_2)
        else:
            entry(0, loop.numel, value_17, 0, array, values, array_2, values_2)
        if (result_3._autograd is None and (not (result_3 is self or result_3 is other))) and result_3._dtype.category >= 2:
            value_25 = result_3._interned or metadata_of(result_3)
            node.outputs = value_25.alone
            record = ResultRecord()
            record.requires_grad = True
            record.grad_fn = node
            record.output_nr = 0
            record.grad = None
            record.accumulator = None
            record.hooks = None
            record.post_accumulate_hooks = None
            record.retains_grad = None
            result_3._autograd = record
            return result_3
        return finish_slow(operator_derivative, op, node, [self, other, 1], result_3)
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    metadata_3 = self._interned or metadata_of(self)
    metadata_4 = other._interned or metadata_of(other)
    plan_3 = plans_get(metadata_3 if metadata_3 is metadata_4 else (metadata_3, metadata_4))
    if plan_3 is None:
        plan_3 = new_plan(variant, (metadata_3, metadata_4, int), (self, other, 1))
    spec_2 = plan_3.outputs[0]
    result_4 = new(Tensor)
    result_4._keyset = spec_2.keyset
    result_4._counter = [0]
    result_4._autograd = None
    result_4._store = None
    result_4._array = empty(spec_2.elements, spec_2.array) if spec_2.sure else memory_for(spec_2, result_4)
    result_4._shape = spec_2.shape
    result_4._stride = spec_2.stride
    result_4._offset = 0
    result_4._dtype = spec_2.dtype
    result_4._device = spec_2.device
    result_4._view = None
    result_4._interned = spec_2.metadata
    loop_3 = plan_3.run
    if loop_3 is None:
        loop_4 = loop_into_fresh(variant, plan_3, result_4, (self, other, 1))
        plan_3.run = loop_4
        loop_3 = loop_4
    value_23 = result_4._array
    array_3 = self._array
    if array_3 is None:
        raise no_memory(self)
    array_4 = other._array
    if array_4 is None:
        raise no_memory(other)
    values_3 = self._offset
    values_4 = other._offset
    entry_2 = loop_3.entry
    if entry_2 is None:
        loop_3.run(value_23, 0, array_3, values_3, array_4, values_4)
    else:
        entry_2(0, loop_3.numel, value_23, 0, array_3, values_3, array_4, values_4)
    return result_4
