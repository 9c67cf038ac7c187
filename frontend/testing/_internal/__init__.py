"""PyTorch's private names for what its own tests are made of, as programs import them."""
