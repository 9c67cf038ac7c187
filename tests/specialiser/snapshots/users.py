# === users_kernel_without_derivative
def double(x, times):
    # lesson::double(Tensor x, float by=2., *, int? times=None) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: autograd (backend fallback), dispatch/layers/autograd.py
    if (x._autograd is not None and x._autograd.requires_grad):
        node = begin(op, [x, 2.0, times])
        # CPU: <lambda> (kernel), test_snapshots.py
        inner = excluding(AUTOGRAD)
        with within(inner): function_2 = function(x, times=times)
        if not isinstance(function_2, TensorBase):
            raise no_tensor(schema, function_2)
        return function_2 if node is None else finish(op, node, [x, 2.0, times], function_2)
    # CPU: <lambda> (kernel), test_snapshots.py
    ...  # as above, function_3 for function_2
    return function_3

# === users_kernel_with_a_keyset
def noted(x):
    # lesson::noted(Tensor x) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: <lambda> (autograd kernel), test_snapshots.py
    DispatchKeySet_2 = DispatchKeySet(keyset)
    function_2 = function(DispatchKeySet_2, x)
    if not isinstance(function_2, TensorBase):
        raise no_tensor(schema, function_2)
    return function_2

# === users_fallthrough
def quiet(x):
    # lesson::quiet(Tensor x) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # CPU: <lambda> (kernel), test_snapshots.py
    function_2 = function(x)
    if not isinstance(function_2, TensorBase):
        raise no_tensor(schema, function_2)
    return function_2

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
        with within(inner): function_2 = function(x, out)
        if not (isinstance(function_2, union_type) and len(function_2) == 2):
            raise wrong_results(schema, function_2)
        result = tuple(function_2)
        return result if node is None else finish(op, node, [x, out], result)
    # CPU: <lambda> (kernel), test_snapshots.py
    ...  # as above, function_3 for function_2
    return tuple(function_3)

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
        with within(inner): result_2 = chosen(x)
        if not (type(result_2) is Tensor and result_2._store is None and not (x is result_2)):
            result_2 = with_declared_aliases(op, chosen, (x,), {}, result_2)
        if not isinstance(result_2, TensorBase):
            raise no_tensor(schema, result_2)
        if isinstance(result_2, TensorBase):
            if (
                result_2._autograd is None
                and not (result_2 is x)
                and result_2._dtype.category >= 2
                and not node.ctx.non_differentiable
            ):
                outputs_known(node, result_2)
                tied(result_2, node)
                finish_context(node)
                return result_2
        return finish_slow(op, node, [x, 1.0], result_2)
    # CPU: bump (default backend kernel), test_snapshots.py
    ...  # as above, result_4 for result_2
    return result_4

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
