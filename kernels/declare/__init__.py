"""Declarations: the means by which an operator states its schema, shapes, body, derivative and forms in one place.

Read in this order: declare, structured, pointwise, planned, several, public; then what users declare with:
infer_schema, custom_op, scalar_functions, from_scalar.
"""
