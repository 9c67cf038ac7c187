"""Import paths from before the rooms of today: `redispatch.ops.pointwise` is `redispatch.kernels.declare.pointwise`.

Whoever asks for a former path gets the module that stands at the present one, the very same object.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

# a former package -> the packages of today that have its modules
MOVED = {
    "redispatch.autograd": ("redispatch.dispatch.autograd",),
    "redispatch.dispatch": (
        "redispatch.dispatch.core",
        "redispatch.dispatch.schema",
        "redispatch.dispatch.entry",
        "redispatch.dispatch.protocols",
        "redispatch.dispatch.inspection",
        "redispatch.dispatch.specialiser",
    ),
    "redispatch.func": ("redispatch.dispatch.transforms", "redispatch.kernels"),
    "redispatch.func.batching": ("redispatch.kernels.batching",),
    "redispatch.kernels": (
        "redispatch.kernels.engine",
        "redispatch.kernels.cpu",
        "redispatch.kernels.maths",
        "redispatch.dispatch.tensor",
    ),
    "redispatch.ops": ("redispatch.kernels.ops", "redispatch.kernels.declare"),
    "redispatch.tensor": ("redispatch.dispatch.tensor",),
    "redispatch.utils.data._utils": ("redispatch.utils.data",),
}

# a package -> its modules of today -> former modules, PyTorch's among them, that are part of them
JOINED = {
    "redispatch._functorch": {
        "api": (
            "apis autograd_function batch_norm_replacement eager_transforms functional_call predispatch pyfunctorch "
            "utils vmap"
        ),
    },
    "redispatch._higher_order_ops": {
        "control_flow": "associative_scan body cond map scan while_loop",
        "effects": "print",
        "regions": "foreach_map hints_wrap invoke_subgraph local_map strict_mode",
        "wrap": "auto_functionalize out_dtype",
    },
    "redispatch.amp": {
        "autocast_mode": "custom functions",
    },
    "redispatch.array_api": {
        "arrays": "creation manipulation",
        "linalg": "products",
        "promotion": "data_types info",
        "reductions": "searching statistics",
    },
    "redispatch.backend": {
        "register": "device_module methods",
    },
    "redispatch.demo": {
        "story": "tour",
        "train": "activation data model",
    },
    "redispatch.dispatch": {
        "keys": "keyset_class own_keys",
        "rules": "places",
    },
    "redispatch.dispatch.autograd": {
        "accumulate": "grad_dtype",
        "derivative": "no_derivative",
        "engine": "current_pass",
        "formulas": "conjugate",
        "forward": "transposition",
        "grad_level": "pullback",
        "graph": "mutation saved_hooks",
        "history": "copy_slices",
        "hooks": "watch",
        "jvp_level": "duals",
        "node": "needs",
        "operator_node": "straight",
    },
    "redispatch.dispatch.inspection": {
        "frames": "stops",
        "trace": "seen",
    },
    "redispatch.dispatch.layers": {
        "layer": "meta not_yet",
        "lazy_bit": "conjugate negative zero_tensor",
    },
    "redispatch.dispatch.protocols": {
        "override": "conventions",
    },
    "redispatch.dispatch.schema": {
        "schema": "tags",
    },
    "redispatch.dispatch.specialiser": {
        "reads": "kept",
        "site": "memo",
    },
    "redispatch.dispatch.tensor": {
        "copies": "swapping",
        "devices": "device_kinds",
        "dtypes": "limits promotion",
        "factory": "pinned",
        "metadata": "record size",
        "operand": "overlap target",
        "printing": "notebook",
        "storage": "shared_memory",
    },
    "redispatch.dispatch.transforms": {
        "functionalize": "functionalize_api regions",
        "reverse": "arguments forward",
        "vmap_level": "function_rule",
    },
    "redispatch.distributions": {
        "bernoulli": "binary binomial continuous_bernoulli geometric negative_binomial poisson",
        "categorical": "mixture_same_family multinomial one_hot_categorical relaxed_bernoulli relaxed_categorical",
        "cauchy": "half_cauchy laplace studentT",
        "distribution": "exp_family",
        "exponential": "generalized_pareto gumbel kumaraswamy pareto uniform weibull",
        "gamma": "beta chi2 dirichlet fishersnedecor inverse_gamma",
        "normal": "half_normal log_normal logistic_normal lowrank_multivariate_normal multivariate_normal",
        "transformed_distribution": "independent",
    },
    "redispatch.fx": {
        "_symbolic_trace": "wrapping",
        "codegen": "_pytree",
        "node": "immutable_collections",
        "proxy": "annotate",
    },
    "redispatch.kernels.batching": {
        "by_dims": "reductions",
        "fallback": "refused",
        "images": "attention",
        "losses": "sequences",
        "norms": "batch_norm layer_norm",
        "pointwise": "writes",
    },
    "redispatch.kernels.cpu": {
        "normalize": "softmax",
        "resample": "grid_sample",
        "scan": "argreduce",
    },
    "redispatch.kernels.engine": {
        "compile": "assembly",
        "convert": "order",
    },
    "redispatch.kernels.maths.vecmath": {
        "exponential": "hyperbolic",
    },
    "redispatch.kernels.ops": {
        "activations": "gates",
        "aliases": "written_over",
        "arithmetic": "number_forms",
        "binary": "ternary",
        "complex_numbers": "polar",
        "convolution": "convolution_forms older_forms",
        "distributions": "gamma_draws",
        "elementary": "trigonometry",
        "embedding": "embedding_bag",
        "fft": "fourier",
        "fused_attention": "attention_choice",
        "fused_layers": "bilinear",
        "fused_updates": "loss_scaling",
        "grid_sampling": "sampled_by_gathers",
        "index_functions": "replacing",
        "inquiries": "dtype_questions routes sizes",
        "linalg": "added_products contractions",
        "loss": "ctc",
        "lu": "determinants",
        "max_pooling": "unpooling",
        "normalization": "softmax",
        "padding": "constant_pad",
        "pooling": "mean_pooling",
        "rearrange": "arrangements diagonals shuffles",
        "resampling": "axis_maps",
        "scans": "segments",
        "scatter_gather": "scatter_reduce",
        "solving": "cholesky",
        "sorting": "searching",
        "spectra": "low_rank orthogonal",
        "statistics": "histograms",
        "stft": "windows",
    },
    "redispatch.nn": {
        "activation": "piecewise rectifiers",
        "attention": "attention_functions attention_kernels",
        "containers": "parameter_containers",
        "dropout": "dropouts",
        "images": "padding shuffles upsampling",
        "linear": "convolution distance flatten",
        "loss": "_reduction adaptive loss_functions",
        "normalization": "batch_norm response_norm",
        "parallel": "parallel.data_parallel parallel.parallel_apply parallel.replicate parallel.scatter_gather",
        "parameter": "conversion factory uninitialized",
        "pooling": "pools",
        "sparse": "bags",
        "tree": "typename",
        "utils.parametrizations": "utils.orthogonal",
    },
    "redispatch.nn.utils": {
        "fusion": "init memory_format",
        "weight_norm": "spectral_norm",
    },
    "redispatch.optim": {
        "adagrad": "adadelta adafactor rmsprop rprop",
        "adam": "adamax adamw nadam radam sparse_adam",
        "lbfgs": "line_search",
        "sgd": "asgd muon",
    },
    "redispatch.optim.lr_scheduler": {
        "compound": "plateau",
        "scheduler": "simple",
    },
    "redispatch.serialization": {
        "names": "rebuild",
        "writer": "api archive",
    },
    "redispatch.testing": {
        "subclass_check": "mode_check",
    },
    "redispatch.utils": {
        "checkpoint": "_selective_checkpoint",
        "flop_counter": "flop_formulas",
        "text": "_terminal text_table",
        "type_names": "symbolic",
    },
    "redispatch.utils.data": {
        "dataloader": "collate pin_memory worker",
        "dataset": "sampler",
    },
    "redispatch.viz": {
        "graph_picture": "graph_layout graph_model graph_text",
        "tables": "chrome notebook page",
    },
}
# PyTorch's path of a module -> where the module stands; the stub of this name, which type checkers read, is generated
ALIASES = {
    "redispatch._vmap_internals": "redispatch._functorch.api",
    "redispatch._guards": "redispatch.modes.fake.context",
    "redispatch._library.custom_ops": "redispatch.kernels.declare.custom_op",
    "redispatch._subclasses.fake_tensor": "redispatch.modes.fake_tensor",
    "redispatch._subclasses.fake_utils": "redispatch.modes.fake.cross_ref",
    "redispatch._subclasses.functional_tensor": "redispatch.modes.functional_tensor",
    "redispatch._subclasses.schema_check_mode": "redispatch.modes.schema_check",
    "redispatch.autograd._functions": "redispatch._C._functions",
    "redispatch.autograd.anomaly_mode": "redispatch.dispatch.autograd.anomaly_mode",
    "redispatch.autograd.forward_ad": "redispatch.dispatch.autograd.forward_ad",
    "redispatch.autograd.function": "redispatch.dispatch.autograd.function",
    "redispatch.autograd.grad_mode": "redispatch.dispatch.autograd.grad_mode",
    "redispatch.autograd.graph": "redispatch.dispatch.autograd.graph",
    "redispatch.autograd.profiler": "redispatch._autograd_profiler",
    "redispatch.autograd.profiler_util": "redispatch._autograd_profiler",
    "redispatch.autograd.variable": "redispatch.dispatch.autograd.variable",
    "redispatch.testing._internal.two_tensor": "redispatch.subclasses.two_tensor",
    "redispatch.nn.utils.stateless": "redispatch.func.stateless",
    "redispatch.utils._pytree": "redispatch.dispatch.pytree",
    "redispatch.utils.model_zoo": "redispatch.hub",
}
# the same for modules that are part of one in another package
ELSEWHERE = {
    "redispatch.accelerator.memory": "redispatch.accelerator",
    "redispatch.collect_env": "redispatch.utils.collect_env",
    **{f"redispatch.cpu.amp.{name}": "redispatch.cpu.amp" for name in "autocast_mode grad_scaler".split()},
    **{f"redispatch.cuda.amp.{name}": "redispatch.cuda.amp" for name in "autocast_mode common grad_scaler".split()},
    "redispatch.nn.common_types": "redispatch.utils.type_names",
    **{f"redispatch.nn.utils.{name}": "redispatch.nn.utils" for name in "clip_grad convert_parameters".split()},
    "redispatch.profiler.profiler": "redispatch.profiler",
    "redispatch.signal.windows.windows": "redispatch.signal.windows",
    "redispatch.utils.benchmark.utils": "redispatch.utils.benchmark",
    **{
        f"redispatch.utils.benchmark.utils.{name}": "redispatch.utils.benchmark"
        for name in "common compare timer".split()
    },
    "redispatch.utils.data.distributed": "redispatch.utils.data.dataset",
    "redispatch._functorch.deprecated": "redispatch.functorch",
    **{
        f"redispatch.masked.maskedtensor.{name}": "redispatch.masked.maskedtensor"
        for name in "core creation unary binary reductions passthrough".split()
    },
    "redispatch.dispatch.schema.results": "redispatch.dispatch.kernel_conventions",
    "redispatch.dispatch.transforms.debug_unwrap": "redispatch.dispatch.tensor.wrapped",
    **{f"redispatch.fx.passes.infra.{name}": "redispatch.fx.passes.infra" for name in ("pass_base", "pass_manager")},
    "redispatch.fx.passes.infra.partitioner": "redispatch.fx.passes.partitioner",
    **{
        f"redispatch.fx.passes.utils{name}": "redispatch.fx.passes.fuser_utils"
        for name in ("", ".common", ".fuser_utils")
    },
    "redispatch.fx.passes.fake_tensor_prop": "redispatch.fx.passes.shape_prop",
    "redispatch.nn.attention.bias": "redispatch.nn.attention_bias",
    "redispatch._inductor.config": "redispatch.fx.passes.config",
    "redispatch.nn.attention.flex_attention": "redispatch._higher_order_ops.attention",
    "redispatch._prims.rng_prims": "redispatch._higher_order_ops.rng",
    "redispatch._inductor.fx_passes": "redispatch.fx.passes.post_grad",
    "redispatch._inductor.fx_passes.reinplace": "redispatch.fx.passes.reinplace",
    "redispatch._inductor.fx_passes.post_grad": "redispatch.fx.passes.post_grad",
    "redispatch.functorch.compile": "redispatch._functorch.aot_autograd",
    "redispatch.functorch.experimental": "redispatch._functorch.api",
}
PRESENT = (
    ALIASES
    | ELSEWHERE
    | {
        f"{package}.{former}": f"{package}.{present}"
        for package, modules in JOINED.items()
        for present, names in modules.items()
        for former in names.split()
    }
)


class Moved:
    """Finds former paths, after every other finder has found nothing, and is the loader of what it finds."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name in PRESENT:
            return ModuleSpec(name, self, origin=PRESENT[name])  # type: ignore[arg-type]  # not abstract
        if name == "redispatch.utils.data._utils":  # PyTorch's, where there was none of ours
            return ModuleSpec(name, self, origin=MOVED[name][0], is_package=True)  # type: ignore[arg-type]  # not abstract
        package, _, module = name.rpartition(".")
        for room in MOVED.get(package, ()):
            if find_spec(f"{room}.{module}") is not None:
                return ModuleSpec(name, self, origin=f"{room}.{module}", is_package=name in MOVED)  # type: ignore[arg-type]  # not abstract
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return package(spec.name) if spec.name in MOVED else import_module(str(spec.origin))

    def get_code(self, name: str) -> Any:
        """Returns what `python -m` runs: the module of today."""
        loader: Any = find_spec(PRESENT[name]).loader  # type: ignore[union-attr]  # it is there
        return loader.get_code(PRESENT[name])

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the module was executed under its own name."""


def package(name: str) -> ModuleType:
    """Returns a package that has the names of today's, and no folder: modules in it are asked of `Moved`."""
    made = ModuleType(name, f"A former path; read {MOVED[name][0]}.")
    made.__path__ = []
    present = import_module(MOVED[name][0])

    def __getattr__(attribute: str) -> Any:
        if attribute.startswith("__"):  # of what it is itself: not `__file__`
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        return getattr(present, attribute)

    vars(made)["__getattr__"] = __getattr__
    return made


def join(package: str) -> None:
    """Makes the modules that are part of others importable, and attributes of their package. Called by the package.

    A function of a former module's name, such as `cond`, stays what the attribute is. What is imported late is found by
    `Moved`.
    """
    for present, names in JOINED[package].items():
        if f"{package}.{present}" in sys.modules:
            module = sys.modules[f"{package}.{present}"]
            for name in names.split():
                sys.modules[f"{package}.{name}"] = module
                vars(sys.modules[package]).setdefault(name, module)


def enter() -> None:
    """Makes former paths importable. Called once, when all that is imported early has been.

    What is loaded already is entered at once: an import would set an attribute of its package, and there may be a
    function of that name, as `redispatch.dispatch.trace` is one.
    """
    for name in ("redispatch.ops", "redispatch.tensor"):  # of these names are public things that are no modules
        sys.modules[name] = package(name)
    formers: dict[str, list[str]] = {}  # a room -> what it was
    for former, rooms in MOVED.items():
        for room in rooms:
            formers.setdefault(room, []).append(former)
    for name, module in [*sys.modules.items()]:
        room, _, last = name.rpartition(".")
        for former in formers.get(room, ()):
            sys.modules.setdefault(f"{former}.{last}", module)
    sys.meta_path.append(Moved())
