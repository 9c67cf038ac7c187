"""PyTorch's place for what traces operators: proxy_tensor.py."""
