def transpose(self, dim0, dim1):
    # aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        record = self._autograd
        if record is not None and (record.grad_fn is None or self._view is not None):
            check_write(self)
        node = node_class()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        value_2 = self._autograd
        value_3 = self._view
        result = None if value_2 is None else ((value_2.grad_fn, value_2.output_nr) if value_2.grad_fn is not None and (value_3 is None or value_3.version == self._counter[0]) else ((value_2.accumulator, 0, self) if value_3 is None and value_2.accumulator is not None and value_2.requires_grad else other_gradient_edge(self)))
        node.next_edges = (result,)
        node.facts = (dim0, dim1)
        if WATCH.on:
            look_on(operator_derivative, node)
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        if self._counter is None:
            raise inference_tensor_written(self)
        # CPU: transposed_inplace (default backend kernel), kernels/ops/views.py
        state = get_state()
        inner = state.memo.get(autograd_adinplaceorview) or state.after(autograd_adinplaceorview)
        token = set_state(inner)
        try:
            result_2 = function(self, dim0, dim1)
        finally:
            reset_state(token)
        if self._counter is not None:
            self._counter[0] += 1
        record_2 = self._autograd
        plain = record_2 is None or (record_2.hooks is None and record_2.retains_grad is None)
        if plain and self._view is None and self._dtype.category >= 2:
            record_3 = self._autograd
            if record_3 is None:
                value_8 = self._interned or metadata_of(self)
                node.outputs = value_8.alone
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
            value_10 = self._interned or metadata_of(self)
            node.outputs = value_10.alone
            record_3.grad_fn = node
            record_3.output_nr = 0
            record_3.requires_grad = True
            return self
        return finish_slow(operator_derivative, op, node, [self, dim0, dim1], self)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    if self._counter is None:
        raise inference_tensor_written(self)
    # CPU: transposed_inplace (default backend kernel), kernels/ops/views.py
    state = get_state()
    inner_2 = state.memo.get(autograd_adinplaceorview) or state.after(autograd_adinplaceorview)
    token_2 = set_state(inner_2)
    try:
        result_3 = function(self, dim0, dim1)
    finally:
        reset_state(token_2)
    if self._counter is not None:
        self._counter[0] += 1
    return self
