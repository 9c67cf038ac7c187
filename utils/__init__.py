"""Helpers with public module paths of their own, such as `_pytree` and `_python_dispatch`."""
