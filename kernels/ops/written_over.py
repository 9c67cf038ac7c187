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
    special,
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
clamp_ = arithmetic.clamp.inplace
clamp_max_ = arithmetic.clamp_max.inplace
clamp_min_ = arithmetic.clamp_min.inplace
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
acos_ = elementary.acos.inplace
acosh_ = elementary.acosh.inplace
asin_ = elementary.asin.inplace
asinh_ = elementary.asinh.inplace
atan_ = elementary.atan.inplace
atanh_ = elementary.atanh.inplace
cos_ = elementary.cos.inplace
cosh_ = elementary.cosh.inplace
sin_ = elementary.sin.inplace
sinh_ = elementary.sinh.inplace
tan_ = elementary.tan.inplace
tanh_ = elementary.tanh.inplace

FUNCTIONS = {name: value for name, value in globals().items() if name.endswith("_") and not name.startswith("_")}
