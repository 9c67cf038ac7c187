# === add
def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (self._autograd is not None and self._autograd.requires_grad)
        or (other._autograd is not None and other._autograd.requires_grad)
    ):
        node = begun()
        result = edge(self)
        result_2 = edge(other)
        node.next_edges = (result, result_2)
        node.facts = (1,)
        looked_on(node)
        # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
        result_3 = pointwise_of_two(self, other, (metadata, metadata_2, int), (self, other, 1))
        new_result_of_several_is_tied(result_3, node, result_3 is self or result_3 is other)
        return finish_slow(operator_derivative, op, node, [self, other, 1], result_3)
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    result_4 = pointwise_of_two(self, other, (metadata_3, metadata_4, int), (self, other, 1))
    return result_4

# === add_no_grad
def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), no grad
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    result = pointwise_of_two(self, other, (metadata, metadata_2, int), (self, other, 1))
    return result

# === add_inference
def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView), no grad, inference
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    metadata, metadata_2 = looks_of_each(self, other)
    plan = plan_for(
        metadata if metadata is metadata_2 else (metadata, metadata_2),
        variant,
        (metadata, metadata_2, int),
        (self, other, 1),
    )
    spec = plan.outputs[0]
    result = new(Tensor)
    result._keyset = spec.inference_keyset
    result._counter = None
    result._autograd = None
    result._store = None
    result._array = empty(spec.elements, spec.array) if spec.sure else memory_for(spec, result)
    result._shape = spec.shape
    result._stride = spec.stride
    result._offset = 0
    result._dtype = spec.dtype
    result._device = spec.device
    result._view = None
    result._interned = spec.metadata
    loop = loop_into(result, plan, (self, other, 1))
    result_array = result._array
    array = array_of(self)
    array_2 = array_of(other)
    self_offset = self._offset
    other_offset = other._offset
    entry = loop.entry
    if entry is None:
        loop.run(result_array, 0, array, self_offset, array_2, other_offset)
        return result
    entry(0, loop.numel, result_array, 0, array, self_offset, array_2, other_offset)
    return result

# === add_mode
def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, Python, ADInplaceOrView, AutogradCPU, PythonTLSSnapshot), modes
    # PythonTLSSnapshot: python_tls_snapshot (backend fallback), dispatch/layers/python.py
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (self._autograd is not None and self._autograd.requires_grad)
        or (other._autograd is not None and other._autograd.requires_grad)
    ):
        state = get_state()
        inner = state.entered()
        node = begun_in(inner)
        self_edge = edge_in(inner, self)
        other_edge = edge_in(inner, other)
        node.next_edges = (self_edge, other_edge)
        node.facts = (1,)
        looked_on_in(inner, node)
        # Python: python (backend fallback), dispatch/layers/python.py
        self_kind = type(self)
        other_kind = type(other)
        found = _HANDLING_get(self_kind if self_kind is other_kind else (self_kind, other_kind))
        result = in_order((self_kind, other_kind)) if found is None else found
        inner_2 = state.memo.get(entered_autograd) or state.after(entered_autograd)
        mode = inner_2.modes[-1]
        inner_3 = state.memo.get(entered_autograd_answering) or state.after(entered_autograd_answering)
        with within(inner_3): result_2 = mode.__torch_dispatch__(op, result, (self, other), {})
        if result_2 is not NotImplemented:
            if not isinstance(result_2, TensorBase):
                raise no_tensor(schema, result_2)
        else:
            with within(inner_2): result_2 = ask_in_turn(op, result, result, (self, other), {})
        if isinstance(result_2, TensorBase):
            if (
                (result_2._autograd is None and (not (result_2 is self or result_2 is other)))
                and result_2._dtype.category >= 2
            ):
                outputs_known(node, result_2)
                tied_in(inner, result_2, node)
                return result_2
        with within(inner): return finish_slow(operator_derivative, op, node, [self, other, 1], result_2)
    # Python: python (backend fallback), dispatch/layers/python.py
    ...  # as above, result_4 for result
    state = get_state()
    inner_4 = state.memo.get(entered_autograd) or state.after(entered_autograd)
    mode_2 = inner_4.modes[-1]
    inner_5 = state.memo.get(entered_autograd_answering) or state.after(entered_autograd_answering)
    with within(inner_5): result_5 = mode_2.__torch_dispatch__(op, result_4, (self, other), {})
    if result_5 is not NotImplemented:
        if not isinstance(result_5, TensorBase):
            raise no_tensor(schema, result_5)
    else:
        with within(inner_4): result_5 = ask_in_turn(op, result_4, result_4, (self, other), {})
    return result_5

