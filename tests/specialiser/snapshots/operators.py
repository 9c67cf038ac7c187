# === exp
def exp(self):
    # aten::exp(Tensor self) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        node = begun()
        result = edge(self)
        node.next_edges = (result,)
        looked_on(node)
        # CPU: pointwise exp (kernel), kernels/ops/elementary.py
        result_2 = pointwise_of_one(self)
        if result_2._autograd is None and not (result_2 is self) and result_2._dtype.category >= 2:
            outputs_known(node, result_2)
            tied(result_2, node)
            condition = WATCH.on and packs(result_2)
            if condition:
                saved_tensor = SavedTensor(result_2, 0)
                node.results = (saved_tensor, -1)
            else:
                result_4 = result_2._counter[0] if result_2._counter is not None else refuse_inference_tensor(result_2)
                state = get_state()
                metadata_3 = result_2._interned or metadata_of(result_2)
                node.results = (
                    (
                        result_2._keyset,
                        result_2._counter,
                        result_2._store,
                        result_2._array,
                        result_2._offset,
                        metadata_3,
                    ),
                    result_4,
                )
            return result_2
        return finish_slow(operator_derivative, op, node, [self], result_2)
    # CPU: pointwise exp (kernel), kernels/ops/elementary.py
    result_3 = pointwise_of_one(self)
    return result_3

# === mm
def mm(self, mat2):
    # aten::mm(Tensor self, Tensor mat2) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (self._autograd is not None and self._autograd.requires_grad)
        or (mat2._autograd is not None and mat2._autograd.requires_grad)
    ):
        node = begun()
        result = edge(self)
        result_2 = edge(mat2)
        node.next_edges = (result, result_2)
        value_6, version_of = saved_for(result_2, self)
        value_7, version_of_2 = saved_for(result, mat2)
        node.kept = (value_6, version_of, value_7, version_of_2)
        node.facts = (mat2._shape, mat2._stride, self._shape, self._stride)
        looked_on(node)
        # CPU: structured mm (kernel), kernels/ops/linalg.py
        metadata, metadata_2 = looks_of_each(self, mat2)
        plan = plan_for(
            metadata if metadata is metadata_2 else (metadata, metadata_2),
            (metadata, metadata_2),
            (self, mat2),
        )
        result_5 = fresh(plan.outputs[0])
        plan_run = plan.run
        result_array = result_5._array
        array = any_array_of(self)
        array_3 = any_array_of(mat2)
        plan_run(result_array, 0, array, self._offset, array_3, mat2._offset)
        new_result_of_several_is_tied(result_5, node, result_5 is self or result_5 is mat2)
        return finish_slow(operator_derivative, op, node, [self, mat2], result_5)
    # CPU: structured mm (kernel), kernels/ops/linalg.py
    ...  # as above, result_6 for result_5
    return result_6

# === mm_autocast
def mm(self, mat2):
    # aten::mm(Tensor self, Tensor mat2) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    inner = excluding(keyset)
    dtype = inner.autocast_dtypes['cpu']
    cast_to_any(result, _to_copy_code, _to_copy_code_2, inner, mat2, dtype)
    cast_to_any(result_4, _to_copy_code_3, _to_copy_code_4, inner, self, dtype)
    code_5 = code_for(mm_code, inner, result_4._keyset is result._keyset, result_4._keyset, result._keyset)
    with within(inner): return code_5(result_4, result)

# === cat_autocast
def cat(tensors):
    # aten::cat(Tensor[] tensors, int dim=0) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    tensors_0, tensors_1 = tensors
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    inner = excluding(keyset)
    widest = widest_dtype([tensors, 0], 'cpu', inner.autocast_dtypes['cpu'])
    if widest is None:
        code = code_for(cat_code, inner, tensors_0._keyset is tensors_1._keyset, tensors_0._keyset, tensors_1._keyset)
        with within(inner): return code(tensors)
    cast(result_2, _to_copy_code, _to_copy_code_2, inner, tensors_0, widest)
    cast(result_5, _to_copy_code_3, _to_copy_code_4, inner, tensors_1, widest)
    code_6 = code_for(cat_code_2, inner, result_2._keyset is result_5._keyset, result_2._keyset, result_5._keyset)
    with within(inner): return code_6([result_2, result_5])

