"""DeviceContext: tensors are made on a device where a call names none; what `with device("meta"):` puts in force.

    with DeviceContext("meta"):
        model = rd.nn.Linear(10**6, 10**6)      # the same as `with rd.device("meta"):`
    rd.set_default_device("meta")               # the same, until it is taken back

What it teaches: what a mode for *functions* is for. A factory has no tensor among its arguments, so no keyset could
say where to run it; an argument that was left out has to be filled in before there is a dispatcher. This mode knows a
list of functions, adds `device=` to their calls, and lets an explicit one be. Below, a dispatch mode sees the device
already there. How serious it is: for every day; it stands in the library itself, under the two calls above.

Source: PyTorch's torch.utils._device, whose names are in `redispatch.utils._device`. Read next: that file;
fake_tensor.py, by which tensors say that they are on a device that there is not.
"""

from redispatch.utils._device import DeviceContext

__all__ = ["DeviceContext"]

NOT_SUPPORTED: dict[str, str] = {}