# === add_subclass
def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, Python, ADInplaceOrView, AutogradCPU, PythonTLSSnapshot)
    # PythonTLSSnapshot: python_tls_snapshot (backend fallback), dispatch/layers/python.py
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (self._autograd is not None and self._autograd.requires_grad)
        or (other._autograd is not None and other._autograd.requires_grad)
    ):
        state = get_state()
        inner = state.entered()
        node = begun_in(inner)
        self_edge = edge_in(inner, self)
        other_edge = edge_in(inner, other)
        node.next_edges = (self_edge, other_edge)
        node.facts = (1,)
        looked_on_in(inner, node)
        # Python: python (backend fallback), dispatch/layers/python.py
        self_kind = type(self)
        other_kind = type(other)
        found = _HANDLING_get(self_kind if self_kind is other_kind else (self_kind, other_kind))
        result = in_order((self_kind, other_kind)) if found is None else found
        inner_2 = state.memo.get(entered_autograd) or state.after(entered_autograd)
        if result:
            asked = result[0]
            kind = result[0]
            inner_3 = state.memo.get(entered_autograd_above_python) or state.after(entered_autograd_above_python)
            with within(inner_3): result_2 = asked.__torch_dispatch__(op, result, (self, other), {})
            if result_2 is not NotImplemented:
                if not isinstance(result_2, TensorBase):
                    raise no_tensor(schema, result_2)
            else:
                with within(inner_2): result_2 = ask_in_turn(op, result[1:], result, (self, other), {})
        else:
            with within(inner_2): result_2 = ask_in_turn(op, result, result, (self, other), {})
        if isinstance(result_2, TensorBase):
            if (
                (result_2._autograd is None and (not (result_2 is self or result_2 is other)))
                and result_2._dtype.category >= 2
            ):
                outputs_known(node, result_2)
                tied_in(inner, result_2, node)
                return result_2
        with within(inner): return finish_slow(operator_derivative, op, node, [self, other, 1], result_2)
    # Python: python (backend fallback), dispatch/layers/python.py
    ...  # as above, result_5 for result
    state = get_state()
    inner_4 = state.memo.get(entered_autograd) or state.after(entered_autograd)
    if result_5:
        asked_2 = result_5[0]
        kind_2 = result_5[0]
        inner_5 = state.memo.get(entered_autograd_above_python) or state.after(entered_autograd_above_python)
        with within(inner_5): result_6 = asked_2.__torch_dispatch__(op, result_5, (self, other), {})
        if result_6 is not NotImplemented:
            if not isinstance(result_6, TensorBase):
                raise no_tensor(schema, result_6)
        else:
            with within(inner_4): result_6 = ask_in_turn(op, result_5[1:], result_5, (self, other), {})
    else:
        with within(inner_4): result_6 = ask_in_turn(op, result_5, result_5, (self, other), {})
    return result_6

# === add_meta
def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(Meta, BackendSelect, ADInplaceOrView, AutogradMeta)
    # AutogradMeta: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (self._autograd is not None and self._autograd.requires_grad)
        or (other._autograd is not None and other._autograd.requires_grad)
    ):
        node = begun()
        result = edge(self)
        result_2 = edge(other)
        node.next_edges = (result, result_2)
        node.facts = (1,)
        looked_on(node)
        # Meta: meta add (kernel), kernels/ops/arithmetic.py
        result_3 = _meta_functional(self, other, 1)
        if isinstance(result_3, TensorBase):
            new_result_of_several_is_tied(result_3, node, result_3 is self or result_3 is other)
        return finish_slow(operator_derivative, op, node, [self, other, 1], result_3)
    # Meta: meta add (kernel), kernels/ops/arithmetic.py
    return _meta_functional(self, other, 1)

