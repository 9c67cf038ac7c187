def copy(self, src):
    # aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad) or (src._autograd is not None and src._autograd.requires_grad):
        record = self._autograd
        if record is not None and (record.grad_fn is None or self._view is not None):
            check_write(self)
        node = node_class()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        value_2 = self._autograd
        value_3 = self._view
        result = None if value_2 is None else ((value_2.grad_fn, value_2.output_nr) if value_2.grad_fn is not None and (value_3 is None or value_3.version == self._counter[0]) else ((value_2.accumulator, 0, self) if value_3 is None and value_2.accumulator is not None and value_2.requires_grad else other_gradient_edge(self)))
        value_7 = src._autograd
        value_8 = src._view
        result_2 = None if value_7 is None else ((value_7.grad_fn, value_7.output_nr) if value_7.grad_fn is not None and (value_8 is None or value_8.version == src._counter[0]) else ((value_7.accumulator, 0, src) if value_8 is None and value_7.accumulator is not None and value_7.requires_grad else other_gradient_edge(src)))
        node.next_edges = (result, result_2)
        if WATCH.on:
            look_on(operator_derivative, node)
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        if self._counter is None:
            raise inference_tensor_written(self)
        # CPU: copy_inplace_kernel (kernel), kernels/ops/copying.py
        one_store = src._store is not None and src._store is self._store
        if not (src is self or one_store or src._array is self._array is not None):
            metadata = self._interned or metadata_of(self)
            metadata_2 = src._interned or metadata_of(src)
            run = WRITES_get((metadata, metadata_2))
            if run is None:
                run = new_write((metadata, metadata_2), self, src)
            if self._array is not None and src._array is not None:
                run(self._array, self._offset, src._array, src._offset)
                result_3 = self
            else:
                result_3 = copy_inplace_slow(self, src)
        else:
            result_3 = copy_inplace_slow(self, src)
        if self._counter is not None:
            self._counter[0] += 1
        record_2 = self._autograd
        plain = record_2 is None or (record_2.hooks is None and record_2.retains_grad is None)
        if plain and self._view is None and self._dtype.category >= 2:
            record_3 = self._autograd
            if record_3 is None:
                value_17 = self._interned or metadata_of(self)
                node.outputs = value_17.alone
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
            value_19 = self._interned or metadata_of(self)
            node.outputs = value_19.alone
            record_3.grad_fn = node
            record_3.output_nr = 0
            record_3.requires_grad = True
            return self
        return finish_slow(operator_derivative, op, node, [self, src, False], self)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    if self._counter is None:
        raise inference_tensor_written(self)
    # CPU: copy_inplace_kernel (kernel), kernels/ops/copying.py
    one_store_2 = src._store is not None and src._store is self._store
    if not (src is self or one_store_2 or src._array is self._array is not None):
        metadata_3 = self._interned or metadata_of(self)
        metadata_4 = src._interned or metadata_of(src)
        run_3 = WRITES_get((metadata_3, metadata_4))
        if run_3 is None:
            run_3 = new_write((metadata_3, metadata_4), self, src)
        if self._array is not None and src._array is not None:
            run_3(self._array, self._offset, src._array, src._offset)
            result_5 = self
        else:
            result_5 = copy_inplace_slow(self, src)
    else:
        result_5 = copy_inplace_slow(self, src)
    if self._counter is not None:
        self._counter[0] += 1
    return self
