def split_Tensor(self, split_size):
    # aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
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
        node.facts = (self._shape, split_size, 0)
        if WATCH.on:
            look_on(operator_derivative, node)
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        # CPU: split_evenly (default backend kernel), kernels/ops/views.py
        result_2 = by_number(self, split_size, 0)
        if isinstance(result_2, TensorBase):
            if self._counter is not None and result_2 is not self and result_2._autograd is None:
                result_2._counter = self._counter
                if result_2._dtype.category >= 2:
                    former = self._view
                    if result_2._dtype is not self._dtype or result_2._keyset is not self._keyset or type(result_2) is not Tensor:
                        enter_other_view(result_2, self, op, [self, split_size, 0], 0, MULTI_OUTPUT_NODE)
                    else:
                        if former is None:
                            history = ViewHistory()
                            history.base = self
                            history.creation = MULTI_OUTPUT_NODE
                            history.version = result_2._counter[0]
                            result_2._view = history
                            result_2._autograd = history
                        else:
                            if former.replay is None:
                                base = former.base
                                history_2 = ViewHistory()
                                history_2.base = base
                                history_2.creation = MULTI_OUTPUT_NODE
                                history_2.version = result_2._counter[0]
                                result_2._view = history_2
                                result_2._autograd = history_2
                            else:
                                enter_other_view(result_2, self, op, [self, split_size, 0], 0, MULTI_OUTPUT_NODE)
        else:
            state = get_state()
            inner = state.excluding(AUTOGRAD)
            token = set_state(inner)
            try:
                tie_each_to_base(op, [self, split_size, 0], result_2)
            finally:
                reset_state(token)
        if isinstance(result_2, TensorBase):
            record = result_2._autograd
            if record is not None and record is result_2._view and record.grad_fn is None and not record.asked and not (result_2 is self) and result_2._dtype.category >= 2:
                value_8 = result_2._interned or metadata_of(result_2)
                node.outputs = value_8.alone
                record_2 = result_2._autograd
                record_2.grad_fn = node
                record_2.asked = True
                return result_2
        return finish_slow(operator_derivative, op, node, [self, split_size, 0], result_2)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    # CPU: split_evenly (default backend kernel), kernels/ops/views.py
    result_3 = by_number(self, split_size, 0)
    if isinstance(result_3, TensorBase):
        if self._counter is not None and result_3 is not self and result_3._autograd is None:
            result_3._counter = self._counter
            if result_3._dtype.category >= 2:
                former_2 = self._view
                if result_3._dtype is not self._dtype or result_3._keyset is not self._keyset or type(result_3) is not Tensor:
                    enter_other_view(result_3, self, op, [self, split_size, 0], 0, MULTI_OUTPUT_NODE)
                else:
                    if former_2 is None:
                        history_3 = ViewHistory()
                        history_3.base = self
                        history_3.creation = MULTI_OUTPUT_NODE
                        history_3.version = result_3._counter[0]
                        result_3._view = history_3
                        result_3._autograd = history_3
                    else:
                        if former_2.replay is None:
                            base_2 = former_2.base
                            history_4 = ViewHistory()
                            history_4.base = base_2
                            history_4.creation = MULTI_OUTPUT_NODE
                            history_4.version = result_3._counter[0]
                            result_3._view = history_4
                            result_3._autograd = history_4
                        else:
                            enter_other_view(result_3, self, op, [self, split_size, 0], 0, MULTI_OUTPUT_NODE)
    else:
        state = get_state()
        inner_2 = state.excluding(AUTOGRAD)
        token_2 = set_state(inner_2)
        try:
            tie_each_to_base(op, [self, split_size, 0], result_3)
        finally:
            reset_state(token_2)
    return result_3
