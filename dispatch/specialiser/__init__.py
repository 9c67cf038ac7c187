"""The specialiser: a partial evaluator which makes straight-line code of the boxed interpreter and its layers.

Read in this order: values, residual, reads, evaluator, calls, specialise.
"""
