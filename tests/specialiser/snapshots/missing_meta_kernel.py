def shapeless(x):
    # lesson::shapeless(Tensor x) -> Tensor
    # DispatchKeySet(Meta, BackendSelect, ADInplaceOrView, AutogradMeta), no grad
    # AutogradMeta: autograd (backend fallback), dispatch/layers/autograd.py
    # Meta: meta (backend fallback), dispatch/layers/meta.py
    name = op_name()
    raise MissingKernelError((format(name) + ": attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel registered for this operator. Register one: library.register_fake('" + format('lesson::shapeless') + "')(function)"), op, Meta, keyset)
