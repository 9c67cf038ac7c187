"""Entry points: the public function of an operator, from a caller's arguments to the stack of values.

Read in this order: signature, fast paths, entries.
"""
