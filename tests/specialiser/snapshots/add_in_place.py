def add__Tensor(self, other):
    # aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad) or (other._autograd is not None and other._autograd.requires_grad):
        record = self._autograd
        if record is not None and (record.grad_fn is None or self._view is not None):
            check_write(self)
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
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        if self._counter is None:
            raise inference_tensor_written(self)
        # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
        one_store = other._store is not None and other._store is self._store
        if other is self or one_store or other._array is self._array is not None:
            result_3 = run_inplace_unaliased(self, other, 1)
        else:
            metadata = self._interned or metadata_of(self)
            metadata_2 = other._interned or metadata_of(other)
            plan = plans_get(metadata if metadata is metadata_2 else (metadata, metadata_2))
            if plan is None:
                plan = new_plan(variant, (metadata, metadata_2, int), (self, other, 1))
            loop = plan.in_place
            if loop is None:
                loop_2 = loop_in_place(variant, plan, (self, other, 1))
                plan.in_place = loop_2
                loop = loop_2
            if self._array is None:
                raise no_memory(self)
            value_14 = self._array
            value_15 = self._offset
            array = other._array
            if array is None:
                raise no_memory(other)
            values = other._offset
            entry = loop.entry
            if entry is None:
                loop.run(value_14, value_15, array, values)
                result_3 = self
            else:
                entry(0, loop.numel, value_14, value_15, array, values)
                result_3 = self
        if self._counter is not None:
            self._counter[0] += 1
        record_2 = self._autograd
        plain = record_2 is None or (record_2.hooks is None and record_2.retains_grad is None)
        if plain and self._view is None and self._dtype.category >= 2:
            record_3 = self._autograd
            if record_3 is None:
                value_21 = self._interned or metadata_of(self)
                node.outputs = value_21.alone
                record_4 = ResultRecord()
                record_4.requires_grad = True
                record_4.grad_fn = node
                record_4.output_nr = 0
                record_4.grad = None
                record_4.accumulator = None
                record_4.hooks = None
                record_4.post_accumulate_hooks = None
                record_4.retains_grad = None
                self._autograd = record_4
                return self
            value_23 = self._interned or metadata_of(self)
            node.outputs = value_23.alone
            record_3.grad_fn = node
            record_3.output_nr = 0
            record_3.requires_grad = True
            return self
        return finish_slow(operator_derivative, op, node, [self, other, 1], self)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    if self._counter is None:
        raise inference_tensor_written(self)
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    one_store_2 = other._store is not None and other._store is self._store
    if other is self or one_store_2 or other._array is self._array is not None:
        result_4 = run_inplace_unaliased(self, other, 1)
    else:
        metadata_3 = self._interned or metadata_of(self)
        metadata_4 = other._interned or metadata_of(other)
        plan_3 = plans_get(metadata_3 if metadata_3 is metadata_4 else (metadata_3, metadata_4))
        if plan_3 is None:
            plan_3 = new_plan(variant, (metadata_3, metadata_4, int), (self, other, 1))
        loop_3 = plan_3.in_place
        if loop_3 is None:
            loop_4 = loop_in_place(variant, plan_3, (self, other, 1))
            plan_3.in_place = loop_4
            loop_3 = loop_4
        if self._array is None:
            raise no_memory(self)
        value_18 = self._array
        value_19 = self._offset
        array_2 = other._array
        if array_2 is None:
            raise no_memory(other)
        values_2 = other._offset
        entry_2 = loop_3.entry
        if entry_2 is None:
            loop_3.run(value_18, value_19, array_2, values_2)
            result_4 = self
        else:
            entry_2(0, loop_3.numel, value_18, value_19, array_2, values_2)
            result_4 = self
    if self._counter is not None:
        self._counter[0] += 1
    return self
