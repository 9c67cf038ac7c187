def noted(x):
    # lesson::noted(Tensor x) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU)
    # AutogradCPU: <lambda> (autograd kernel), test_snapshots.py
    DispatchKeySet_2 = DispatchKeySet(keyset)
    function_2 = function(DispatchKeySet_2, x)
    if not isinstance(function_2, TensorBase):
        raise no_tensor(schema, function_2)
    return function_2
