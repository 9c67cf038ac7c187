"""PyTorch's private package of its transforms, `torch._functorch`: all modules but `make_functional` are api.py."""
