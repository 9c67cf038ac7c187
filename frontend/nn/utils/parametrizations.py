"""Parametrizations of weights: weight_norm, spectral_norm, orthogonal.

weight_norm learns a length and a direction, spectral_norm keeps the largest singular value at 1. orthogonal keeps
columns, or rows of a wide weight, orthonormal (unitary where it is complex). Its parameter is a matrix without
constraint, of which
three maps make an orthogonal one:

    matrix_exp    e^A for the skew A = L - Lᴴ, L the lower triangle
    cayley        (I - A/2)⁻¹ (I + A/2) for the same A
    householder   the product of the reflections whose vectors are the columns below the diagonal

With `use_trivialization`, the result is multiplied from the left by an orthogonal matrix of its own, `base`: then any
orthogonal matrix can be assigned to the weight, which becomes the base, and training goes on around it.

Sources: Salimans and Kingma, "Weight normalization" (2016); Miyato et al., "Spectral normalization for generative
adversarial networks" (2018); Lezcano-Casado and Martínez-Rubio, "Cheap orthogonal constraints in neural networks"
(2019), for the maps; Lezcano-Casado, "Trivializations for gradient-based optimization on manifolds" (2019), for the
base; Golub and Van Loan, "Matrix computations", 5.1, for reflections.
"""

from __future__ import annotations

from typing import Any

from redispatch.autograd import no_grad
from redispatch.dispatch.tensor import Tensor, finfo
from redispatch.kernels.ops import copying, creation, random, shape
from redispatch.kernels.ops.matrix_functions import linalg_matrix_exp as matrix_exp
from redispatch.kernels.ops.solving import linalg_solve as solve
from redispatch.kernels.ops.spectra import geqrf
from redispatch.kernels.ops.spectra import linalg_householder_product as householder_product

from .. import functional
from ..linear import _Convolution
from ..module import Module
from . import parametrize

