def index_Tensor(self, indices):
    # aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    indices_0, indices_1 = indices
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (bool((self._autograd is not None and self._autograd.requires_grad))) or (bool((indices_1._autograd is not None and indices_1._autograd.requires_grad))):
        if not bool((self._autograd is not None and self._autograd.requires_grad)):
            # CPU: index_kernel (kernel), kernels/ops/indexing.py
            value_8 = indices_1._interned or metadata_of(indices_1)
            metadata = self._interned or metadata_of(self)
            plan = INDEXED_get((metadata, None, value_8))
            if plan is None or self._array is None:
                result_2 = index_first(self, indices)
            else:
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
                bad = plan.run(result_3._array, 0, self._array, self._offset, indices_1._array, indices_1._offset)
                if bad is not None:
                    raise first_bad_index(self, indices)
                result_2 = result_3
            return result_2
        node = node_class()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        value_2 = self._autograd
        value_3 = self._view
        result = None if value_2 is None else ((value_2.grad_fn, value_2.output_nr) if value_2.grad_fn is not None and (value_3 is None or value_3.version == self._counter[0]) else ((value_2.accumulator, 0, self) if value_3 is None and value_2.accumulator is not None and value_2.requires_grad else other_gradient_edge(self)))
        node.next_edges = (result,)
        saved_list_2 = saved_list(indices, False)
        node.kept = (saved_list_2, -1)
        node.facts = (self._shape,)
        if WATCH.on:
            look_on(operator_derivative, node)
        # CPU: index_kernel (kernel), kernels/ops/indexing.py
        value_14 = indices_1._interned or metadata_of(indices_1)
        metadata_2 = self._interned or metadata_of(self)
        plan_2 = INDEXED_get((metadata_2, None, value_14))
        if plan_2 is None or self._array is None:
            result_4 = index_first(self, indices)
        else:
            spec_2 = plan_2.outputs[0]
            result_5 = new(Tensor)
            result_5._keyset = spec_2.keyset
            result_5._counter = [0]
            result_5._autograd = None
            result_5._store = None
            result_5._array = empty(spec_2.elements, spec_2.array) if spec_2.sure else memory_for(spec_2, result_5)
            result_5._shape = spec_2.shape
            result_5._stride = spec_2.stride
            result_5._offset = 0
            result_5._dtype = spec_2.dtype
            result_5._device = spec_2.device
            result_5._view = None
            result_5._interned = spec_2.metadata
            bad_2 = plan_2.run(result_5._array, 0, self._array, self._offset, indices_1._array, indices_1._offset)
            if bad_2 is not None:
                raise first_bad_index(self, indices)
            result_4 = result_5
        if isinstance(result_4, TensorBase):
            if result_4._autograd is None and not (result_4 is self) and not (result_4 is indices_1) and result_4._dtype.category >= 2:
                value_26 = result_4._interned or metadata_of(result_4)
                node.outputs = value_26.alone
                record = ResultRecord()
                record.requires_grad = True
                record.grad_fn = node
                record.output_nr = 0
                record.grad = None
                record.accumulator = None
                record.hooks = None
                record.post_accumulate_hooks = None
                record.retains_grad = None
                result_4._autograd = record
                return result_4
        return finish_slow(operator_derivative, op, node, [self, indices], result_4)
    # CPU: index_kernel (kernel), kernels/ops/indexing.py
    value_20 = indices_1._interned or metadata_of(indices_1)
    metadata_3 = self._interned or metadata_of(self)
    plan_3 = INDEXED_get((metadata_3, None, value_20))
    if plan_3 is None or self._array is None:
        result_6 = index_first(self, indices)
    else:
        spec_3 = plan_3.outputs[0]
        result_7 = new(Tensor)
        result_7._keyset = spec_3.keyset
        result_7._counter = [0]
        result_7._autograd = None
        result_7._store = None
        result_7._array = empty(spec_3.elements, spec_3.array) if spec_3.sure else memory_for(spec_3, result_7)
        result_7._shape = spec_3.shape
        result_7._stride = spec_3.stride
        result_7._offset = 0
        result_7._dtype = spec_3.dtype
        result_7._device = spec_3.device
        result_7._view = None
        result_7._interned = spec_3.metadata
        bad_3 = plan_3.run(result_7._array, 0, self._array, self._offset, indices_1._array, indices_1._offset)
        if bad_3 is not None:
            raise first_bad_index(self, indices)
        result_6 = result_7
    return result_6
