"""PyTorch's functions in C++ under another name of their module: `_VF.lstm` is `_C._VariableFunctions.lstm`."""

from redispatch._C._function_modules import functions_of

__getattr__ = functions_of("", "")
