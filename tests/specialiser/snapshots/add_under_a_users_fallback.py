def add_Tensor(self, other):
    # aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    # DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU, Fallback)
    # Fallback: fallback (backend fallback), test_snapshots.py
    if with_keyset_cell.cell_contents:
        DispatchKeySet_2 = DispatchKeySet(keyset)
        return function(DispatchKeySet_2, op, self, other)
    return function(op, self, other)