# === add_number
def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (self._autograd is not None and self._autograd.requires_grad):
        node = begun()
        result = edge(self)
        node.next_edges = (result, None)
        node.facts = (1,)
        looked_on(node)
        # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
        metadata = self._interned or metadata_of(self)
        other_fact = type(other)
        plan = plan_for(
            metadata if metadata is other_fact else (metadata, other_fact),
            variant,
            (metadata, other_fact, int),
            (self, other, 1),
        )
        result_2 = fresh(plan.outputs[0])
        loop = loop_into(result_2, plan, (self, other, 1))
        result_array = result_2._array
        array = array_of(self)
        self_offset = self._offset
        runs(loop, result_array, 0, array, self_offset, other)
        new_result_of_several_is_tied(result_2, node, result_2 is self or result_2 is other)
        return finish_slow(operator_derivative, op, node, [self, other, 1], result_2)
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    ...  # as above, result_3 for result_2
    return result_3

# === add_alpha
def add_Tensor(self, other, alpha):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (self._autograd is not None and self._autograd.requires_grad)
        or (other._autograd is not None and other._autograd.requires_grad)
    ):
        node = begun()
        result = edge(self)
        result_2 = edge(other)
        node.next_edges = (result, result_2)
        node.facts = (alpha,)
        looked_on(node)
        # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
        metadata, metadata_2 = looks_of_each(self, other)
        alpha_fact = type(alpha)
        plan = plan_for(
            (metadata, metadata_2, alpha_fact),
            variant,
            (metadata, metadata_2, alpha_fact),
            (self, other, alpha),
        )
        result_3 = fresh(plan.outputs[0])
        loop = loop_into(result_3, plan, (self, other, alpha))
        result_array = result_3._array
        array = array_of(self)
        array_2 = array_of(other)
        self_offset = self._offset
        other_offset = other._offset
        runs(loop, result_array, 0, array, self_offset, array_2, other_offset, alpha)
        new_result_of_several_is_tied(result_3, node, result_3 is self or result_3 is other)
        return finish_slow(operator_derivative, op, node, [self, other, alpha], result_3)
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    ...  # as above, result_4 for result_3
    return result_4

# === add_in_place
def add__Tensor(self, other):
    # aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (self._autograd is not None and self._autograd.requires_grad)
        or (other._autograd is not None and other._autograd.requires_grad)
    ):
        check_writable(self)
        node = begun()
        result = edge(self)
        result_2 = edge(other)
        node.next_edges = (result, result_2)
        node.facts = (1,)
        looked_on(node)
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        no_inference_tensor(self)
        # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
        result_3 = pointwise_in_place(self, other)
        version_rises(self)
        written_is_tied(self, node)
        return finish_slow(operator_derivative, op, node, [self, other, 1], self)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    ...  # as above
    return self

# === add_conjugate
def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, Conjugate, ADInplaceOrView, AutogradCPU), no grad
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    # Conjugate: conjugate (backend fallback), dispatch/layers/lazy_bit.py
    if self._keyset & CONJUGATE:
        inner = excluding(AUTOGRAD)
        with within(inner): self_clone = clone_of(self)
    else:
        self_clone = self
    if other._keyset & CONJUGATE:
        inner_2 = excluding(AUTOGRAD)
        with within(inner_2): other_clone = clone_of(other)
    else:
        other_clone = other
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    result = pointwise_of_two(self_clone, other_clone, (metadata, metadata_2, int), (self_clone, other_clone, 1))
    return result

# === add_conjugate_in_place
def add__Tensor(self, other):
    # aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, Conjugate, ADInplaceOrView, AutogradCPU), no grad
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    no_inference_tensor(self)
    # Conjugate: conjugate (backend fallback), dispatch/layers/lazy_bit.py
    if self._keyset & CONJUGATE:
        inner = after(autograd_adinplaceorview)
        with within(inner): self_clone = clone_of(self)
    else:
        self_clone = self
    if other._keyset & CONJUGATE:
        inner_2 = after(autograd_adinplaceorview)
        with within(inner_2): other_clone = clone_of(other)
    else:
        other_clone = other
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    result = pointwise_in_place(self_clone, other_clone)
    if self_clone is not self:
        inner_3 = after(autograd_adinplaceorview)
        with within(inner_3): write_back_one(self, self_clone)
    version_rises(self)
    return self

