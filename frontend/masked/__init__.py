"""`redispatch.masked`: reductions of the elements that a mask chooses, under PyTorch's module path."""

from .. import _names

__all__ = _names.take(
    globals(),
    {
        "._ops": """
            amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean median norm normalize prod
            softmax softmin std sum var
        """
    },
)
