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
        # CPU: max (kernel), kernels/ops/extremes.py
        if self._array is None:
            result_2 = run_elsewhere((self, dim, False))
            results = result_2[0]
            results_2 = result_2[1]
            if isinstance(results, TensorBase) and results._autograd is None and not (results is self) and isinstance(results_2, TensorBase) and results_2._autograd is None and not (results_2 is self):
                value_22 = None if results._dtype.category < 2 else metadata_of(results)
                node.outputs = (value_22, None)
                if results._dtype.category >= 2:
                    record = ResultRecord()
                    record.requires_grad = True
                    record.grad_fn = node
                    record.output_nr = 0
                    record.grad = None
                    record.accumulator = None
                    record.hooks = None
                    record.post_accumulate_hooks = None
                    record.retains_grad = None
                    results._autograd = record
                items = [results, results_2]
                node.results = kept_outputs(operator_derivative, node, items)
                return result_2
            return finish_slow(operator_derivative, op, node, [self, dim, False], result_2)
        interned = self._interned or metadata_of(self)
        plan = plans_get((interned, (dim, False)))
        if plan is None:
            plan = new_plan((interned, (dim, False)), (self, dim, False))
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
        spec_2 = plan.outputs[1]
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
        plan.run(result_3._array, 0, result_4._array, 0, self._array, self._offset)
        if result_3._autograd is None and not (result_3 is self) and result_4._autograd is None and not (result_4 is self):
            value_25 = None if result_3._dtype.category < 2 else metadata_of(result_3)
            node.outputs = (value_25, None)
            if result_3._dtype.category >= 2:
                record_2 = ResultRecord()
                record_2.requires_grad = True
                record_2.grad_fn = node
                record_2.output_nr = 0
                record_2.grad = None
                record_2.accumulator = None
                record_2.hooks = None
                record_2.post_accumulate_hooks = None
                record_2.retains_grad = None
                result_3._autograd = record_2
            items_2 = [result_3, result_4]
            node.results = kept_outputs(operator_derivative, node, items_2)
            return (result_3, result_4)
        return finish_slow(operator_derivative, op, node, [self, dim, False], (result_3, result_4))
    # CPU: max (kernel), kernels/ops/extremes.py
    if self._array is None:
        return run_elsewhere((self, dim, False))
    interned_2 = self._interned or metadata_of(self)
    plan_3 = plans_get((interned_2, (dim, False)))
    if plan_3 is None:
        plan_3 = new_plan((interned_2, (dim, False)), (self, dim, False))
    spec_3 = plan_3.outputs[0]
    result_6 = new(Tensor)
    result_6._keyset = spec_3.keyset
    result_6._counter = [0]
    result_6._autograd = None
    result_6._store = None
    result_6._array = empty(spec_3.elements, spec_3.array) if spec_3.sure else memory_for(spec_3, result_6)
    result_6._shape = spec_3.shape
    result_6._stride = spec_3.stride
    result_6._offset = 0
    result_6._dtype = spec_3.dtype
    result_6._device = spec_3.device
    result_6._view = None
    result_6._interned = spec_3.metadata
    spec_4 = plan_3.outputs[1]
    result_7 = new(Tensor)
    result_7._keyset = spec_4.keyset
    result_7._counter = [0]
    result_7._autograd = None
    result_7._store = None
    result_7._array = empty(spec_4.elements, spec_4.array) if spec_4.sure else memory_for(spec_4, result_7)
    result_7._shape = spec_4.shape
    result_7._stride = spec_4.stride
    result_7._offset = 0
    result_7._dtype = spec_4.dtype
    result_7._device = spec_4.device
    result_7._view = None
    result_7._interned = spec_4.metadata
    plan_3.run(result_6._array, 0, result_7._array, 0, self._array, self._offset)
    return (result_6, result_7)
