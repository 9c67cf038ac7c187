def sum_2(self):
    # aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
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
        # CPU: structured sum (kernel), kernels/ops/reductions.py
        result_2 = self._looks or looks_of(self)
        plan = plans_get(result_2)
        if plan is None:
            plan = new_plan((result_2, None), (self, None))
        mould = plan.mould
        result_3 = new(Tensor)
        result_3._keyset = mould.keyset
        result_3._counter = [0]
        result_3._autograd = None
        result_3._store = None
        result_3._array = empty(mould.elements, mould.array) if mould.sure else memory_for(mould, result_3)
        result_3._shape = mould.shape
        result_3._stride = mould.stride
        result_3._offset = 0
        result_3._dtype = mould.dtype
        result_3._device = mould.device
        result_3._view = None
        result_3._looks = mould.looks
        value_11 = plan.run
        value_12 = result_3._array
        array = self._array
        if array is None:
            array = self._operand.array
        value_11(value_12, 0, array, self._offset)
        if result_3._autograd is None and not (result_3 is self) and result_3._dtype.category >= 2:
            value_20 = result_3._looks or looks_of(result_3)
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
            result_3._autograd = record
            return result_3
        return finish_otherwise(operator_derivative, op, node, [self, None], result_3)
    # CPU: structured sum (kernel), kernels/ops/reductions.py
    result_4 = self._looks or looks_of(self)
    plan_3 = plans_get(result_4)
    if plan_3 is None:
        plan_3 = new_plan((result_4, None), (self, None))
    mould_2 = plan_3.mould
    result_5 = new(Tensor)
    result_5._keyset = mould_2.keyset
    result_5._counter = [0]
    result_5._autograd = None
    result_5._store = None
    result_5._array = empty(mould_2.elements, mould_2.array) if mould_2.sure else memory_for(mould_2, result_5)
    result_5._shape = mould_2.shape
    result_5._stride = mould_2.stride
    result_5._offset = 0
    result_5._dtype = mould_2.dtype
    result_5._device = mould_2.device
    result_5._view = None
    result_5._looks = mould_2.looks
    value_17 = plan_3.run
    value_18 = result_5._array
    array_3 = self._array
    if array_3 is None:
        array_3 = self._operand.array
    value_17(value_18, 0, array_3, self._offset)
    return result_5
