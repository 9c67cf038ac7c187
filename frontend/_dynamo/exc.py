"""Errors of the compiler, by PyTorch's names."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """An error of the compiler, not of the program."""


class Unsupported(TorchDynamoException):
    """A program that cannot be one graph, where that was asked for; the text says why, and where."""


class InvalidBackend(TorchDynamoException):
    """A backend of a name that there is not."""
