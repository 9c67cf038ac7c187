"""Keys, schemas, tables, the boxed interpreter and the state that a call is routed by."""
