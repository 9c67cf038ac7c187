"""Parts of PyTorch that are not here, as modules that say so.

Programs ask whether a part is there (`torch.distributed.is_available()`), and compare with its classes. Here the answer
is no, no object is of such a class, and a function that would have to do something raises NotImplementedError with the
reason. A row is one module; as a part comes, its row goes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ContextDecorator
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple

DEVICE_QUESTIONS = "is_available is_bf16_supported is_built is_initialized"
DEVICE_CALLS = """
    Event Stream current_device current_stream device device_of empty_cache get_device_name get_device_properties
    get_rng_state get_rng_state_all init initial_seed max_memory_allocated max_memory_reserved memory_allocated
    memory_reserved memory_stats reset_peak_memory_stats set_device set_per_process_memory_fraction set_rng_state
    set_rng_state_all set_stream stream synchronize
"""

QUANTIZED = "tensors are not quantized, but for fake_quantize_per_tensor_affine and its like"
SPARSE = "tensors hold all their elements"


class Absent(NamedTuple):
    """The names of a module by what they are here, and the reason that its functions give."""

    reason: str
    refused: str = ""  # functions that raise
    no: str = ""  # questions whose answer is no
    nothing: str = ""  # functions that have nothing to do
    none: str = ""  # values: there is none
    marks: str = ""  # functions that return a decorator, which changes nothing
    regions: str = ""  # functions that return a context manager and decorator, which changes nothing
    classes: str = ""  # of which there is no object


def device(title: str, kinds: str = "") -> Absent:
    """Returns the module of devices that no machine has, as far as this library knows."""
    return Absent(
        f"there is no device of {title}", DEVICE_CALLS + kinds, DEVICE_QUESTIONS, "manual_seed manual_seed_all seed"
    )


ABSENT = {
    "_C._distributed_c10d": Absent("processes are not coordinated here", classes="FakeProcessGroup ProcessGroup Work"),
    "_dynamo.config": Absent(
        "nothing traces programs",
        regions="patch",
        none="""
            cache_size_limit capture_scalar_outputs optimize_ddp recompile_limit suppress_errors verbose
        """,
    ),
    "_dynamo.eval_frame": Absent("nothing traces programs", classes="OptimizedModule"),
    "_inductor": Absent("nothing is compiled ahead", nothing="cudagraph_mark_step_begin", refused="list_mode_options"),
    "ao": Absent(QUANTIZED),
    "ao.nn": Absent(QUANTIZED),
    "ao.nn.intrinsic": Absent(QUANTIZED, classes="ConvBn2d ConvBnReLU2d ConvReLU2d LinearReLU"),
    "ao.nn.qat": Absent(QUANTIZED, classes="Conv2d Linear"),
    "ao.nn.quantized": Absent(QUANTIZED, classes="Conv2d FloatFunctional Linear QFunctional"),
    "ao.quantization": Absent(
        QUANTIZED,
        refused="""
            convert fuse_modules fuse_modules_qat get_default_qat_qconfig get_default_qconfig prepare prepare_qat
            quantize quantize_dynamic quantize_qat
        """,
        classes="DeQuantStub FakeQuantize HistogramObserver MinMaxObserver ObserverBase QConfig QuantStub QuantWrapper",
        none="default_observer default_per_channel_weight_observer default_qconfig default_weight_observer",
    ),
    "backends.mkl": Absent("kernels are compiled by numba", no="is_available"),
    "backends.mps": Absent("there is no device of Apple's", no="is_available is_built is_macos13_or_newer"),
    "backends.opt_einsum": Absent("einsum goes from left to right", no="is_available", none="enabled strategy"),
    "backends.openmp": Absent("threads are those of kernels/engine/pool.py", no="is_available"),
    "backends.quantized": Absent(QUANTIZED, none="engine supported_engines"),
    "backends.xnnpack": Absent("kernels are compiled by numba", none="enabled"),
    "distributed": Absent(
        "processes are not coordinated here",
        refused="""
            all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier
            broadcast broadcast_object_list destroy_process_group gather gather_object get_backend get_rank
            get_world_size init_device_mesh init_process_group irecv isend monitored_barrier new_group recv reduce
            reduce_scatter reduce_scatter_tensor scatter scatter_object_list send
        """,
        no="""
            is_available is_backend_available is_gloo_available is_initialized is_mpi_available is_nccl_available
            is_torchelastic_launched is_ucc_available is_xccl_available
        """,
        classes="""
            Backend DeviceMesh DistBackendError DistError FileStore HashStore P2POp PrefixStore ProcessGroup ReduceOp
            Store TCPStore Work
        """,
    ),
    "distributed.device_mesh": Absent(
        "processes are not coordinated here", "init_device_mesh", classes="DeviceMesh _mesh_resources"
    ),
    "distributed.fsdp": Absent(
        "processes are not coordinated here",
        "fully_shard register_fsdp_forward_method",
        classes="""
            BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule FullStateDictConfig FullyShardedDataParallel
            MixedPrecision MixedPrecisionPolicy OffloadPolicy ShardingStrategy StateDictType
        """,
    ),
    "distributed.tensor": Absent(
        "processes are not coordinated here",
        refused="distribute_module distribute_tensor",
        classes="DTensor DeviceMesh Partial Placement Replicate Shard",
    ),
    "export": Absent(
        "programs are not exported; trace one by redispatch.fx",
        refused="draft_export export export_for_training load register_dataclass save unflatten",
        classes="Constraint Dim ExportedProgram ExportGraphSignature ShapesCollection UnflattenedModule",
    ),
    "mps": device("Apple's", " current_allocated_memory driver_allocated_memory recommended_max_memory"),
    "mtia": device("Meta's"),
    "nested": Absent(
        "tensors have one length in each dimension; nn.utils.rnn.pad_sequence pads",
        refused="as_nested_tensor masked_select narrow nested_tensor nested_tensor_from_jagged to_padded_tensor",
    ),
    "nn.attention.flex_attention": Absent(
        "scaled_dot_product_attention takes a mask as a tensor",
        refused="create_block_mask create_mask create_nested_block_mask flex_attention",
        classes="AuxOutput AuxRequest BlockMask",
        none="_DEFAULT_SPARSE_BLOCK_SIZE",
    ),
    "nn.quantized": Absent(QUANTIZED, classes="Conv2d FloatFunctional Linear QFunctional"),
    "numa": Absent("threads are not bound to processors"),
    "numa.binding": Absent("threads are not bound to processors", classes="AffinityMode NumaOptions"),
    "onnx": Absent(
        "graphs are not written as ONNX; trace one by redispatch.fx",
        refused="dynamo_export export",
        no="is_in_onnx_export",
        nothing="register_custom_op_symbolic unregister_custom_op_symbolic",
        classes="ExportOptions ONNXProgram OnnxExporterError OperatorExportTypes TrainingMode",
    ),
    "onnx.symbolic_helper": Absent("graphs are not written as ONNX", marks="parse_args quantized_args"),
    **{f"onnx.symbolic_opset{number}": Absent("graphs are not written as ONNX") for number in range(9, 21)},
    "package": Absent(
        "models are not packed together with their code", classes="PackageExporter PackageImporter OrderedImporter"
    ),
    "quantization": Absent(QUANTIZED, classes="DeQuantStub QConfig QuantStub", refused="convert prepare prepare_qat"),
    "sparse": Absent(
        SPARSE,
        refused="addmm log_softmax mm sampled_addmm softmax spdiags sum to_sparse_semi_structured",
        classes="""
            BFloat16Tensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor
            SparseSemiStructuredTensor
        """,
    ),
    "utils.cpp_extension": Absent(
        "operators are written in Python here: redispatch.library.custom_op",
        refused="BuildExtension CUDAExtension CppExtension include_paths library_paths load load_inline",
        no="is_ninja_available",
        none="CUDA_HOME CUDNN_HOME ROCM_HOME",
    ),
    "xpu": device("Intel's", " mem_get_info"),
}

TOP = Absent(  # what the package adds to its own names
    SPARSE,
    refused="""
        dsmm hsmm hspmm smm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor
        sparse_csc_tensor sparse_csr_tensor sspaddmm
    """,
)
COMPILER = Absent(  # what `_C` adds to its own names
    "Python is not compiled",
    no="""
        _jit_can_fuse_on_cpu _jit_can_fuse_on_gpu _jit_nvfuser_enabled _jit_texpr_fuser_enabled _jit_set_profiling_mode
        _jit_set_profiling_executor
    """,
    nothing="""
        _get_tracing_state _jit_override_can_fuse_on_cpu _jit_override_can_fuse_on_gpu _jit_set_nvfuser_enabled
        _jit_set_nvfuser_guard_mode _jit_set_texpr_fuser_enabled _log_api_usage_once
    """,
    classes="Graph Value",
)


def refusing(name: str, reason: str) -> Callable[..., Any]:
    """Returns the function of a part that is not here."""

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}() is not here: {reason}")

    return refused


class Region(ContextDecorator):
    """A region in which nothing is other than outside."""

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(self, *problem: Any) -> None:
        """Does nothing, and lets errors pass."""


def answering(answer: Any) -> Callable[..., Any]:
    """Returns a function that has one answer."""
    return lambda *args, **kwargs: answer


def names_of(module: str, row: Absent) -> dict[str, Any]:
    """Returns the names of a row, for a module."""
    shown = module.rpartition(".")[2]
    found: dict[str, Any] = {name: refusing(f"{shown}.{name}", row.reason) for name in row.refused.split()}
    found |= {name: answering(False) for name in row.no.split()}
    found |= {name: answering(None) for name in row.nothing.split()}
    found |= dict.fromkeys(row.none.split())
    found |= {name: answering(lambda function: function) for name in row.marks.split()}
    found |= {name: lambda *args, **kwargs: Region() for name in row.regions.split()}
    if row.refused.startswith(DEVICE_CALLS):
        found["device_count"] = answering(0)
    for name in row.classes.split():
        found[name] = type(name, (), {"__init__": refusing(f"{shown}.{name}", row.reason)})
    for name, value in found.items():
        if callable(value):
            value.__module__, value.__name__, value.__qualname__ = module, name, name
            value.__doc__ = f"Is not here: {row.reason}."
    return found


class AbsentFinder:
    """Finds the modules of the table, after every other finder has found nothing, and fills them."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, part = name.partition(".")
        if package != self.package or part not in ABSENT:
            return None
        return ModuleSpec(name, self)  # type: ignore[arg-type]  # not abstract

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        reason = ABSENT[spec.name.partition(".")[2]].reason
        made = ModuleType(spec.name, f"A part of PyTorch that is not here: {reason}.")
        made.__path__ = []  # of some of them the table has parts, too
        return made

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(names_of(module.__name__, ABSENT[module.__name__.partition(".")[2]]))


def enter() -> None:
    """Makes the modules importable. Called once, when all that is imported early has been."""
    sys.meta_path.append(AbsentFinder(__package__))
    for name in ABSENT:
        if name.startswith(("_C.", "backends.", "utils.")):  # others are made when they are asked for
            import_module(f"{__package__}.{name}")


NAMES = " ".join(name for name in ABSENT if "." not in name)  # of the package


def __getattr__(name: str) -> Any:
    if name not in ABSENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__package__}.{name}")