# === prod_autocast
def prod(self):
    # aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, AutocastCPU)
    # AutocastCPU: autocast (kernel), dispatch/layers/autocast.py
    if (
        (not (self._dtype.is_floating_point and self._device.type == 'cpu' and self._dtype.itemsize < 8))
        or self._dtype is float32
    ):
        result = self
    else:
        autograd = self._autograd
        if autograd is not None and autograd.requires_grad and autograd.grad_fn is None:
            inner = excluding(keyset)
            kept_or_copied(result, _to_copy_code, inner, self, float32)
        else:
            inner_2 = excluding(keyset)
            copied(result, _to_copy_code_2, inner_2, self, float32)
    inner_3 = excluding(keyset)
    code_3 = code_for(prod_code, inner_3, result._keyset, result._keyset)
    with within(inner_3): return code_3(result)

# === cat_of_two
def cat(tensors):
    # aten::cat(Tensor[] tensors, int dim=0) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    tensors_0, tensors_1 = tensors
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (tensors_0._autograd is not None and tensors_0._autograd.requires_grad)
        or (tensors_1._autograd is not None and tensors_1._autograd.requires_grad)
    ):
        node = begun()
        result = edge(tensors_0)
        result_2 = edge(tensors_1)
        node.next_edges = (result, result_2)
        node.counts = (2,)
        node.facts = ([tensors_0._shape, tensors_1._shape], [tensors_0._dtype, tensors_1._dtype], 0)
        looked_on(node)
        # CPU: structured cat (kernel), kernels/ops/shape.py
        metadata, metadata_2 = looks_of_each(tensors_0, tensors_1)
        plan = plan_for((metadata, metadata_2), ((metadata, metadata_2), 0), (tensors, 0))
        result_3 = fresh(plan.outputs[0])
        plan_run = plan.run
        result_array = result_3._array
        array = any_array_of(tensors_0)
        array_3 = any_array_of(tensors_1)
        plan_run(result_array, 0, array, tensors_0._offset, array_3, tensors_1._offset)
        new_result_of_several_is_tied(result_3, node, result_3 is tensors_0 or result_3 is tensors_1)
        return finish_slow(operator_derivative, op, node, [tensors, 0], result_3)
    # CPU: structured cat (kernel), kernels/ops/shape.py
    ...  # as above, result_4 for result_3
    return result_4

# === sum_dim
def sum_dim_IntList(self, dim):
    # aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        node = begun()
        result = edge(self)
        node.next_edges = (result,)
        node.facts = (self._shape, dim, False)
        looked_on(node)
        # CPU: structured sum (kernel), kernels/ops/reductions.py
        metadata = self._interned or metadata_of(self)
        dim_fact = tuple(dim)
        plan = plan_for((metadata, dim_fact), (metadata, dim_fact, False, None), (self, dim, False, None))
        result_2 = fresh(plan.outputs[0])
        plan_run = plan.run
        result_array = result_2._array
        array = any_array_of(self)
        plan_run(result_array, 0, array, self._offset)
        new_result_is_tied(result_2, node, result_2 is self)
        return finish_slow(operator_derivative, op, node, [self, dim, False, None], result_2)
    # CPU: structured sum (kernel), kernels/ops/reductions.py
    ...  # as above, result_3 for result_2
    return result_3

