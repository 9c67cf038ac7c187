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
        node.sequence = next_sequence()
        node.hooks = None
        node.inputs = (True, False)
        node.counts = None
        begin_context(node, (x._autograd is not None and x._autograd.requires_grad, False))
        # CPU: bump (default backend kernel), ops/custom_op.py
        state = get_state()
        inner = state.excluding(AUTOGRAD)
        token = set_state(inner)
        try:
            function_2 = function(x)
        finally:
            reset_state(token)
        if not isinstance(function_2, TensorBase):
            raise no_tensor(schema, function_2)
        if isinstance(function_2, TensorBase):
            if function_2._autograd is None and not (function_2 is x) and function_2._dtype.category >= 2 and not node.ctx.non_differentiable:
                looks = function_2._looks or looks_of(function_2)
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
                function_2._autograd = record
                finish_context(node)
                return function_2
        return finish_otherwise(op, node, [x, 1.0], function_2)
    # CPU: bump (default backend kernel), ops/custom_op.py
    state = get_state()
    inner_2 = state.excluding(AUTOGRAD)
    token_2 = set_state(inner_2)
    try:
        function_3 = function(x)
    finally:
        reset_state(token_2)
    if not isinstance(function_3, TensorBase):
        raise no_tensor(schema, function_3)
    return function_3
