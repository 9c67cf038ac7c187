def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, Audit, AutogradCPU)
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
        # Audit: audit (backend fallback), test_snapshots.py
        state = get_state()
        inner = state.excluding(AUTOGRAD)
        token = set_state(inner)
        try:
            noticed(op)
        finally:
            reset_state(token)
        token_2 = set_state(inner.excluding(mine_cell.cell_contents))
        try:
            result_3 = add_code[(keyset & lower_cell.cell_contents)](self, other)
        finally:
            reset_state(token_2)
        if (result_3._autograd is None and (not (result_3 is self or result_3 is other))) and result_3._dtype.category >= 2:
            value_13 = result_3._interned or metadata_of(result_3)
            node.outputs = value_13.alone
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
    # Audit: audit (backend fallback), test_snapshots.py
    state = get_state()
    inner_2 = state.excluding(AUTOGRAD)
    token_3 = set_state(inner_2)
    try:
        noticed(op)
    finally:
        reset_state(token_3)
    token_4 = set_state(inner_2.excluding(mine_cell.cell_contents))
    try:
        return add_code[(keyset_2 & lower_cell.cell_contents)](self, other)
    finally:
        reset_state(token_4)
