"""The derivatives of the functions of `math`: what scalar_functions.py differentiates calls by.

A row has the function with its parameters, and for each of these the slope, in the text of a scalar function like a
user's own, which so has a derivative itself. () is for functions that are constant piece by piece.
"""


def square(x):
    """x², for slopes in which an expensive function stands twice."""
    return x * x


TEXTS: dict[str, tuple[str, ...]] = {
    "exp(x)": ("math.exp(x)",),
    "expm1(x)": ("math.exp(x)",),
    "exp2(x)": ("math.log(2.0) * math.exp2(x)",),
    "log(x)": ("1.0 / x",),
    "log2(x)": ("1.0 / (x * math.log(2.0))",),
    "log10(x)": ("1.0 / (x * math.log(10.0))",),
    "log1p(x)": ("1.0 / (1.0 + x)",),
    "sqrt(x)": ("0.5 / math.sqrt(x)",),
    "sin(x)": ("math.cos(x)",),
    "cos(x)": ("-math.sin(x)",),
    "tan(x)": ("1.0 + square(math.tan(x))",),
    "asin(x)": ("1.0 / math.sqrt(1.0 - x * x)",),
    "acos(x)": ("-1.0 / math.sqrt(1.0 - x * x)",),
    "atan(x)": ("1.0 / (1.0 + x * x)",),
    "sinh(x)": ("math.cosh(x)",),
    "cosh(x)": ("math.sinh(x)",),
    "tanh(x)": ("1.0 - square(math.tanh(x))",),
    "asinh(x)": ("1.0 / math.sqrt(x * x + 1.0)",),
    "acosh(x)": ("1.0 / math.sqrt(x * x - 1.0)",),
    "atanh(x)": ("1.0 / (1.0 - x * x)",),
    "erf(x)": ("2.0 / math.sqrt(math.pi) * math.exp(-x * x)",),
    "erfc(x)": ("-2.0 / math.sqrt(math.pi) * math.exp(-x * x)",),
    "abs(x)": ("1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0)",),
    "fabs(x)": ("1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0)",),
    "atan2(y, x)": ("x / (x * x + y * y)", "-y / (x * x + y * y)"),
    "pow(x, y)": ("0.0 if y == 0.0 else y * x ** (y - 1.0)", "0.0 if x == 0.0 else x**y * math.log(x)"),
    "degrees(x)": ("180.0 / math.pi",),
    "radians(x)": ("math.pi / 180.0",),
    "hypot(x, y)": ("x / math.hypot(x, y)", "y / math.hypot(x, y)"),
    "copysign(x, y)": ("math.copysign(1.0, x) * math.copysign(1.0, y)", "0.0"),
    "fmod(x, y)": ("1.0", "-math.trunc(x / y)"),
    "gcd(x, y)": (),
    "floor(x)": (),
    "ceil(x)": (),
    "trunc(x)": (),
    "isfinite(x)": (),
    "isinf(x)": (),
    "isnan(x)": (),
}
HEADS = {head.partition("(")[0]: head for head in TEXTS}  # "atan2" -> "atan2(y, x)"