# === add_in_place_inference
def add__Tensor(self, other):
    # aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView), no grad, inference
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
    result = pointwise_in_place(self, other)
    version_rises(self)
    return self

# === add_out
def add_out(self, other, out):
    # aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (self._autograd is not None and self._autograd.requires_grad)
        or (other._autograd is not None and other._autograd.requires_grad)
        or (out._autograd is not None and out._autograd.requires_grad)
    ):
        node = begin(op, [self, other, 1, out])
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        no_inference_tensor(out)
        # CPU: pointwise add (kernel), kernels/ops/arithmetic.py
        one_store = self._store is not None and self._store is out._store
        if self is out or one_store or self._array is out._array is not None:
            result = run_out_slow(self, other, 1, out)
        else:
            one_store_2 = other._store is not None and other._store is out._store
            if other is out or one_store_2 or other._array is out._array is not None:
                result = run_out_slow(self, other, 1, out)
            else:
                metadata, metadata_2 = looks_of_each(self, other)
                plan = plan_for(
                    metadata if metadata is metadata_2 else (metadata, metadata_2),
                    variant,
                    (metadata, metadata_2, int),
                    (self, other, 1),
                )
                into_get = plan.into.get
                interned = out._interned or metadata_of(out)
                loop = into_get(interned)
                if loop is None or out._array is None:
                    result = run_out_first(variant, plan, (self, other, 1, out))
                else:
                    out_array = out._array
                    out_offset = out._offset
                    array = array_of(self)
                    array_2 = array_of(other)
                    self_offset = self._offset
                    other_offset = other._offset
                    result = writes(loop, out_array, out_offset, array, self_offset, array_2, other_offset, out)
        version_rises(out)
        return out if node is None else finish(op, node, [self, other, 1, out], out)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    ...  # as above
    return out

# === add_over_a_users_layer
def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, Audit, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (self._autograd is not None and self._autograd.requires_grad)
        or (other._autograd is not None and other._autograd.requires_grad)
    ):
        node = begun()
        result = edge(self)
        result_2 = edge(other)
        node.next_edges = (result, result_2)
        node.facts = (1,)
        looked_on(node)
        # Audit: audit (backend fallback), test_snapshots.py
        inner = excluding(AUTOGRAD)
        with within(inner): noticed(op)
        with within(inner.excluding(mine_cell.cell_contents)): result_3 = add_code[(keyset & lower_cell.cell_contents)](self, other)
        new_result_of_several_is_tied(result_3, node, result_3 is self or result_3 is other)
        return finish_slow(operator_derivative, op, node, [self, other, 1], result_3)
    # Audit: audit (backend fallback), test_snapshots.py
    ...  # as above, inner_2 for inner
    with within(inner_2.excluding(mine_cell.cell_contents)): return add_code[(keyset_2 & lower_cell.cell_contents)](self, other)

# === add_under_a_users_fallback
def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, Fallback)
    # Fallback: fallback (backend fallback), test_snapshots.py
    if with_keyset_cell.cell_contents:
        dispatch_key_set = DispatchKeySet(keyset)
        return function(dispatch_key_set, op, self, other)
    return function(op, self, other)

# === add_over_a_layer_that_runs_boxed
def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, Unhandled, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (self._autograd is not None and self._autograd.requires_grad)
        or (other._autograd is not None and other._autograd.requires_grad)
    ):
        node = begun()
        result = edge(self)
        result_2 = edge(other)
        node.next_edges = (result, result_2)
        node.facts = (1,)
        looked_on(node)
        # Unhandled: careful (backend fallback), test_snapshots.py
        inner = excluding(AUTOGRAD)
        with within(inner): result_3 = boxed(op, keyset, [self, other, 1])
        if isinstance(result_3, TensorBase):
            new_result_of_several_is_tied(result_3, node, result_3 is self or result_3 is other)
        return finish_slow(operator_derivative, op, node, [self, other, 1], result_3)
    # Unhandled: careful (backend fallback), test_snapshots.py
    inner_2 = excluding(AUTOGRAD)
    with within(inner_2): return boxed(op, keyset_2, [self, other, 1])
