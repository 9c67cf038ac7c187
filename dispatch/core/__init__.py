"""The core of the dispatcher: keys, keysets, tables, operators, the state, and the interpreter that carries every call.

It names no operator, no layer and no mode. Read in this order: interpreter, keyset, key, table, operator, registry,
boxing, state; then ../rules.py (what layers are told about operators) and a layer in ../layers/.
"""
