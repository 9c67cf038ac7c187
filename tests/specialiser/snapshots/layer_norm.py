def native_layer_norm(input_2, normalized_shape, eps):
    # aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (input_2._autograd is not None and input_2._autograd.requires_grad):
        node = node_class()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        value_2 = input_2._autograd
        value_3 = input_2._view
        result = None if value_2 is None else ((value_2.grad_fn, value_2.output_nr) if value_2.grad_fn is not None and (value_3 is None or value_3.version == input_2._counter[0]) else ((value_2.accumulator, 0, input_2) if value_3 is None and value_2.accumulator is not None and value_2.requires_grad else other_gradient_edge(input_2)))
        node.next_edges = (result, None, None)
        result_2 = input_2._counter[0] if input_2._counter is not None else refuse_inference_tensor(input_2)
        node.kept = (input_2, result_2, None, None, None, None)
        node.facts = (normalized_shape, eps)
        if WATCH.on:
            look_on(operator_derivative, node)
        # CPU: planned native_layer_norm (kernel), kernels/ops/normalization.py
        metadata = input_2._interned or metadata_of(input_2)
        facts = tuple(normalized_shape)
        facts_2 = eps if eps else str(eps)
        plan = plans_get((metadata, facts, facts_2))
        if plan is None:
            plan = new_plan((metadata, facts, None, None, facts_2), (input_2, normalized_shape, None, None, eps))
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
        spec_3 = plan.outputs[2]
        result_5 = new(Tensor)
        result_5._keyset = spec_3.keyset
        result_5._counter = [0]
        result_5._autograd = None
        result_5._store = None
        result_5._array = empty(spec_3.elements, spec_3.array) if spec_3.sure else memory_for(spec_3, result_5)
        result_5._shape = spec_3.shape
        result_5._stride = spec_3.stride
        result_5._offset = 0
        result_5._dtype = spec_3.dtype
        result_5._device = spec_3.device
        result_5._view = None
        result_5._interned = spec_3.metadata
        value_18 = plan.run
        value_19 = result_3._array
        value_20 = result_4._array
        value_21 = result_5._array
        array = input_2._array
        if array is None:
            array = input_2._operand.array
        value_18(value_19, 0, value_20, 0, value_21, 0, array, input_2._offset)
        if result_3._autograd is None and not (result_3 is input_2) and result_4._autograd is None and not (result_4 is input_2) and result_5._autograd is None and not (result_5 is input_2):
            value_37 = None if result_3._dtype.category < 2 else metadata_of(result_3)
            node.outputs = (value_37, None, None)
            if result_3._dtype.category >= 2:
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
            items = [result_3, result_4, result_5]
            node.results = kept_outputs(operator_derivative, node, items)
            return (result_3, result_4, result_5)
        return finish_slow(operator_derivative, op, node, [input_2, normalized_shape, None, None, eps], (result_3, result_4, result_5))
    # CPU: planned native_layer_norm (kernel), kernels/ops/normalization.py
    metadata_2 = input_2._interned or metadata_of(input_2)
    facts_3 = tuple(normalized_shape)
    facts_4 = eps if eps else str(eps)
    plan_3 = plans_get((metadata_2, facts_3, facts_4))
    if plan_3 is None:
        plan_3 = new_plan((metadata_2, facts_3, None, None, facts_4), (input_2, normalized_shape, None, None, eps))
    spec_4 = plan_3.outputs[0]
    result_6 = new(Tensor)
    result_6._keyset = spec_4.keyset
    result_6._counter = [0]
    result_6._autograd = None
    result_6._store = None
    result_6._array = empty(spec_4.elements, spec_4.array) if spec_4.sure else memory_for(spec_4, result_6)
    result_6._shape = spec_4.shape
    result_6._stride = spec_4.stride
    result_6._offset = 0
    result_6._dtype = spec_4.dtype
    result_6._device = spec_4.device
    result_6._view = None
    result_6._interned = spec_4.metadata
    spec_5 = plan_3.outputs[1]
    result_7 = new(Tensor)
    result_7._keyset = spec_5.keyset
    result_7._counter = [0]
    result_7._autograd = None
    result_7._store = None
    result_7._array = empty(spec_5.elements, spec_5.array) if spec_5.sure else memory_for(spec_5, result_7)
    result_7._shape = spec_5.shape
    result_7._stride = spec_5.stride
    result_7._offset = 0
    result_7._dtype = spec_5.dtype
    result_7._device = spec_5.device
    result_7._view = None
    result_7._interned = spec_5.metadata
    spec_6 = plan_3.outputs[2]
    result_8 = new(Tensor)
    result_8._keyset = spec_6.keyset
    result_8._counter = [0]
    result_8._autograd = None
    result_8._store = None
    result_8._array = empty(spec_6.elements, spec_6.array) if spec_6.sure else memory_for(spec_6, result_8)
    result_8._shape = spec_6.shape
    result_8._stride = spec_6.stride
    result_8._offset = 0
    result_8._dtype = spec_6.dtype
    result_8._device = spec_6.device
    result_8._view = None
    result_8._interned = spec_6.metadata
    value_32 = plan_3.run
    value_33 = result_6._array
    value_34 = result_7._array
    value_35 = result_8._array
    array_3 = input_2._array
    if array_3 is None:
        array_3 = input_2._operand.array
    value_32(value_33, 0, value_34, 0, value_35, 0, array_3, input_2._offset)
    return (result_6, result_7, result_8)