# === max_dim
def max_dim(self, dim):
    # aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        node = begun()
        result = edge(self)
        node.next_edges = (result,)
        node.facts = (self._shape, dim, False)
        looked_on(node)
        # CPU: max (kernel), kernels/ops/extremes.py
        if self._array is None:
            result_2 = run_elsewhere((self, dim, False))
            results = result_2[0]
            results_2 = result_2[1]
            if (
                isinstance(results, TensorBase)
                and results._autograd is None
                and not (results is self)
                and isinstance(results_2, TensorBase)
                and results_2._autograd is None
                and not (results_2 is self)
            ):
                first_is_tied(results, node, None, results, results_2)
                return result_2
            return finish_slow(operator_derivative, op, node, [self, dim, False], result_2)
        interned = self._interned or metadata_of(self)
        plan = plan_for((interned, (dim, False)), (interned, (dim, False)), (self, dim, False))
        result_3 = fresh(plan.outputs[0])
        result_4 = fresh(plan.outputs[1])
        plan.run(result_3._array, 0, result_4._array, 0, self._array, self._offset)
        if (
            result_3._autograd is None
            and not (result_3 is self)
            and result_4._autograd is None
            and not (result_4 is self)
        ):
            first_is_tied(result_3, node, None, result_3, result_4)
            return (result_3, result_4)
        return finish_slow(operator_derivative, op, node, [self, dim, False], (result_3, result_4))
    # CPU: max (kernel), kernels/ops/extremes.py
    if self._array is None:
        return run_elsewhere((self, dim, False))
    interned_2 = self._interned or metadata_of(self)
    plan_3 = plan_for((interned_2, (dim, False)), (interned_2, (dim, False)), (self, dim, False))
    result_6 = fresh(plan_3.outputs[0])
    result_7 = fresh(plan_3.outputs[1])
    plan_3.run(result_6._array, 0, result_7._array, 0, self._array, self._offset)
    return (result_6, result_7)

# === layer_norm
def native_layer_norm(input_2, normalized_shape, eps):
    # aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (input_2._autograd is not None and input_2._autograd.requires_grad):
        node = begun()
        result = edge(input_2)
        node.next_edges = (result, None, None)
        result_2 = input_2._counter[0] if input_2._counter is not None else refuse_inference_tensor(input_2)
        node.kept = (input_2, result_2, None, None, None, None)
        node.facts = (normalized_shape, eps)
        looked_on(node)
        # CPU: planned native_layer_norm (kernel), kernels/ops/normalization.py
        metadata = input_2._interned or metadata_of(input_2)
        normalized_shape_fact = tuple(normalized_shape)
        facts = eps if eps else str(eps)
        plan = plan_for(
            (metadata, normalized_shape_fact, facts),
            (metadata, normalized_shape_fact, None, None, facts),
            (input_2, normalized_shape, None, None, eps),
        )
        result_3 = fresh(plan.outputs[0])
        result_4 = fresh(plan.outputs[1])
        result_5 = fresh(plan.outputs[2])
        plan_run = plan.run
        result_array = result_3._array
        result_array_2 = result_4._array
        result_array_3 = result_5._array
        array = any_array_of(input_2)
        plan_run(result_array, 0, result_array_2, 0, result_array_3, 0, array, input_2._offset)
        if (
            result_3._autograd is None
            and not (result_3 is input_2)
            and result_4._autograd is None
            and not (result_4 is input_2)
            and result_5._autograd is None
            and not (result_5 is input_2)
        ):
            first_is_tied(result_3, node, None, None, result_3, result_4, result_5)
            return (result_3, result_4, result_5)
        return finish_slow(
            operator_derivative,
            op,
            node,
            [input_2, normalized_shape, None, None, eps],
            (result_3, result_4, result_5),
        )
    # CPU: planned native_layer_norm (kernel), kernels/ops/normalization.py
    ...  # as above, result_6 for result_3, result_7 for result_4, result_8 for result_5
    return (result_6, result_7, result_8)

# === view
def view(self, size):
    # aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        node = begun()
        result = edge(self)
        node.next_edges = (result,)
        node.facts = (self._shape,)
        looked_on(node)
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        # CPU: viewed (default backend kernel), kernels/ops/geometry.py
        interned = self._interned or metadata_of(self)
        size_key = tuple(size)
        window = windows_get((interned, size_key))
        if window is None:
            geometry_2 = geometry(self, size)
            window = remember((interned, size_key), self, geometry_2)
        result_2 = window_of(self, window)
        made_a_view(result_2, self, result_2._keyset is not self._keyset, history_of, [self, size], DEFAULT_CREATION)
        view_is_tied(result_2, node, result_2 is self)
        return finish_slow(operator_derivative, op, node, [self, size], result_2)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    ...  # as above, result_3 for result_2
    return result_3

