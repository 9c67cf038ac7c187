# === users_kernel_without_derivative
def double(x, times):
    # lesson::double(Tensor x, float by=2., *, int? times=None) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (x._autograd is not None and x._autograd.requires_grad):
        node = begin(op, [x, 2.0, times])
        # CPU: <lambda> (kernel), test_snapshots.py
        inner = excluding(AUTOGRAD)
        with within(inner): result = function(x, times=times)
        if not isinstance(result, TensorBase):
            raise no_tensor(schema, result)
        return result if node is None else finish(op, node, [x, 2.0, times], result)
    # CPU: <lambda> (kernel), test_snapshots.py
    ...  # as above, result_2 for result
    return result_2

# === users_kernel_with_a_keyset
def noted(x):
    # lesson::noted(Tensor x) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: <lambda> (autograd kernel), test_snapshots.py
    dispatch_key_set = DispatchKeySet(keyset)
    result = function(dispatch_key_set, x)
    if not isinstance(result, TensorBase):
        raise no_tensor(schema, result)
    return result

# === users_fallthrough
def quiet(x):
    # lesson::quiet(Tensor x) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # CPU: <lambda> (kernel), test_snapshots.py
    result = function(x)
    if not isinstance(result, TensorBase):
        raise no_tensor(schema, result)
    return result

# === missing_kernel
def absent(x):
    # lesson::absent(Tensor x) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), no grad
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    # CPU: _missing (missing), missing.py
    inner = excluding(AUTOGRAD)
    with within(inner): return boxed(op, keyset, [x])

# === missing_meta_kernel
def shapeless(x):
    # lesson::shapeless(Tensor x) -> Tensor
    # DispatchKeySet(Meta, BackendSelect, ADInplaceOrView, AutogradMeta), no grad
    # AutogradMeta: autograd (backend fallback), dispatch/layers/autograd.py
    # Meta: meta (backend fallback), dispatch/layers/layer.py
    raise no_fake(op, keyset, [x])

# === users_boxed_kernel
def counted(x, n):
    # lesson::counted(Tensor x, Tensor? y=None, int n=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), no grad
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    # CPU: counted (kernel), test_snapshots.py
    if n > 1:
        inner = excluding(AUTOGRAD)
        with within(inner): result = x.mul(n)
    else:
        inner_2 = excluding(AUTOGRAD)
        with within(inner_2): result = x.clone()
    return result

# === users_kernels_of_several_results
def both(x, out):
    # lesson::both(Tensor x, Tensor(a!)? out=None) -> (Tensor, Tensor(a!))
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (
        (x._autograd is not None and x._autograd.requires_grad)
        or (out._autograd is not None and out._autograd.requires_grad)
    ):
        node = begin(op, [x, out])
        # CPU: <lambda> (kernel), test_snapshots.py
        inner = excluding(AUTOGRAD)
        with within(inner): result = function(x, out)
        if not (isinstance(result, union_type) and len(result) == 2):
            raise wrong_results(schema, result)
        result_2 = tuple(result)
        return result_2 if node is None else finish(op, node, [x, out], result_2)
    # CPU: <lambda> (kernel), test_snapshots.py
    ...  # as above, result_3 for result
    return tuple(result_3)

# === custom_op_with_a_derivative
def bump(x):
    # lesson::bump(Tensor x, float by=1.) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (x._autograd is not None and x._autograd.requires_grad):
        node = node_class()
        result = edge(x)
        node.next_edges = (result,)
        node.outputs = ()
        node.sequence = next(SEQUENCE)
        node.hooks = None
        node.inputs = (True, False)
        node.counts = None
        begin_context(node, (x._autograd is not None and x._autograd.requires_grad, False))
        # CPU: bump (default backend kernel), test_snapshots.py
        chosen = origin if self._disabled and device_type_cell.cell_contents in self._disabled else origin
        inner = after(autograd)
        with within(inner): x_chosen = chosen(x)
        if not (type(x_chosen) is Tensor and x_chosen._store is None and not (x is x_chosen)):
            x_chosen = with_declared_aliases(op, chosen, (x,), {}, x_chosen)
        if not isinstance(x_chosen, TensorBase):
            raise no_tensor(schema, x_chosen)
        if isinstance(x_chosen, TensorBase):
            if (
                x_chosen._autograd is None
                and not (x_chosen is x)
                and x_chosen._dtype.category >= 2
                and not node.ctx.non_differentiable
            ):
                outputs_known(node, x_chosen)
                tied(x_chosen, node)
                finish_context(node)
                return x_chosen
        return finish_slow(op, node, [x, 1.0], x_chosen)
    # CPU: bump (default backend kernel), test_snapshots.py
    ...  # as above, x_chosen_2 for x_chosen
    return x_chosen_2

# === custom_op_that_writes
def fill(x, value):
    # lesson::fill(Tensor(a0!) x, float value) -> ()
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (x._autograd is not None and x._autograd.requires_grad):
        node = begin(op, [x, value])
        # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
        no_inference_tensor(x)
        # CPU: fill (default backend kernel), test_snapshots.py
        chosen = origin if self._disabled and device_type_cell.cell_contents in self._disabled else origin
        inner = after(autograd_adinplaceorview)
        with within(inner): result = chosen(x, value)
        if not (type(result) is Tensor and (result._store is None and (not (x is result or value is result)))):
            result = with_declared_aliases(op, chosen, (x, value), {}, result)
        check_nothing(schema, result)
        version_rises(x)
        return None if node is None else finish(op, node, [x, value], None)
    # ADInplaceOrView: ad_inplace_or_view (kernel), dispatch/layers/ad_inplace_or_view.py
    ...  # as above
    return None
