"""Functions that write over their first argument: `redispatch.abs_(x)` is `x.abs_()`.

PyTorch has such a function for some operators, and for others the method only.
"""

from . import (
    activations,
    aliases,
    arithmetic,
    binary,
    elementary,
    float_parts,
    indexing,
    linalg,
    number_forms,
    special,
    trigonometry,
)

logit_ = activations.logit.inplace
relu_ = activations.relu.inplace
sigmoid_ = activations.sigmoid.inplace
arccos_ = aliases.arccos.inplace
arccosh_ = aliases.arccosh.inplace
arcsin_ = aliases.arcsin.inplace
arcsinh_ = aliases.arcsinh.inplace
arctan_ = aliases.arctan.inplace
arctanh_ = aliases.arctanh.inplace
clip_ = aliases.clip.inplace
fix_ = aliases.fix.inplace
negative_ = aliases.negative.inplace
square_ = arithmetic.square.inplace
abs_ = elementary.abs.inplace
ceil_ = elementary.ceil.inplace
exp_ = elementary.exp.inplace
exp2_ = elementary.exp2.inplace
expm1_ = elementary.expm1.inplace
floor_ = elementary.floor.inplace
log_ = elementary.log.inplace
log10_ = elementary.log10.inplace
log1p_ = elementary.log1p.inplace
log2_ = elementary.log2.inplace
neg_ = elementary.neg.inplace
reciprocal_ = elementary.reciprocal.inplace
rsqrt_ = elementary.rsqrt.inplace
sqrt_ = elementary.sqrt.inplace
trunc_ = elementary.trunc.inplace
index_put_ = indexing.index_put.inplace
addmv_ = linalg.addmv.inplace
clamp_ = number_forms.clamp.inplace
clamp_max_ = number_forms.clamp_max.inplace
clamp_min_ = number_forms.clamp_min.inplace
gcd_ = binary.gcd.inplace
lcm_ = binary.lcm.inplace
xlogy_ = binary.xlogy.inplace
deg2rad_ = float_parts.deg2rad.inplace
frac_ = float_parts.frac.inplace
ldexp_ = float_parts.ldexp.inplace
nan_to_num_ = float_parts.nan_to_num.inplace
rad2deg_ = float_parts.rad2deg.inplace
round_ = float_parts.round.inplace
sinc_ = float_parts.sinc.inplace
celu_ = activations.celu.inplace
selu_ = activations.selu.inplace
threshold_ = activations.threshold.inplace
erf_ = special.erf.inplace
erfc_ = special.erfc.inplace
acos_ = trigonometry.acos.inplace
acosh_ = trigonometry.acosh.inplace
asin_ = trigonometry.asin.inplace
asinh_ = trigonometry.asinh.inplace
atan_ = trigonometry.atan.inplace
atanh_ = trigonometry.atanh.inplace
cos_ = trigonometry.cos.inplace
cosh_ = trigonometry.cosh.inplace
sin_ = trigonometry.sin.inplace
sinh_ = trigonometry.sinh.inplace
tan_ = trigonometry.tan.inplace
tanh_ = trigonometry.tanh.inplace

FUNCTIONS = {name: value for name, value in globals().items() if name.endswith("_") and not name.startswith("_")}
