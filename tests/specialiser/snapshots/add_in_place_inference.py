def add__Tensor(self, other):
    # aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView), no grad, inference
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    one_store = other._store is not None and other._store is self._store
    if other is self or one_store or other._array is self._array is not None:
        result = run_inplace_unaliased(self, other, 1)
    else:
        metadata = self._interned or metadata_of(self)
        metadata_2 = other._interned or metadata_of(other)
        plan = plans_get(metadata if metadata is metadata_2 else (metadata, metadata_2))
        if plan is None:
            plan = new_plan(variant, (metadata, metadata_2, int), (self, other, 1))
        loop = plan.in_place
        if loop is None:
            loop_2 = loop_in_place(variant, plan, (self, other, 1))
            plan.in_place = loop_2
            loop = loop_2
        if self._array is None:
            raise no_memory(self)
        value_3 = self._array
        value_4 = self._offset
        array = other._array
        if array is None:
            raise no_memory(other)
        values = other._offset
        entry = loop.entry
        if entry is None:
            loop.run(value_3, value_4, array, values)
            result = self
        else:
            entry(0, loop.numel, value_3, value_4, array, values)
            result = self
    if self._counter is not None:
        self._counter[0] += 1
    return self
