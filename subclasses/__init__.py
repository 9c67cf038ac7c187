"""Tensor subclasses, one idea per file, written as a user would: public names only."""
