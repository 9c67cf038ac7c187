"""PyTorch's private names for its own modes. The modes are in modes/."""