# === view_no_grad
def view(self, size):
    # aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), no grad
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    # CPU: viewed (default backend kernel), kernels/ops/geometry.py
    interned = self._interned or metadata_of(self)
    size_key = tuple(size)
    window = windows_get((interned, size_key))
    if window is None:
        geometry_2 = geometry(self, size)
        window = remember((interned, size_key), self, geometry_2)
    result = window_of(self, window)
    made_a_view(result, self, result._keyset is not self._keyset, history_created, [self, size], NO_GRAD_MODE)
    return result

# === transpose_in_place
def transpose(self, dim0, dim1):
    # aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        check_writable(self)
        node = begun()
        result = edge(self)
        node.next_edges = (result,)
        node.facts = (dim0, dim1)
        looked_on(node)
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        no_inference_tensor(self)
        # CPU: transposed_inplace (default backend kernel), kernels/ops/views.py
        inner = after(autograd_adinplaceorview)
        with within(inner): result_2 = function(self, dim0, dim1)
        version_rises(self)
        written_is_tied(self, node)
        return finish_slow(operator_derivative, op, node, [self, dim0, dim1], self)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    ...  # as above
    return self

# === split
def split_Tensor(self, split_size):
    # aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        node = begun()
        result = edge(self)
        node.next_edges = (result,)
        node.facts = (self._shape, split_size, 0)
        looked_on(node)
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        # CPU: split_evenly (default backend kernel), kernels/ops/views.py
        result_2 = by_number(self, split_size, 0)
        if isinstance(result_2, TensorBase):
            made_a_view(
                result_2,
                self,
                result_2._keyset is not self._keyset or type(result_2) is not Tensor,
                history_created,
                [self, split_size, 0],
                MULTI_OUTPUT_NODE,
            )
        else:
            inner = excluding(AUTOGRAD)
            with within(inner): tie_each_to_base(op, [self, split_size, 0], result_2)
        if isinstance(result_2, TensorBase):
            view_is_tied(result_2, node, result_2 is self)
        return finish_slow(operator_derivative, op, node, [self, split_size, 0], result_2)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    ...  # as above, result_3 for result_2
    return result_3

# === detach
def detach(self):
    # aten::detach(Tensor(a) self) -> Tensor(a)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        # ADInplaceOrView: tracking (kernel), kernels/ops/copying.py
        # CPU: detach_kernel (default backend kernel), kernels/ops/geometry.py
        interned = self._interned or metadata_of(self)
        window = windows_get(interned)
        if window is None:
            self_geometry = geometry(self)
            window = remember((interned,), self, self_geometry)
        result = window_of(self, window)
        result._counter = self._counter
        return result
    # ADInplaceOrView: tracking (kernel), kernels/ops/copying.py
    ...  # as above

# === copy_in_place
def copy(self, src):
    # aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (self._autograd is not None and self._autograd.requires_grad)
        or (src._autograd is not None and src._autograd.requires_grad)
    ):
        check_writable(self)
        node = begun()
        result = edge(self)
        result_2 = edge(src)
        node.next_edges = (result, result_2)
        looked_on(node)
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        no_inference_tensor(self)
        # CPU: copy_inplace_kernel (kernel), kernels/ops/copying.py
        one_store = src._store is not None and src._store is self._store
        if not (src is self or one_store or src._array is self._array is not None):
            interned, interned_2 = looks_of_each(self, src)
            run = WRITES_get((interned, interned_2))
            if run is None:
                run = new_write((interned, interned_2), self, src)
            if self._array is not None and src._array is not None:
                run(self._array, self._offset, src._array, src._offset)
                result_3 = self
            else:
                result_3 = copy_inplace_slow(self, src)
        else:
            result_3 = copy_inplace_slow(self, src)
        version_rises(self)
        written_is_tied(self, node)
        return finish_slow(operator_derivative, op, node, [self, src, False], self)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    ...  # as above
    return self

