def bump(x):
    # lesson::bump(Tensor x, float by=1.) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (x._autograd is not None and x._autograd.requires_grad):
        node = node_class()
        value = x._autograd
        value_2 = x._view
        result = None if value is None else ((value.grad_fn, value.output_nr) if value.grad_fn is not None and (value_2 is None or value_2.version == x._counter[0]) else ((value.accumulator, 0, x) if value_2 is None and value.accumulator is not None and value.requires_grad else other_gradient_edge(x)))
        node.next_edges = (result,)
        node.outputs = ()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        node.inputs = (True, False)
        node.counts = None
        begin_context(node, (x._autograd is not None and x._autograd.requires_grad, False))
        # CPU: bump (default backend kernel), test_snapshots.py
        chosen = origin if self._disabled and device_type_cell.cell_contents in self._disabled else origin
        state = get_state()
        inner = state.memo.get(autograd) or state.after(autograd)
        token = set_state(inner)
        try:
            result_2 = chosen(x)
        finally:
            reset_state(token)
        if not (type(result_2) is Tensor and result_2._store is None and not (x is result_2)):
            result_2 = with_declared_aliases(op, chosen, (x,), {}, result_2)
        if not isinstance(result_2, TensorBase):
            raise no_tensor(schema, result_2)
        if isinstance(result_2, TensorBase):
            if result_2._autograd is None and not (result_2 is x) and result_2._dtype.category >= 2 and not node.ctx.non_differentiable:
                value_8 = result_2._interned or metadata_of(result_2)
                node.outputs = value_8.alone
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
                finish_context(node)
                return result_2
        return finish_slow(op, node, [x, 1.0], result_2)
    # CPU: bump (default backend kernel), test_snapshots.py
    chosen_2 = origin if self._disabled and device_type_cell.cell_contents in self._disabled else origin
    state = get_state()
    inner_2 = state.memo.get(autograd) or state.after(autograd)
    token_2 = set_state(inner_2)
    try:
        result_4 = chosen_2(x)
    finally:
        reset_state(token_2)
    if not (type(result_4) is Tensor and result_4._store is None and not (x is result_4)):
        result_4 = with_declared_aliases(op, chosen_2, (x,), {}, result_4)
    if not isinstance(result_4, TensorBase):
        raise no_tensor(schema, result_4)
    return result_4
