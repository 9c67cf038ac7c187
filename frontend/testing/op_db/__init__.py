"""The table: an OpInfo for every operator of the library.

`op_db` is the list; NOT_COVERED names the operators that stand outside it, and why. What is true of an operator is true
of its second names and of the copies that its view makes, so those need no entry. Read next: common.py, tests/op_db/.
"""

from redispatch.dispatch import OPERATORS
from redispatch.kernels.declare.declare import declarations

from ..op_info import OpInfo
from .activations import ACTIVATIONS
from .copying import COPYING
from .creation import CREATION, WINDOWS
from .foreach import on_lists
from .fourier import FOURIER, TRANSFORMS
from .images import IMAGES
from .indexing import INDEXING
from .losses import LOSSES
from .matrices import MATRICES
from .networks import NETWORKS
from .pointwise import POINTWISE, SPECIAL
from .reductions import REDUCTIONS
from .sorting import ORDERS
from .views import VIEWS

op_db = [*POINTWISE, *ACTIVATIONS, *CREATION, *COPYING, *REDUCTIONS, *ORDERS, *MATRICES, *NETWORKS, *IMAGES]
op_db += [*INDEXING, *VIEWS, *LOSSES, *FOURIER]
# Families whose members are written over the same few operators are many, and alike.
op_db += [info.but(info.name, alike=True) for info in (*TRANSFORMS, *SPECIAL, *WINDOWS)]


def copy_of(info: OpInfo) -> str:
    """ "aten::slice_copy.Tensor" for slice.Tensor."""
    stem, dot, overload = info.name.partition(".")
    return f"{stem}_copy{dot}{overload}"


WRITTEN = {info.op: info for info in op_db}
DERIVED = {
    made.functional.qualified_name: WRITTEN[made.alias_of.functional] for made in declarations() if made.alias_of
}
DERIVED |= {copy_of(info): info for info in op_db if info.op.schema.returns and copy_of(info) in OPERATORS}
op_db += [
    info.but(name, function=None, representative=False, alike=True)
    for name, info in DERIVED.items()
    if OPERATORS[name] not in WRITTEN
]
op_db += on_lists({op: info for info in op_db for op in (info.op, info.made_functional) if op})

# Operators that no OpInfo covers: qualified name -> the reason. tests/op_db/test_coverage.py keeps this list short.
NOT_COVERED: dict[str, str] = {}

__all__ = ["NOT_COVERED", "op_db"]
