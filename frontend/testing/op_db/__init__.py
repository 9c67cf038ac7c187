"""The table: an OpInfo for every operator of the library, a file per family, as in kernels/ops/.

`op_db` is the list; NOT_COVERED names the operators that stand outside it, and why. Read next: tests/op_db/.
"""

from .aliases import ALIASES
from .arithmetic import ARITHMETIC
from .arrangements import ARRANGEMENTS
from .attention import ATTENTION
from .batch_norm import BATCH_NORM
from .comparison import COMPARISON
from .complex_numbers import COMPLEX_NUMBERS
from .contractions import CONTRACTIONS, DIAGONALS
from .convolution import CONVOLUTION
from .copying import COPYING
from .creation import CREATION
from .distances import DISTANCES, SIZES
from .elementary import ELEMENTARY
from .fake_quantize import FAKE_QUANTIZE
from .fft import FFT
from .fourier import EMBEDDING_BAG, FOURIER
from .fused_layers import FUSED_LAYERS
from .fused_updates import FUSED_UPDATES
from .images import FOLDING, GRIDS, SHUFFLES
from .indexing import INDEXING
from .inquiries import INQUIRIES
from .linalg import LINALG
from .loss import LOSS
from .loss_scaling import LOSS_SCALING
from .margin_losses import MARGIN_LOSSES
from .matrices import MATRICES
from .matrix_functions import MATRIX_FUNCTIONS, PSEUDO_INVERSES
from .max_pooling import MAX_POOLING
from .norms import NORMS
from .number_forms import BLENDS, NUMBER_FORMS
from .older_forms import OLDER_FORMS
from .packing import PACKING
from .pair_losses import PAIR_LOSSES
from .pairs import PAIRS
from .parts import PARTS
from .pooling import POOLING
from .random import RANDOM
from .ranges import RANGES, WINDOWS
from .rectifiers import RECTIFIERS
from .recurrent import RECURRENT
from .reductions import EXTREMES, MOMENTS, REDUCTIONS, SCANS
from .replacing import REPLACING
from .resampling import PADDING, UPSAMPLING
from .searching import SEARCHING
from .shape import SHAPE
from .soft_rectifiers import SOFT_RECTIFIERS
from .sorting import SORTING
from .special import SPECIAL
from .spectra import ORTHOGONAL, SPECTRA
from .statistics import BILINEAR, HISTOGRAMS, INTEGRALS, SEGMENTS, STATISTICS
from .view_copies import VIEW_COPIES
from .views import VIEWS

op_db = [
    *ARITHMETIC,
    *COMPARISON,
    *ELEMENTARY,
    *SOFT_RECTIFIERS,
    *CREATION,
    *COPYING,
    *REDUCTIONS,
    *SCANS,
    *EXTREMES,
    *MOMENTS,
    *LINALG,
    *MATRICES,
    *ORTHOGONAL,
    *SPECTRA,
    *NORMS,
    *PSEUDO_INVERSES,
    *MATRIX_FUNCTIONS,
    *CONVOLUTION,
    *ATTENTION,
    *POOLING,
    *MAX_POOLING,
    *PADDING,
    *UPSAMPLING,
    *GRIDS,
    *FOLDING,
    *SHUFFLES,
    *INDEXING,
    *VIEWS,
    *SHAPE,
    *RANDOM,
    *LOSS,
    *PAIR_LOSSES,
    *MARGIN_LOSSES,
    *SORTING,
    *BLENDS,
    *NUMBER_FORMS,
    *RECTIFIERS,
    *RECURRENT,
    *REPLACING,
    *DISTANCES,
    *SIZES,
    *BATCH_NORM,
    *EMBEDDING_BAG,
    *FOURIER,
    *FAKE_QUANTIZE,
    *FUSED_LAYERS,
    *FUSED_UPDATES,
    *LOSS_SCALING,
    *SEARCHING,
    *PAIRS,
    *CONTRACTIONS,
    *DIAGONALS,
    *COMPLEX_NUMBERS,
    *STATISTICS,
    *HISTOGRAMS,
    *INTEGRALS,
    *SEGMENTS,
    *BILINEAR,
    *ARRANGEMENTS,
    *INQUIRIES,
    *OLDER_FORMS,
    *PACKING,
    *PARTS,
    *RANGES,
]

# Families whose members are made by one rule, or written over the same few operators: many, and alike.
op_db += [info.but(info.name, alike=True) for info in (*VIEW_COPIES, *ALIASES, *FFT, *SPECIAL, *WINDOWS)]

# Operators that no OpInfo covers: qualified name -> the reason. tests/op_db/test_coverage.py keeps this list short.
NOT_COVERED: dict[str, str] = {}

__all__ = ["NOT_COVERED", "op_db"]
