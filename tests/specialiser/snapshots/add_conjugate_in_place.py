def add__Tensor(self, other):
    # aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, Conjugate, ADInplaceOrView, AutogradCPU), no grad
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    if self._counter is None:
        raise inference_tensor_written(self)
    # Conjugate: conjugate (backend fallback), dispatch/layers/conjugate.py
    if self._keyset & CONJUGATE:
        state = get_state()
        inner = state.memo.get(autograd_adinplaceorview) or state.after(autograd_adinplaceorview)
        token = set_state(inner)
        try:
            result = clone_of(self)
        finally:
            reset_state(token)
    else:
        result = self
    if other._keyset & CONJUGATE:
        state = get_state()
        inner_2 = state.memo.get(autograd_adinplaceorview) or state.after(autograd_adinplaceorview)
        token_2 = set_state(inner_2)
        try:
            result_2 = clone_of(other)
        finally:
            reset_state(token_2)
    else:
        result_2 = other
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    one_store = result_2._store is not None and result_2._store is result._store
    if result_2 is result or one_store or result_2._array is result._array is not None:
        result_3 = run_inplace_unaliased(result, result_2, 1)
    else:
        metadata = result._interned or metadata_of(result)
        metadata_2 = result_2._interned or metadata_of(result_2)
        plan = plans_get(metadata if metadata is metadata_2 else (metadata, metadata_2))
        if plan is None:
            plan = new_plan(variant, (metadata, metadata_2, int), (result, result_2, 1))
        loop = plan.in_place
        if loop is None:
            loop_2 = loop_in_place(variant, plan, (result, result_2, 1))
            plan.in_place = loop_2
            loop = loop_2
        if result._array is None:
            raise no_memory(result)
        value_3 = result._array
        value_4 = result._offset
        array = result_2._array
        if array is None:
            raise no_memory(result_2)
        values = result_2._offset
        entry = loop.entry
        if entry is None:
            loop.run(value_3, value_4, array, values)
            result_3 = result
        else:
            entry(0, loop.numel, value_3, value_4, array, values)
            result_3 = result
    if result is not self:
        state = get_state()
        inner_3 = state.memo.get(autograd_adinplaceorview) or state.after(autograd_adinplaceorview)
        token_3 = set_state(inner_3)
        try:
            write_back_one(self, result)
        finally:
            reset_state(token_3)
    if self._counter is not None:
        self._counter[0] += 1
    return self
