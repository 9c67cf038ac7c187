"""cuBLAS as `kernels/cuda/blas.py` sees it, over a simulated GPU: matrices lie by columns; numpy multiplies."""

import ctypes
import sys
from contextlib import contextmanager
from types import ModuleType

import numpy as np

# of nvmath-python 1.0; test_blas.py compares them with those that are installed, if any are
SIGNATURES = {
    "get_property": "type",
    "create": "",
    "set_stream": "handle stream_id",
    "set_workspace": "handle workspace workspace_size_in_bytes",
    "gemm_strided_batched_ex": (
        "handle transa transb m n k alpha a atype lda stride_a b btype ldb stride_b beta c ctype ldc stride_c "
        "batch_count compute_type algo"
    ),
}
ELEMENTS = {0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 5: np.complex128, 14: np.uint16}


class FakeBlas:
    """The functions. `products` notes (type of the sums, whether a and b are transposed) of each."""

    def __init__(self, world):
        self.world, self.streams, self.workspaces, self.products = world, {}, {}, []

    def get_property(self, type):
        return 13

    def create(self):
        relaxed = self.world.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        assert not self.world.captures or self.world.mode == relaxed, "cublasCreate allocates, which a capture forbids"
        self.streams[len(self.streams) + 1] = None, self.world.current()
        return len(self.streams)

    def set_stream(self, handle, stream_id):
        self.streams[handle] = stream_id, self.world.current()

    def set_workspace(self, handle, workspace, workspace_size_in_bytes):
        self.workspaces[handle] = workspace

    def matrices(self, at, kind, turned, rows, columns, step, next_one, count):
        """[count, rows, columns] of the operand, which lies the other way round where it is turned."""
        tall, wide = (columns, rows) if turned else (rows, columns)
        assert step >= max(tall, 1), "CUBLAS_STATUS_INVALID_VALUE"
        item = np.dtype(ELEMENTS[kind])
        length = (count - 1) * next_one + (wide - 1) * step + tall
        flat = self.world.gpu.read(at, length * item.itemsize).view(item)
        if kind == 14:
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
        shape, strides = (count, tall, wide), (next_one, 1, step)
        found = np.lib.stride_tricks.as_strided(flat, shape, [s * flat.itemsize for s in strides])
        return found.swapaxes(1, 2) if turned else found

    def gemm_strided_batched_ex(
        self, handle, transa, transb, m, n, k, alpha, a, atype, lda, stride_a, b, btype, ldb, stride_b,
        beta, c, ctype, ldc, stride_c, batch_count, compute_type, algo,
    ):  # fmt: skip
        assert handle in self.workspaces and algo == -1 and atype == btype == ctype
        stream, device = self.streams[handle]
        assert self.world.current() == device, "CUBLAS_STATUS_EXECUTION_FAILED"
        wide = {70: ELEMENTS[atype]}.get(compute_type, np.complex64 if atype == 4 else np.float32)
        number = np.dtype(wide)
        scale, keep = (np.frombuffer(number_at(one, number.itemsize), number)[0] for one in (alpha, beta))
        self.products.append((compute_type, transa, transb))

        def step():
            left = self.matrices(a, atype, transa, m, k, lda, stride_a, batch_count).astype(wide)
            right = self.matrices(b, btype, transb, k, n, ldb, stride_b, batch_count).astype(wide)
            total = scale * (left @ right)
            if keep:
                total = total + keep * self.matrices(c, ctype, 0, m, n, ldc, stride_c, batch_count)
            assert ldc == m, "these results lie without gaps"
            flat = total.astype(wide).swapaxes(1, 2).reshape(batch_count, -1)
            if ctype == 14:
                bits = np.ascontiguousarray(flat).view(np.uint32)
                flat = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
            for one in range(batch_count):
                data = np.ascontiguousarray(flat[one].astype(ELEMENTS[ctype]))
                self.world.gpu.write(c + one * stride_c * data.itemsize, data.view(np.uint8))

        class Target:
            number = stream

        self.world.do(Target, step)


def number_at(address, nbytes):
    return ctypes.string_at(address, nbytes)


@contextmanager
def fake_blas(monkeypatch, world):
    """`nvmath.bindings` for the driver that is made inside."""
    bindings = ModuleType("nvmath.bindings")
    bindings.cublas = FakeBlas(world)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "nvmath", ModuleType("nvmath"))
        patch.setitem(sys.modules, "nvmath.bindings", bindings)
        yield bindings.cublas
