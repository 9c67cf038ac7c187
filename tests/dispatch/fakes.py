"""Tensors, devices and operators without any arithmetic, so that the dispatcher is tested by itself."""

from redispatch.dispatch import TensorBase, define, impl, keyset

CPU_KEYS = keyset("CPU", "ADInplaceOrView", "AutogradCPU", "AutocastCPU")
META_KEYS = keyset("Meta", "ADInplaceOrView", "AutogradMeta")
PYTHON_KEYS = keyset("Python", "PythonTLSSnapshot")


class Fake(TensorBase):
    """A tensor by its keyset alone."""

    def __init__(self, keys=CPU_KEYS, name="fake"):
        self._keyset = keys
        self._counter = [0]
        self._autograd = None
        self.name = name

    def _summary(self):
        return self.name

    def __repr__(self):
        return f"<{self.name}>"


def operator(schema, **kernels):
    """A new operator; `CPU=function` and the like register kernels, `function(*args, **kwargs)`."""
    op, _ = define(schema, place="test")
    for key, function in kernels.items():
        impl(op, key, function, convention="python", place=f"{key} of the test")
    return op
