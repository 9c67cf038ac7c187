"""Schemas: the signature of an operator in PyTorch's language, its text, its parser, and the tags beside it.

Read in this order: schema, parser, text.
"""
