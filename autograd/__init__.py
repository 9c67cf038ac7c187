"""The graph that backward walks, and the engine that walks it."""
