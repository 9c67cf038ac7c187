def native_layer_norm(input_2, normalized_shape, eps):
    # aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (input_2._autograd is not None and input_2._autograd.requires_grad):
        node = node_class()
        node.sequence = next_sequence()
        node.hooks = None
        value_2 = input_2._autograd
        value_3 = input_2._view
        result = None if value_2 is None else ((value_2.grad_fn, value_2.output_nr) if value_2.grad_fn is not None and (value_3 is None or value_3.version == input_2._counter[0]) else ((value_2.accumulator, 0, input_2) if value_3 is None and value_2.accumulator is not None and value_2.requires_grad else other_gradient_edge(input_2)))
        node.next_edges = (result, None, None)
        result_2 = input_2._counter[0] if input_2._counter is not None else refuse_inference_tensor()
        node.kept = (input_2, result_2, None, None, None, None)
        node.facts = (normalized_shape, eps)
        if WATCH.on:
            look_on(operator_derivative, node)
        # CPU: native_layer_norm_kernel (kernel), ops/normalization.py
        result_3 = function(input_2, normalized_shape, None, None, eps)
        results = result_3[0]
        results_2 = result_3[1]
        results_3 = result_3[2]
        if isinstance(results, TensorBase) and results._autograd is None and not (results is input_2) and isinstance(results_2, TensorBase) and results_2._autograd is None and not (results_2 is input_2) and isinstance(results_3, TensorBase) and results_3._autograd is None and not (results_3 is input_2):
            value_9 = None if results._dtype.category < 2 else looks_of(results)
            node.outputs = (value_9, None, None)
            if results._dtype.category >= 2:
                record = ResultRecord()
                record.requires_grad = True
                record.grad_fn = node
                record.output_nr = 0
                record.grad = None
                record.accumulator = None
                record.hooks = None
                record.post_accumulate_hooks = None
                record.retains_grad = None
                results._autograd = record
            items = [results, results_2, results_3]
            node.results = kept_outputs(operator_derivative, node, items)
            return result_3
        return finish_otherwise(operator_derivative, op, node, [input_2, normalized_shape, None, None, eps], result_3)
    # CPU: native_layer_norm_kernel (kernel), ops/normalization.py
    return function(input_2, normalized_shape, None, None, eps)
