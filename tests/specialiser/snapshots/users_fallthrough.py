def quiet(x):
    # lesson::quiet(Tensor x) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # CPU: <lambda> (kernel), test_snapshots.py
    function_2 = function(x)
    if not isinstance(function_2, TensorBase):
        raise no_tensor(schema, function_2)
    return function_2
