def index_Tensor(self, indices):
    # aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    indices_0, indices_1 = indices
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (bool((self._autograd is not None and self._autograd.requires_grad))) or (bool((indices_1._autograd is not None and indices_1._autograd.requires_grad))):
        value = wanted_of([self, indices])
        if not value:
            # CPU: index_kernel (default backend kernel), ops/indexing.py
            state = get_state()
            inner = state.excluding(AUTOGRAD)
            token = set_state(inner)
            try:
                return function(self, indices)
            finally:
                reset_state(token)
        node = node_class()
        node.sequence = next_sequence()
        node.hooks = None
        value_3 = self._autograd
        value_4 = self._view
        result = None if value_3 is None else ((value_3.grad_fn, value_3.output_nr) if value_3.grad_fn is not None and (value_4 is None or value_4.version == self._counter[0]) else ((value_3.accumulator, 0, self) if value_4 is None and value_3.accumulator is not None and value_3.requires_grad else other_gradient_edge(self)))
        node.next_edges = (result,)
        saved_list_2 = saved_list(indices, False)
        node.kept = (saved_list_2, -1)
        node.facts = (self._shape,)
        if WATCH.on:
            look_on(operator_derivative, node)
        # CPU: index_kernel (default backend kernel), ops/indexing.py
        state = get_state()
        inner_2 = state.excluding(AUTOGRAD)
        token_2 = set_state(inner_2)
        try:
            result_3 = function(self, indices)
        finally:
            reset_state(token_2)
        if isinstance(result_3, TensorBase):
            if result_3._autograd is None and not (result_3 is self) and not (result_3 is indices_1) and result_3._dtype.category >= 2:
                looks = result_3._looks or looks_of(result_3)
                node.outputs = (looks,)
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
        return finish_otherwise(operator_derivative, op, node, [self, indices], result_3)
    # CPU: index_kernel (default backend kernel), ops/indexing.py
    state = get_state()
    inner_3 = state.excluding(AUTOGRAD)
    token_3 = set_state(inner_3)
    try:
        return function(self, indices)
    finally:
        reset_state(token_3)