# === index
def index_Tensor(self, indices):
    # aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    indices_0, indices_1 = indices
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (bool((self._autograd is not None and self._autograd.requires_grad)))
        or (bool((indices_1._autograd is not None and indices_1._autograd.requires_grad)))
    ):
        if not bool((self._autograd is not None and self._autograd.requires_grad)):
            # CPU: index_kernel (kernel), kernels/ops/indexing.py
            indices_1_interned, interned = looks_of_each(indices_1, self)
            plan = INDEXED_get((interned, None, indices_1_interned))
            if plan is None or self._array is None:
                result_2 = index_first(self, indices)
            else:
                result_3 = fresh(plan.outputs[0])
                bad = plan.run(result_3._array, 0, self._array, self._offset, indices_1._array, indices_1._offset)
                if bad is not None:
                    raise first_bad_index(self, indices)
                result_2 = result_3
            return result_2
        node = begun()
        result = edge(self)
        node.next_edges = (result,)
        saved_list_2 = saved_list(indices, False)
        node.kept = (saved_list_2, -1)
        node.facts = (self._shape,)
        looked_on(node)
        # CPU: index_kernel (kernel), kernels/ops/indexing.py
        ...  # as above, result_4 for result_2
        if isinstance(result_4, TensorBase):
            new_result_is_tied(result_4, node, result_4 is self) and not (result_4 is indices_1)
        return finish_slow(operator_derivative, op, node, [self, indices], result_4)
    # CPU: index_kernel (kernel), kernels/ops/indexing.py
    ...  # as above

# === ones
def ones(size):
    # aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
    # DispatchKeySet(BackendSelect, ADInplaceOrView)
    # BackendSelect: backend_select (kernel), dispatch/layers/backend_select.py
    # CPU: ones_kernel (default backend kernel), kernels/ops/creation.py
    size_tuple = tuple(size)
    dtype = get_default_dtype()
    result = CONSTANTS_get((size_tuple, dtype, None))
    if result is None:
        return filled_first(size, 1, None, None, None)
    result_3 = fresh(result.outputs[0])
    if result.run is None:
        result.near(result_3, 1)
    else:
        result.run(result_3._array, 0, 1)
    return result_3

# === ones_mode
def ones(size):
    # aten::ones(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
    # DispatchKeySet(BackendSelect, Python, ADInplaceOrView, PythonTLSSnapshot), modes
    # PythonTLSSnapshot: python_tls_snapshot (backend fallback), dispatch/layers/python.py
    # Python: python (backend fallback), dispatch/layers/python.py
    found = _HANDLING_get(())
    result = in_order(()) if found is None else found
    state = get_state()
    inner = state.entered()
    mode = inner.modes[-1]
    inner_2 = state.memo.get(entered_answering) or state.after(entered_answering)
    with within(inner_2): result_2 = mode.__torch_dispatch__(op, result, (size,), {})
    if result_2 is not NotImplemented:
        if not isinstance(result_2, TensorBase):
            check_none(schema, result_2)
        return result_2
    with within(inner): return ask_in_turn(op, result, result, (size,), {})

# === implicit
def square(self):
    # aten::square(Tensor self) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: square (math kernel), kernels/ops/arithmetic.py
    return function(self)

# === implicit_mode
def square(self):
    # aten::square(Tensor self) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, Python, ADInplaceOrView, AutogradCPU, PythonTLSSnapshot), modes
    # PythonTLSSnapshot: python_tls_snapshot (backend fallback), dispatch/layers/python.py
    # AutogradCPU: square (math kernel), kernels/ops/arithmetic.py
    state = get_state()
    inner = state.entered()
    with within(inner): return function(self)

# === implicit_inference
def square(self):
    # aten::square(Tensor self) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView), no grad, inference
    # CPU: square (math kernel), kernels/ops/arithmetic.py
    return function(self)

# === implicit_of_others
def layer_norm(input_2, normalized_shape):
    # aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: layer_norm (math kernel), kernels/ops/normalization.py
    state = get_state()
    code = code_for(native_layer_norm_code, state, input_2._keyset, input_2._keyset)
    call = code(input_2, normalized_shape, 1e-05)
    return call[0]
