"""Tensor, Storage, Size, dtypes, devices and views."""
