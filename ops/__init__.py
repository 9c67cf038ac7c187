"""Operators, a family per file: schema, meta, scalar body and derivative stand together."""
