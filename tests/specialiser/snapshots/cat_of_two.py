def cat(tensors):
    # aten::cat(Tensor[] tensors, int dim=0) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    tensors_0, tensors_1 = tensors
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (tensors_0._autograd is not None and tensors_0._autograd.requires_grad) or (tensors_1._autograd is not None and tensors_1._autograd.requires_grad):
        node = node_class()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        value_2 = tensors_0._autograd
        value_3 = tensors_0._view
        result = None if value_2 is None else ((value_2.grad_fn, value_2.output_nr) if value_2.grad_fn is not None and (value_3 is None or value_3.version == tensors_0._counter[0]) else ((value_2.accumulator, 0, tensors_0) if value_3 is None and value_2.accumulator is not None and value_2.requires_grad else other_gradient_edge(tensors_0)))
        value_7 = tensors_1._autograd
        value_8 = tensors_1._view
        result_2 = None if value_7 is None else ((value_7.grad_fn, value_7.output_nr) if value_7.grad_fn is not None and (value_8 is None or value_8.version == tensors_1._counter[0]) else ((value_7.accumulator, 0, tensors_1) if value_8 is None and value_7.accumulator is not None and value_7.requires_grad else other_gradient_edge(tensors_1)))
        node.next_edges = (result, result_2)
        node.counts = (2,)
        node.facts = ([tensors_0._shape, tensors_1._shape], [tensors_0._dtype, tensors_1._dtype], 0)
        if WATCH.on:
            look_on(operator_derivative, node)
        # CPU: structured cat (kernel), kernels/ops/shape.py
        metadata = tensors_0._interned or metadata_of(tensors_0)
        metadata_2 = tensors_1._interned or metadata_of(tensors_1)
        plan = plans_get((metadata, metadata_2))
        if plan is None:
            plan = new_plan(((metadata, metadata_2), 0), (tensors, 0))
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
        value_17 = plan.run
        value_18 = result_3._array
        array = tensors_0._array
        if array is None:
            array = tensors_0._operand.array
        array_3 = tensors_1._array
        if array_3 is None:
            array_3 = tensors_1._operand.array
        value_17(value_18, 0, array, tensors_0._offset, array_3, tensors_1._offset)
        if (result_3._autograd is None and (not (result_3 is tensors_0 or result_3 is tensors_1))) and result_3._dtype.category >= 2:
            value_27 = result_3._interned or metadata_of(result_3)
            node.outputs = value_27.alone
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
        return finish_slow(operator_derivative, op, node, [tensors, 0], result_3)
    # CPU: structured cat (kernel), kernels/ops/shape.py
    metadata_3 = tensors_0._interned or metadata_of(tensors_0)
    metadata_4 = tensors_1._interned or metadata_of(tensors_1)
    plan_3 = plans_get((metadata_3, metadata_4))
    if plan_3 is None:
        plan_3 = new_plan(((metadata_3, metadata_4), 0), (tensors, 0))
    spec_2 = plan_3.outputs[0]
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
    value_24 = plan_3.run
    value_25 = result_4._array
    array_5 = tensors_0._array
    if array_5 is None:
        array_5 = tensors_0._operand.array
    array_7 = tensors_1._array
    if array_7 is None:
        array_7 = tensors_1._operand.array
    value_24(value_25, 0, array_5, tensors_0._offset, array_7, tensors_1._offset)
    return result_4
