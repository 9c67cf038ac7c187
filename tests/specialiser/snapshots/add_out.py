def add_out(self, other, out):
    # aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad) or (other._autograd is not None and other._autograd.requires_grad) or (out._autograd is not None and out._autograd.requires_grad):
        node = begin(op, [self, other, 1, out])
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        if out._counter is None:
            raise inference_tensor_written(out)
        # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
        one_store = self._store is not None and self._store is out._store
        if self is out or one_store or self._array is out._array is not None:
            result = run_out_slow(self, other, 1, out)
        else:
            one_store_2 = other._store is not None and other._store is out._store
            if other is out or one_store_2 or other._array is out._array is not None:
                result = run_out_slow(self, other, 1, out)
            else:
                metadata = self._interned or metadata_of(self)
                metadata_2 = other._interned or metadata_of(other)
                plan = plans_get(metadata if metadata is metadata_2 else (metadata, metadata_2))
                if plan is None:
                    plan = new_plan(variant, (metadata, metadata_2, int), (self, other, 1))
                value_4 = plan.into.get
                metadata_3 = out._interned or metadata_of(out)
                loop = value_4(metadata_3)
                if loop is None or out._array is None:
                    result = run_out_first(variant, plan, (self, other, 1, out))
                else:
                    value_5 = out._array
                    value_6 = out._offset
                    array = self._array
                    if array is None:
                        raise no_memory(self)
                    array_2 = other._array
                    if array_2 is None:
                        raise no_memory(other)
                    values = self._offset
                    values_2 = other._offset
                    entry = loop.entry
                    if entry is None:
                        loop.run(value_5, value_6, array, values, array_2, values_2)
                        result = out
                    else:
                        entry(0, loop.numel, value_5, value_6, array, values, array_2, values_2)
                        result = out
        if out._counter is not None:
            out._counter[0] += 1
        return out if node is None else finish(op, node, [self, other, 1, out], out)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    if out._counter is None:
        raise inference_tensor_written(out)
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    one_store_3 = self._store is not None and self._store is out._store
    if self is out or one_store_3 or self._array is out._array is not None:
        result_4 = run_out_slow(self, other, 1, out)
    else:
        one_store_4 = other._store is not None and other._store is out._store
        if other is out or one_store_4 or other._array is out._array is not None:
            result_4 = run_out_slow(self, other, 1, out)
        else:
            metadata_4 = self._interned or metadata_of(self)
            metadata_5 = other._interned or metadata_of(other)
            plan_3 = plans_get(metadata_4 if metadata_4 is metadata_5 else (metadata_4, metadata_5))
            if plan_3 is None:
                plan_3 = new_plan(variant, (metadata_4, metadata_5, int), (self, other, 1))
            value_10 = plan_3.into.get
            metadata_6 = out._interned or metadata_of(out)
            loop_2 = value_10(metadata_6)
            if loop_2 is None or out._array is None:
                result_4 = run_out_first(variant, plan_3, (self, other, 1, out))
            else:
                value_11 = out._array
                value_12 = out._offset
                array_3 = self._array
                if array_3 is None:
                    raise no_memory(self)
                array_4 = other._array
                if array_4 is None:
                    raise no_memory(other)
                values_3 = self._offset
                values_4 = other._offset
                entry_2 = loop_2.entry
                if entry_2 is None:
                    loop_2.run(value_11, value_12, array_3, values_3, array_4, values_4)
                    result_4 = out
                else:
                    entry_2(0, loop_2.numel, value_11, value_12, array_3, values_3, array_4, values_4)
                    result_4 = out
    if out._counter is not None:
        out._counter[0] += 1
    return out
