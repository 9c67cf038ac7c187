"""`redispatch.masked`: reductions of the elements that a mask chooses, under PyTorch's module path."""

from .. import _names

__all__ = _names.take(
    globals(),
    {
        ".maskedtensor": "MaskedTensor as_masked_tensor is_masked_tensor masked_tensor",
        "._ops": """
            amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean median norm normalize prod
            softmax softmin std sum var _combine_input_and_mask
        """,
    },
)
