"""Operators that work on the CPU and have no CUDA kernel yet, by reason.

The list only shrinks: test_table.py fails for one that works."""

NO_KERNEL = {
    "flash attention for the CPU is the CPU's alone; a device has a kernel of its own": """
        _scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward
    """,
}
MISSING = {name: reason for reason, names in NO_KERNEL.items() for name in names.split()}

UNDEFINED = "what lies in new memory is of undefined value"
LENGTHS = "lengths must be on the CPU, as PyTorch's"
NOT_ALIKE = {
    "empty.memory_format": UNDEFINED,
    "empty_strided": UNDEFINED,
    "empty_like": UNDEFINED,
    "empty_permuted": UNDEFINED,
    "new_empty": UNDEFINED,
    "new_empty_strided": UNDEFINED,
    "set_.source_Storage_storage_offset": "its storage stays on the CPU, and is refused",
    "get_device": "it tells where the tensor is",
    "_fused_sdp_choice": "it chooses among the kernels of a device",
    "_scaled_dot_product_efficient_attention": "the seed of what is not dropped is of undefined value",
    "_pack_padded_sequence": LENGTHS,
    "_pad_packed_sequence": LENGTHS,
    "_pack_padded_sequence_backward": LENGTHS,
    "lstm.data": LENGTHS,
    "gru.data": LENGTHS,
    "rnn_tanh.data": LENGTHS,
    "rnn_relu.data": LENGTHS,
    **dict.fromkeys(("randint_like.Tensor", "randint_like.Tensor_generator"), "its bound must be on the CPU"),
}
