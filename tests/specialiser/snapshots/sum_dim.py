def sum_dim_IntList(self, dim):
    # aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
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
        # CPU: structured sum (kernel), kernels/ops/reductions.py
        metadata = self._interned or metadata_of(self)
        facts = tuple(dim)
        plan = plans_get((metadata, facts))
        if plan is None:
            plan = new_plan((metadata, facts, False, None), (self, dim, False, None))
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
        value_11 = plan.run
        value_12 = result_2._array
        array = self._array
        if array is None:
            array = self._operand.array
        value_11(value_12, 0, array, self._offset)
        if result_2._autograd is None and not (result_2 is self) and result_2._dtype.category >= 2:
            value_20 = result_2._interned or metadata_of(result_2)
            node.outputs = value_20.alone
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
            return result_2
        return finish_slow(operator_derivative, op, node, [self, dim, False, None], result_2)
    # CPU: structured sum (kernel), kernels/ops/reductions.py
    metadata_2 = self._interned or metadata_of(self)
    facts_2 = tuple(dim)
    plan_3 = plans_get((metadata_2, facts_2))
    if plan_3 is None:
        plan_3 = new_plan((metadata_2, facts_2, False, None), (self, dim, False, None))
    spec_2 = plan_3.outputs[0]
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
    value_17 = plan_3.run
    value_18 = result_3._array
    array_3 = self._array
    if array_3 is None:
        array_3 = self._operand.array
    value_17(value_18, 0, array_3, self._offset)
    return result_3