__all__ = ["_Orthogonal", "_SpectralNorm", "_WeightNorm", "orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    """v times g / |v|, where |v| is the norm of each slice along `dim`, or of all of v for -1."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_v * (weight_g / length(weight_v, self.dim))

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return length(weight, self.dim), weight


def length(v: Any, dim: int) -> Any:
    """The norms of the slices along `dim`, the other dimensions left with size 1; of all of `v` for -1."""
    if dim == -1:
        return v.norm(2)
    return v.norm(2, [d for d in range(v.dim()) if d != dim % v.dim()], keepdim=True)


def weight_norm(module: Module, name: str = "weight", dim: int = 0) -> Module:
    """Learns length and direction of a weight apart: `parametrizations.<name>.original0` and `original1`."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Checkpoints of the older function call them `<name>_g` and `<name>_v`."""
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for number, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{number}"] = state_dict.pop(key)

    module.register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A weight over its largest singular value, which power iteration follows: a step in each training call."""

    _u: Any
    _v: Any

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got n_power_iterations=" + str(n_power_iterations)
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight)
            for buffer, size in zip(("_u", "_v"), matrix.shape, strict=True):
                values = matrix.new_empty(size).normal_(0, 1)
                self.register_buffer(buffer, functional.normalize(values, dim=0, eps=eps).detach())
            self._iterate(matrix, 15)

    def _as_matrix(self, weight: Any) -> Any:
        return weight.movedim(self.dim, 0).flatten(1)

    def _iterate(self, matrix: Any, count: int) -> None:
        """Turns u and v towards the first singular vectors."""
        with no_grad():
            for _ in range(count):
                self._u.copy_(functional.normalize(matrix.mv(self._v), dim=0, eps=self.eps))
                self._v.copy_(functional.normalize(matrix.t().mv(self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return functional.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # Copies: backward of this call must not see what the next one makes of them.
        u, v = self._u.clone(), self._v.clone()
        return weight / u.dot(matrix.mv(v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides a weight by its largest singular value; `dim` is that of its outputs.

    Errors: ValueError for a name that is no tensor.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, _Convolution) and module.transposed else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


def by_exponential(x: Any) -> Any:
    """e^A, the first columns of it where `x` is tall."""
    return first_columns(matrix_exp(skew(x)), x)


def by_cayley(x: Any) -> Any:
    """(I - A/2)⁻¹ (I + A/2), the first columns of it."""
    a = skew(x)
    one = identity(a)
    return first_columns(solve(one - a / 2, one + a / 2), x)


def by_reflections(x: Any) -> Any:
    """H₁ H₂ ... Hₖ, the first columns of it, with the signs on the diagonal of `x`, which is not trained.

    Hᵢ = I - τ v vᵀ, where v has a 1 at i and below it column i of `x`, and τ = 2 / |v|².
    """
    vectors = x.tril(-1)
    tau = 2 / (1 + (vectors * vectors).sum(-2))
    signs = x.detach().diagonal(dim1=-2, dim2=-1).sign()
    return householder_product(vectors, tau) * signs.unsqueeze(-2)


MAPS = {"matrix_exp": by_exponential, "cayley": by_cayley, "householder": by_reflections}


def skew(x: Any) -> Any:
    """L - Lᴴ of the lower triangle of a tall matrix, filled up with zeros to a square one."""
    missing = x.size(-2) - x.size(-1)
    lower = x.tril()
    if missing:
        lower = shape.cat([lower, lower.new_zeros((*x.shape[:-1], missing))], dim=-1)
    return lower - lower.mH


def first_columns(q: Any, x: Any) -> Any:
    """The first columns of `q`, as many as `x` has."""
    return q if q.shape == x.shape else q[..., : x.size(-1)]


def identity(like: Any) -> Any:
    return creation.eye(like.size(-1), dtype=like.dtype, device=like.device)


def is_orthogonal(q: Any) -> bool:
    """Returns whether qᴴ q is the identity, up to rounding."""
    tolerance = 10 * q.size(-2) * finfo(q.dtype).eps
    product = q.mH @ q
    return copying.allclose(product, identity(product).expand_as(product), atol=tolerance)


def orthogonalised(a: Any) -> Any:
    """The factor Q of a square A = QR, for the R whose diagonal is not negative: A itself where that is orthogonal."""
    reflections, tau = geqrf(a)
    return householder_product(reflections, tau) * reflections.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """The parametrization that `orthogonal` registers.

    Shapes: matrices, or batches of them; wide ones are made of tall ones, transposed.
    """

    base: Any

    def __init__(self, weight: Any, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        wide = X.size(-2) < X.size(-1)
        q = MAPS[self.orthogonal_map](X.mT if wide else X)
        if self.use_trivialization:
            q = self.base @ q
        return q.mT if wide else q

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:
        """A parameter that gives `Q`, or, where `Q` is not orthogonal, the orthogonal matrix that its QR factors hold.

        With a base, that becomes the base, and the parameter -I, of which every map makes the identity.
        Errors: ValueError for another shape; NotImplementedError without a base, unless by reflections.
        """
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.size(-2) < Q.size(-1)
        tall = Q.mT if wide else Q
        if not self.use_trivialization:
            found = self._reflections_of(tall)
            return found.mT if wide else found
        self.base = completed(tall)
        start = creation.zeros_like(Q)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1)
        return start

    def _reflections_of(self, q: Any) -> Any:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        found, tau = geqrf(q)
        diagonal = found.diagonal(dim1=-2, dim2=-1).sign_()
        # LAPACK leaves out the reflections that it does not need, τ = 0; ours is then that of a unit vector, a sign.
        diagonal[tau == 0] *= -1
        return found


def completed(q: Any) -> Any:
    """A square orthogonal matrix that begins with the columns of `q`, or with those that it is made orthogonal to."""
    missing = q.size(-2) - q.size(-1)
    if missing:
        more = random.randn((*q.shape[:-1], missing), dtype=q.dtype, device=q.device)
        return orthogonalised(shape.cat([q, more], dim=-1))
    return q.clone() if is_orthogonal(q) else orthogonalised(q)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Makes a weight orthogonal and keeps it so: a matrix, or a batch, tall, wide or square. Returns the module.

    orthogonal_map: "matrix_exp", "cayley" or "householder"; None chooses the exponential for square and complex
    weights, else reflections.
    Errors: ValueError for a name that is no tensor, a vector, another map, and complex reflections.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module
