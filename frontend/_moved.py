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

# a module of today -> former ones beside it, PyTorch's among them, that are part of it
JOINED = {
    "_functorch.api": (
        "apis autograd_function batch_norm_replacement eager_transforms functional_call predispatch pyfunctorch "
        "utils vmap"
    ),
    "_higher_order_ops.control_flow": "associative_scan body cond map scan while_loop",
    "_higher_order_ops.effects": "print",
    "_higher_order_ops.regions": "foreach_map hints_wrap invoke_subgraph local_map strict_mode",
    "_higher_order_ops.wrap": "auto_functionalize out_dtype",
    "amp.autocast_mode": "custom functions",
    "array_api.arrays": "creation manipulation",
    "array_api.linalg": "products",
    "array_api.promotion": "data_types info",
    "array_api.reductions": "searching statistics",
    "backend.register": "device_module methods",
    "demo.story": "tour",
    "demo.train": "activation data model",
    "dispatch.keys": "keyset_class own_keys",
    "dispatch.rules": "places",
    "dispatch.autograd.accumulate": "grad_dtype",
    "dispatch.autograd.derivative": "no_derivative",
    "dispatch.autograd.engine": "current_pass",
    "dispatch.autograd.formulas": "conjugate",
    "dispatch.autograd.forward": "transposition",
    "dispatch.autograd.grad_level": "pullback",
    "dispatch.autograd.graph": "mutation saved_hooks",
    "dispatch.autograd.history": "copy_slices",
    "dispatch.autograd.hooks": "watch",
    "dispatch.autograd.jvp_level": "duals",
    "dispatch.autograd.node": "needs",
    "dispatch.autograd.operator_node": "straight",
    "dispatch.inspection.frames": "stops",
    "dispatch.inspection.trace": "seen",
    "dispatch.layers.layer": "meta not_yet",
    "dispatch.layers.lazy_bit": "conjugate negative zero_tensor",
    "dispatch.protocols.override": "conventions",
    "dispatch.schema.schema": "tags",
    "dispatch.specialiser.reads": "kept",
    "dispatch.specialiser.site": "memo",
    "dispatch.tensor.copies": "swapping",
    "dispatch.tensor.devices": "device_kinds",
    "dispatch.tensor.dtypes": "limits promotion",
    "dispatch.tensor.factory": "pinned",
    "dispatch.tensor.metadata": "record size",
    "dispatch.tensor.operand": "overlap target",
    "dispatch.tensor.printing": "notebook",
    "dispatch.tensor.storage": "shared_memory",
    "dispatch.transforms.functionalize": "functionalize_api regions",
    "dispatch.transforms.reverse": "arguments forward",
    "dispatch.transforms.vmap_level": "function_rule",
    "distributions.bernoulli": "binary binomial continuous_bernoulli geometric negative_binomial poisson",
    "distributions.categorical": (
        "mixture_same_family multinomial one_hot_categorical relaxed_bernoulli relaxed_categorical"
    ),
    "distributions.cauchy": "half_cauchy laplace studentT",
    "distributions.distribution": "exp_family",
    "distributions.exponential": "generalized_pareto gumbel kumaraswamy pareto uniform weibull",
    "distributions.gamma": "beta chi2 dirichlet fishersnedecor inverse_gamma",
    "distributions.normal": "half_normal log_normal logistic_normal lowrank_multivariate_normal multivariate_normal",
    "distributions.transformed_distribution": "independent",
    "fx._symbolic_trace": "wrapping",
    "fx.codegen": "_pytree",
    "fx.node": "immutable_collections",
    "fx.proxy": "annotate",
    "kernels.batching.by_dims": "reductions",
    "kernels.batching.fallback": "refused",
    "kernels.batching.images": "attention",
    "kernels.batching.losses": "sequences",
    "kernels.batching.norms": "batch_norm layer_norm",
    "kernels.batching.pointwise": "writes",
    "kernels.cpu.normalize": "softmax",
    "kernels.cpu.resample": "grid_sample",
    "kernels.cpu.scan": "argreduce",
    "kernels.engine.compile": "assembly",
    "kernels.engine.convert": "order",
    "kernels.maths.vecmath.exponential": "hyperbolic",
    "kernels.ops.activations": "gates",
    "kernels.ops.aliases": "written_over",
    "kernels.ops.arithmetic": "number_forms",
    "kernels.ops.binary": "ternary",
    "kernels.ops.complex_numbers": "polar",
    "kernels.ops.convolution": "convolution_forms older_forms",
    "kernels.ops.distributions": "gamma_draws",
    "kernels.ops.elementary": "trigonometry",
    "kernels.ops.embedding": "embedding_bag",
    "kernels.ops.fft": "fourier",
    "kernels.ops.fused_attention": "attention_choice",
    "kernels.ops.fused_layers": "bilinear",
    "kernels.ops.fused_updates": "loss_scaling",
    "kernels.ops.grid_sampling": "sampled_by_gathers",
    "kernels.ops.index_functions": "replacing",
    "kernels.ops.inquiries": "dtype_questions routes sizes",
    "kernels.ops.linalg": "added_products contractions",
    "kernels.ops.loss": "ctc",
    "kernels.ops.lu": "determinants",
    "kernels.ops.max_pooling": "unpooling",
    "kernels.ops.normalization": "softmax",
    "kernels.ops.padding": "constant_pad",
    "kernels.ops.pooling": "mean_pooling",
    "kernels.ops.rearrange": "arrangements diagonals shuffles",
    "kernels.ops.resampling": "axis_maps",
    "kernels.ops.scans": "segments",
    "kernels.ops.scatter_gather": "scatter_reduce",
    "kernels.ops.solving": "cholesky",
    "kernels.ops.sorting": "searching",
    "kernels.ops.spectra": "low_rank orthogonal",
    "kernels.ops.statistics": "histograms",
    "kernels.ops.stft": "windows",
    "nn.activation": "piecewise rectifiers",
    "nn.attention": "attention_functions attention_kernels",
    "nn.containers": "parameter_containers",
    "nn.dropout": "dropouts",
    "nn.images": "padding shuffles upsampling",
    "nn.linear": "convolution distance flatten",
    "nn.loss": "_reduction adaptive loss_functions",
    "nn.normalization": "batch_norm response_norm",
    "nn.parallel": "parallel.data_parallel parallel.parallel_apply parallel.replicate parallel.scatter_gather",
    "nn.parameter": "conversion factory uninitialized",
    "nn.pooling": "pools",
    "nn.sparse": "bags",
    "nn.tree": "typename",
    "nn.utils.parametrizations": "orthogonal",
    "nn.utils.fusion": "init memory_format",
    "nn.utils.weight_norm": "spectral_norm",
    "optim.adagrad": "adadelta adafactor rmsprop rprop",
    "optim.adam": "adamax adamw nadam radam sparse_adam",
    "optim.lbfgs": "line_search",
    "optim.sgd": "asgd muon",
    "optim.lr_scheduler.compound": "plateau",
    "optim.lr_scheduler.scheduler": "simple",
    "serialization.names": "rebuild",
    "serialization.writer": "api archive",
    "testing.subclass_check": "mode_check",
    "utils.checkpoint": "_selective_checkpoint",
    "utils.flop_counter": "flop_formulas",
    "utils.text": "_terminal text_table",
    "utils.type_names": "symbolic",
    "utils.data.dataloader": "collate pin_memory worker",
    "utils.data.dataset": "sampler",
    "viz.graph_picture": "graph_layout graph_model graph_text",
    "viz.tables": "chrome notebook page",
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
    **{f"redispatch._dynamo.backends.{name}": "redispatch._dynamo.backends" for name in "common debugging".split()},
    "redispatch._functorch._aot_autograd": "redispatch._functorch.aot_autograd",
    "redispatch._functorch._aot_autograd.schemas": "redispatch._functorch.export",
    "redispatch._functorch._aot_autograd.utils": "redispatch._functorch.aot_autograd",
    "redispatch._library.triton": "redispatch.library",
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
    "redispatch.fx.passes.dialect": "redispatch.fx.passes.cse_pass",
    "redispatch.fx.passes.dialect.common": "redispatch.fx.passes.cse_pass",
    "redispatch.fx.passes.dialect.common.cse_pass": "redispatch.fx.passes.cse_pass",
    "redispatch.fx.passes.utils.matcher_utils": "redispatch.fx.passes.matchers",
    "redispatch.fx.passes.utils.matcher_with_name_node_map_utils": "redispatch.fx.passes.matchers",
    "redispatch.fx.passes.utils.source_matcher_utils": "redispatch.fx.passes.source_partitions",
    "redispatch.fx.experimental.schema_type_annotation": "redispatch.fx.experimental.normalize",
    "redispatch.nn.attention.bias": "redispatch.nn.attention_bias",
    "redispatch._inductor.config": "redispatch.fx.passes.config",
    "redispatch.nn.attention.flex_attention": "redispatch._higher_order_ops.attention",
    "redispatch._prims.rng_prims": "redispatch._higher_order_ops.rng",
    "redispatch._inductor.fx_passes": "redispatch.fx.passes.post_grad",
    "redispatch._inductor.fx_passes.reinplace": "redispatch.fx.passes.reinplace",
    "redispatch._inductor.fx_passes.post_grad": "redispatch.fx.passes.post_grad",
    "redispatch.functorch.compile": "redispatch._functorch.compilers",
    "redispatch.functorch.experimental": "redispatch._functorch.api",
}
PRESENT = ALIASES | ELSEWHERE
INSIDE: dict[str, dict[str, str]] = {}  # a package -> a former module -> the one of today that it is part of
for _present, _names in JOINED.items():
    _package = f"redispatch.{_present}".rpartition(".")[0]
    _paths = {f"{_package}.{name}": f"redispatch.{_present}" for name in _names.split()}
    PRESENT |= _paths
    INSIDE.setdefault(_package, {}).update(_paths)


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
    for former, present in INSIDE[package].items():
        if present in sys.modules:
            sys.modules[former] = sys.modules[present]
            vars(sys.modules[package]).setdefault(former.removeprefix(f"{package}."), sys.modules[present])


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
