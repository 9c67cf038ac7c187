"""What of PyTorch is not here, and why: whole parts as modules that say so, and single names.

Programs ask whether a part is there (`torch.distributed.is_available()`), and compare with its classes. Here the answer
is no, no object is of such a class, and a function that would have to do something raises NotImplementedError with the
reason: these are the rows of ABSENT. Of the names and modules in MISSING, `hasattr` and an import say that they are not
there, with the reason in the error. As a part comes, its row goes; torch_names.py says where every name is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import ContextDecorator
from enum import IntEnum
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, NamedTuple

from redispatch.dispatch import asks, handle_torch_function, overridden
from redispatch.dispatch.protocols.override import overriding

DEVICE_QUESTIONS = "is_available is_bf16_supported is_built is_initialized"
DEVICE_CALLS = """
    Event Stream current_device current_stream device device_of empty_cache get_device_name get_device_properties
    get_rng_state get_rng_state_all init initial_seed max_memory_allocated max_memory_reserved memory_allocated
    memory_reserved memory_stats reset_peak_memory_stats set_device set_per_process_memory_fraction set_rng_state
    set_rng_state_all set_stream stream synchronize
"""

COLLECTIVES = """
    all_gather all_gather_coalesced all_gather_single all_reduce all_reduce_coalesced all_to_all all_to_all_single
    broadcast gather irecv isend recv reduce reduce_scatter reduce_scatter_single scatter send
"""
QUANTIZED = "quantized tensors have no layers of their own: there are quantize_per_tensor and what it makes"
SPARSE = "tensors hold all their elements"


class Absent(NamedTuple):
    """The names of a module by what they are here, and the reason that its functions give."""

    reason: str
    refused: str = ""  # functions that raise
    asks: str = ""  # functions that raise unless an argument or a mode overrides them
    no: str = ""  # questions whose answer is no
    nothing: str = ""  # functions that have nothing to do
    none: str = ""  # values: there is none
    values: Mapping[str, Any] = {}  # values that say so
    marks: str = ""  # functions that return a decorator, which changes nothing
    regions: str = ""  # functions that return a context manager and decorator, which changes nothing
    classes: str = ""  # of which there is no object
    shows: str = ""  # another row, whose `asks` it has, too

    def names(self) -> set[str]:
        """Returns all that the row names."""
        kinds = self.refused, self.asks, self.no, self.nothing, self.none, self.marks, self.regions, self.classes
        return {*" ".join(kinds).split(), *self.values}


def coordination(names: str) -> Absent:
    """Returns a module of what several processes do together: classes have a capital letter, functions have none."""
    classes = " ".join(name for name in names.split() if name[0].isupper())
    functions = " ".join(name for name in names.split() if name[0].islower() and name != "is_available")
    return Absent("processes are not coordinated here", functions, classes=classes, no="is_available")


SHARDED = """
    BackwardPrefetch CPUOffload FullOptimStateDictConfig FullStateDictConfig LocalOptimStateDictConfig
    LocalStateDictConfig MixedPrecision OptimStateDictConfig OptimStateKeyType ShardedOptimStateDictConfig
    ShardedStateDictConfig ShardingStrategy StateDictConfig StateDictSettings StateDictType
"""
PLACED = "DTensor DeviceMesh Partial Placement Replicate Shard distribute_module distribute_tensor"
COORDINATED = {  # a module of `distributed` -> its names
    "_composable": "",
    "_composable.fsdp": "CPUOffloadPolicy FSDPModule MixedPrecisionPolicy OffloadPolicy fully_shard",
    "_tensor": PLACED,
    "algorithms": "",
    "algorithms._checkpoint": "",
    "algorithms._checkpoint.checkpoint_wrapper": """
        ActivationWrapper CheckpointImpl CheckpointWrapper OffloadWrapper apply_activation_checkpointing
        checkpoint_wrapper offload_wrapper
    """,
    "autograd": "DistAutogradContext backward context get_gradients",
    "checkpoint": """
        DefaultLoadPlanner DefaultSavePlanner FileSystemReader FileSystemWriter LoadPlan LoadPlanner Metadata SavePlan
        SavePlanner StorageReader StorageWriter async_save load load_sharded_optimizer_state_dict load_state_dict save
        save_state_dict
    """,
    "checkpoint.state_dict": """
        StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict
        set_optimizer_state_dict set_state_dict
    """,
    "elastic": "",
    "elastic.multiprocessing": "",
    "fsdp.api": SHARDED,
    "fsdp.fully_sharded_data_parallel": f"FullyShardedDataParallel {SHARDED}",
    "fsdp.sharded_grad_scaler": "ShardedGradScaler",
    "fsdp.wrap": """
        CustomPolicy ModuleWrapPolicy always_wrap_policy enable_wrap lambda_auto_wrap_policy size_based_auto_wrap_policy
        transformer_auto_wrap_policy wrap
    """,
    "nn": "RemoteModule",
    "nn.functional": """
        all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce reduce_scatter scatter
    """,
    "optim": "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer as_functional_optim",
    "tensor": PLACED,
    "tensor.parallel": """
        ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput PrepareModuleOutput RowwiseParallel
        SequenceParallel loss_parallel parallelize_module
    """,
}


def device(title: str, kinds: str = "") -> Absent:
    """Returns the module of devices that no machine has, as far as this library knows."""
    return Absent(
        f"there is no device of {title}",
        DEVICE_CALLS + kinds,
        no=DEVICE_QUESTIONS,
        nothing="manual_seed manual_seed_all seed",
    )


ABSENT = {
    "_C._distributed_c10d": Absent("processes are not coordinated here", classes="FakeProcessGroup ProcessGroup Work"),
    "_library.fake_class_registry": Absent(
        "no class comes from C++",
        "deregister_fake_class register_fake_class",
        no="has_fake_class tracing_with_real",
        nothing="find_fake_class",
        classes="FakeClassRegistry FakeScriptMethod FakeScriptObject HasStaticMethodFromReal",
        values={"maybe_to_fake_obj": lambda fake_mode, x: x},
    ),
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
        classes="""
            DeQuantStub FakeQuantize FakeQuantizeBase HistogramObserver MinMaxObserver ObserverBase QConfig QuantStub
            QuantWrapper
        """,
        none="default_observer default_per_channel_weight_observer default_qconfig default_weight_observer",
    ),
    "backends.cusparselt": Absent(SPARSE, "get_max_alg_id version", "is_available"),
    "backends.kleidiai": Absent("kernels are compiled by LLVM", no="is_available"),
    "backends.mha": Absent(
        "MultiheadAttention has one path", no="get_fastpath_enabled", nothing="set_fastpath_enabled"
    ),
    "backends.mkl": Absent("kernels are compiled by LLVM", no="is_available"),
    "backends.mps": Absent(
        "there is no device of Apple's", no="is_available is_built is_macos13_or_newer is_macos_or_newer"
    ),
    "backends.opt_einsum": Absent("einsum goes from left to right", no="is_available", none="enabled strategy"),
    "backends.nnpack": Absent("kernels are compiled by LLVM", no="is_available set_flags", regions="flags"),
    "backends.openmp": Absent("threads are those of kernels/engine/pool.py", no="is_available"),
    "backends.quantized": Absent(QUANTIZED, values={"engine": "none", "supported_engines": ["none"]}),
    "backends.xnnpack": Absent("kernels are compiled by LLVM", none="enabled"),
    "distributed": Absent(
        "processes are not coordinated here",
        refused="""
            all_gather_into_tensor all_gather_object barrier broadcast_object_list destroy_process_group gather_object
            get_backend get_rank get_world_size init_device_mesh init_process_group monitored_barrier new_group
            reduce_scatter_tensor scatter_object_list
        """,
        shows="distributed.distributed_c10d",
        no="""
            is_available is_backend_available is_gloo_available is_initialized is_mpi_available is_nccl_available
            is_torchelastic_launched is_ucc_available is_xccl_available
        """,
        classes="""
            Backend DeviceMesh DistBackendError DistError FileStore HashStore P2POp PrefixStore ProcessGroup Store
            TCPStore Work group
        """,
        values={"ReduceOp": IntEnum("ReduceOp", "SUM AVG PRODUCT MIN MAX BAND BOR BXOR PREMUL_SUM", start=0)},
    ),
    "distributed.distributed_c10d": Absent("processes are not coordinated here", asks=COLLECTIVES),
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
    "distributed._tensor.experimental": Absent("processes are not coordinated here", regions="implicit_replication"),
    "distributed.elastic.multiprocessing.errors": Absent(
        "processes are not coordinated here",
        values={"record": lambda fn, error_handler=None: fn},
        classes="ChildFailedError ProcessFailure",
    ),
    "distributed.rpc": Absent(
        "processes are not coordinated here",
        refused="init_rpc remote rpc_async rpc_sync shutdown",
        no="is_available",
        classes="RRef WorkerInfo",
    ),
    **{f"distributed.{part}": coordination(names) for part, names in COORDINATED.items()},
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
    "nn.parallel._functions": Absent(
        "modules run on one device here", classes="Broadcast Gather ReduceAddCoalesced Scatter"
    ),
    "nn.parallel.comm": Absent(
        "modules run on one device here",
        refused="broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter",
    ),
    "nn.parallel.distributed": Absent("processes are not coordinated here", classes="DistributedDataParallel"),
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

SCRIPT = "TorchScript is compiled and run by redispatch.jit; PyTorch's fusers, phones and bytecode are not here"
LEAKED = "it is part of PyTorch's C++, which the package lists among its names"
INTERNAL = "it is a part of PyTorch's own implementation, which this library has not"
TRACER = "redispatch.compile records calls; redispatch.fx.experimental.proxy_tensor.make_fx records operators"
SYMBOLIC = "symbols have no such entry; redispatch.fx.experimental.symbolic_shapes has what programs ask of sizes"
CHECKED = "types of sizes are not checked beforehand; FakeTensorProp runs a graph on fakes, whose sizes are symbols"
GRAPHS = "fx rewrites graphs by passes and patterns (fx.passes.post_grad, matching), Interpreter and Transformer"
OTHER = "it calls a library for other hardware; the operator without the prefix does the same"
OTHER_DEVICE = "there is no such device"
GPU = "the GPU's driver is asked by nvidia-smi; redispatch.cuda has devices, streams, memory and graphs"
PROCESSES = "processes are not coordinated here; modules and batches stay on one device"
PIPES = "loading is done by Dataset, IterableDataset and DataLoader; there are no data pipes"
OLD = "PyTorch keeps it for programs that were written long ago"
BUILD = "it belongs to PyTorch's build in C++; kernels are Python, compiled by LLVM"
TOOL = "it writes for, or reads from, a tool of its own; redispatch.profiler exports traces for Chrome"
FILES = "files are read and written in one format, and in one way; see redispatch.save and load"
DIMENSIONS = "dimensions are numbers and no objects; einsum has letters for them"
UNWRITTEN = "it has not been written yet"

TOP = [  # what the package adds to its own names
    Absent("Python is not compiled", nothing="init_num_threads", classes="ScriptFunction ScriptModule"),
    Absent(
        SPARSE,
        asks="""
            _indices_copy _sparse_broadcast_to_copy _values_copy ccol_indices_copy col_indices_copy crow_indices_copy
            hspmm indices_copy native_norm row_indices_copy smm sparse_bsc_tensor sparse_bsr_tensor
            sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor sspaddmm values_copy
        """,
    ),
    Absent(
        QUANTIZED,
        asks="""
            _fused_moving_avg_obs_fq_helper _rowwise_prune _wrapped_linear_prepack _wrapped_quantized_linear_prepacked
            choose_qparams_optimized fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation
            fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight
            fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix fused_moving_avg_obs_fake_quant
            quantized_batch_norm quantized_gru_cell quantized_lstm_cell quantized_max_pool1d quantized_max_pool2d
            quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell
        """,
    ),
    Absent(
        "it is a step of a function on GPUs",
        asks="""
            batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
            batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats miopen_batch_norm
            miopen_convolution miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose
            miopen_depthwise_convolution miopen_rnn
        """,
    ),
    Absent("autograd.forward_ad makes dual tensors", asks="_fw_primal_copy _make_dual_copy"),
    Absent("linalg.eigh finds all eigenvalues", asks="lobpcg"),
    Absent("a size that elements decide has a symbol already", asks="_functional_assert_async"),
    Absent("nn.functional.rms_norm is made of others", asks="_fused_rms_norm"),
    Absent(
        OTHER,
        """
            cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu
            cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable miopen_ctc_loss
            mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d
            mkldnn_max_pool3d mkldnn_rnn_layer
        """,
    ),
    Absent(
        OTHER_DEVICE,
        """
            get_autocast_ipu_dtype get_autocast_xla_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled
            set_autocast_xla_dtype set_autocast_xla_enabled
        """,
    ),
    Absent(
        LEAKED,
        """
            import_ir_module import_ir_module_from_buffer merge_type_from_type_comment parse_ir parse_type_comment
            unify_type_list
        """,
    ),
    Absent(SYMBOLIC, "_functional_sym_constrain_range _make_dep_token sym_fresh_size"),
    Absent(QUANTIZED, "empty_quantized"),
]
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

NVIDIA = Absent(  # what `autograd.profiler` adds to its own
    "it writes for a tool of NVIDIA's or Intel's; redispatch.profiler exports traces for Chrome",
    classes="emit_itt emit_nvtx",
)

FUNCTIONAL = [  # what `nn.functional` does
    Absent(UNWRITTEN, "scaled_grouped_mm scaled_mm"),
    Absent(INTERNAL, "assert_int_or_pair boolean_dispatch _canonical_mask _none_or_dtype"),
]

EXTRA = {
    "": TOP,
    "_C": [COMPILER],
    "autograd.profiler": [NVIDIA],
    "nn.functional": FUNCTIONAL,
}  # module of the package -> what it adds to its own names

# A module -> reason -> its names that are not here, `*` standing for any letters. A name may be a module: with it all
# that it would have is not here. The module "" is the package, `Tensor` its class.
MISSING: dict[str, dict[str, str]] = {
    "": {
        LEAKED: """
            AVG AggregationType AliasDb ArgumentSpec AwaitType BenchmarkConfig BenchmarkExecutionStats Block BufferDict
            CallStack Capsule ClassType Code CompilationUnit CompleteArgumentSpec ConcreteModuleType* DeepCopyMemoTable
            DeserializationStorageContext EnumType ErrorReport ExecutionPlan FatalError FutureType Gradient Graph
            GraphExecutorState IODescriptor InferredType InterfaceType JITException LiteScriptModule LockingLogger
            ModuleDict Node NoopLogger OperatorInfo ParameterDict PyObjectType PyTorchFileWriter RRefType SUM Script*
            SerializationStorageContext StaticModule SymBoolType SymIntType ThroughputBenchmark TracingState UnionType
            Use Value cpp
        """,
        SPARSE: "resize_as_sparse_",
        OLD: "contrib",
        BUILD: "nativert",
        TOOL: "monitor",
    },
    "accelerator": {GPU: "Graph graphs"},
    "autograd": {OLD: "NestedIOFunction profiler_legacy"},
    "autograd.function": {OLD: "NestedIOFunction"},
    "autograd.gradcheck": {INTERNAL: "get_numerical_jacobian_wrt_specific_input"},
    "autograd.graph": {
        TRACER: "region_activation_memory_budget",
        GPU: "set_override_stale_capture_stream set_warn_on_accumulate_grad_stream_mismatch",
    },
    "autograd.profiler": {
        INTERNAL: "EnforceUnique KinetoStepTracker MemRecordsAcc",
        TOOL: "load_nvprof parse_nvprof_trace",
    },
    "autograd.profiler_util": {INTERNAL: "EventMetadata FormattedTimesMixin Kernel MemRecordsAcc StringTable"},
    "backends": {OTHER: "miopen python_native xeon"},
    "backends.cuda": {
        GPU: """
            blas_workspace_size cuBLASModule cuFFTPlanCache* cublas_workspace_size cublaslt_workspace_size
            cufft_plan_cache preferred_blas_library preferred_rocm_fa_library
        """,
    },
    "backends.cudnn": {OTHER: "rnn"},
    "compiler": {TRACER: "config *_backend keep_*_unsafe load_* save_* set_enable_guard_collectives skip_*_unsafe"},
    "cuda": {
        GPU: """
            *Storage *Tensor CUDAPluggableAllocator CudaError DeferredCudaCallError GreenContext
            caching_allocator_* change_current_allocator check_error clock_rate cudaStatus cudart current_blas_handle
            current_solver_handle device_memory_used gds green_contexts has_half has_magma *host_memory_stats*
            jiterator list_gpu_processes memory_usage power_draw profiler sparse temperature tunable utilization
        """,
        PROCESSES: "comm nccl",
    },
    "cuda.memory": {
        GPU: """
            CUDAPluggableAllocator caching_allocator_* change_current_allocator *host_memory_stats* list_gpu_processes
        """
    },
    "func": {UNWRITTEN: "rearrange"},
    "fx": {TRACER: "config", CHECKED: "tensor_type"},
    "fx.experimental": {
        GRAPHS: "accelerator_partitioner partitioner_utils",
        CHECKED: """
            dynamic_spec graph_gradual_typechecker migrate_gradual_types recording refinement_types unification
            unify_refinements validator
        """,
    },
    "fx.experimental.optimization": {
        OTHER: "MklSubgraph UnionFind gen_mkl_autotuner modules_to_mkldnn optimize_for_inference reset_modules use_*"
    },
    "fx.experimental.meta_tracer": {
        INTERNAL: "MetaDeviceAttribute *_override* gen_constructor_wrapper proxys_to_metas"
    },
    "fx.experimental.sym_node": {INTERNAL: "DynamicInt sym_*"},
    "fx.passes.splitter_base": {INTERNAL: "NodeEvent*"},
    "fx.experimental.symbolic_shapes": {
        INTERNAL: """
            *_KEY ConvertIntKey SYMPY_INTERP Specialization SymIntEqByExpr SymIntSymbolicContext
            TrackedFake ValueRangesSLoc canonicalize_bool_expr is_accessor_node resolve_unbacked_bindings
        """,
    },
    "fx.experimental.proxy_tensor": {
        INTERNAL: "dispatch_trace selective_decompose",
        SYMBOLIC: "handle_sym_dispatch",
    },
    "fx.graph_module": {INTERNAL: "reduce_*"},
    "fx.proxy": {INTERNAL: "MetaProxy"},
    "fx.passes": {
        GRAPHS: """
            backends regional_inductor* runtime_assert tests
        """
    },
    "fx.passes.split_module": {GRAPHS: "split_module_simple"},
    "fx.passes.split_utils": {GRAPHS: "move_non_tensor_nodes_on_boundary"},
    "fx.passes.tools_common": {GRAPHS: "FxNetAccFusionsFinder"},
    "fx.passes.utils.common": {GRAPHS: "compare_graphs"},
    "jit": {
        SCRIPT: "enable_onednn_fusion frontend generate_bytecode mobile onednn_fusion_enabled "
        "quantized set_fusion_strategy strict_fusion supported_ops unsupported_tensor_ops",
    },
    "jit.annotations": {
        SCRIPT: "*Type Module ann_to_type check_fn get_* is_dict is_list is_optional is_tuple is_union *type_line "
        "try_*",
    },
    "multiprocessing": {INTERNAL: "pool queue"},
    "multiprocessing.reductions": {
        INTERNAL: "SharedCache fd_id init_reductions rebuild_* reduce_* *shared_cache *_cache"
    },
    "nn": {OLD: "backends cpp", QUANTIZED: "intrinsic qat quantizable"},
    "nn.attention": {OTHER: "*_flash_attention_impl* experimental varlen"},
    "nn.functional": {UNWRITTEN: "ScalingType SwizzleType"},
    "nn.parallel.parallel_apply": {INTERNAL: "get_a_var"},
    "nn.parallel.scatter_gather": {INTERNAL: "scatter_kwargs"},
    "nn.utils.spectral_norm": {INTERNAL: "SpectralNorm*Hook"},
    "profiler": {TOOL: "ExecutionTraceObserver itt python_tracer"},
    "profiler.profiler": {TOOL: "ExecutionTraceObserver"},
    "optim": {UNWRITTEN: "swap_in_optimizer_params_and_state"},
    "serialization": {
        FILES: """
            LoadEndianness SourceChangeWarning StorageType check_module_version_greater_or_equal
            default_restore_location get_crc32_options get_default_load_endianness get_default_mmap_options
            location_tag mkdtemp normalize_storage_type register_package
            set_crc32_options set_default_load_endianness set_default_mmap_options skip_data storage_to_tensor_type
            validate_*_device
        """,
    },
    "utils": {
        BUILD: "cpp_backtrace file_baton hipify mkldnn throughput_benchmark",
        SCRIPT: "bundled_inputs jit mobile_optimizer model_dump",
        TOOL: "show_pickle tensorboard viz",
        FILES: "serialization",
        OLD: "backcompat",
        TRACER: "debug_log",
    },
    "utils.benchmark": {UNWRITTEN: "examples op_fuzzers"},
    "utils.benchmark.utils": {UNWRITTEN: "*fuzzer", BUILD: "cpp_jit valgrind_wrapper", TRACER: "compile"},
    "utils.checkpoint": {INTERNAL: "DefaultDeviceType"},
    "utils.collect_env": {
        INTERNAL: "check_release_file get_c* get_gcc* get_gpu* get_i* get_l* get_mac* get_nv* get_os get_pi* get_pl* "
        "get_py* get_r* get_w* is_xnnpack_available run run_*",
    },
    "utils.data": {
        INTERNAL: "_DatasetKind",
        PIPES: """
            DFIterDataPipe DataChunk IterDataPipe MapDataPipe argument_validation backward_compatibility datapipes
            functional_datapipe graph graph_settings guaranteed_datapipes_determinism non_deterministic
            runtime_validation runtime_validation_disabled
        """,
    },
    "utils.hooks": {INTERNAL: "BackwardHook"},
}


def refusing(name: str, reason: str) -> Callable[..., Any]:
    """Returns the function of a part that is not here."""

    def refused(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{name}() is not here: {reason}")

    return refused


def asking(refused: Callable[..., Any]) -> Callable[..., Any]:
    """Returns such a function that an argument or a mode may override."""

    def asked(*args: Any, **kwargs: Any) -> Any:
        if overridden(args, kwargs):
            return handle_torch_function(asked, overriding(args, kwargs), *args, **kwargs)
        return refused(*args, **kwargs)

    return asked


def why(module: str, name: str) -> str:
    """Returns the reason that a name of a module is not here; "" if it is, or PyTorch has none."""
    for row in [ABSENT[module]] if module in ABSENT else EXTRA.get(module, []):
        if name in row.names():
            return row.reason
    for reason, patterns in MISSING.get(module, {}).items():
        if any(name == each or ("*" in each and fnmatchcase(name, each)) for each in patterns.split()):
            return reason
    return ""


def why_module(module: str) -> str:
    """Returns the reason that a module, or one that it is in, is not here; "" as above."""
    while module:
        if module in ABSENT:
            return ABSENT[module].reason
        module, _, name = module.rpartition(".")
        if reason := why(module, name):
            return reason
    return ""


PATHS: dict[str, list[str]] = {}  # where a module stands -> PyTorch's paths of it that are in MISSING


def explains(module: str) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a module, whose AttributeError says why a name is not here."""

    def __getattr__(name: str) -> Any:
        keys = [] if name.startswith("__") else PATHS.get(module, [module.partition(".")[2]])
        reason = next(filter(None, (why(key, name) or why_module(key) for key in keys)), "")
        raise AttributeError(f"module {module!r} has no attribute {name!r}" + (reason and f": {reason}"))

    return __getattr__


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
    found |= {name: asking(refusing(f"{shown}.{name}", row.reason)) for name in row.asks.split()}
    found |= {name: answering(False) for name in row.no.split()}
    found |= {name: answering(None) for name in row.nothing.split()}
    found |= {**dict.fromkeys(row.none.split()), **row.values}
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
    for name in row.asks.split():
        asks(found[name]).__module__ = f"torch{module[module.find('.') :] if '.' in module else ''}"  # as of all others
    return found


class AbsentFinder:
    """Finds the modules of the table, after every other finder has found nothing, and fills them."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, part = name.partition(".")
        if package != self.package:
            return None
        if part not in ABSENT:
            if reason := why_module(part):
                raise ModuleNotFoundError(f"No module named {name!r}: {reason}", name=name)
            return None
        return ModuleSpec(name, self)  # type: ignore[arg-type]  # not abstract

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        reason = ABSENT[spec.name.partition(".")[2]].reason
        made = ModuleType(spec.name, f"A part of PyTorch that is not here: {reason}.")
        made.__path__ = []  # of some of them the table has parts, too
        return made

    def exec_module(self, module: ModuleType) -> None:
        own = module.__name__.partition(".")[2]
        row = ABSENT[own]
        vars(module).update(names_of(module.__name__, row), __getattr__=explains(module.__name__))
        if row.shows:
            home = import_module(f"{self.package}.{row.shows}")
            vars(module).update({name: getattr(home, name) for name in ABSENT[row.shows].asks.split()})
        for name in ABSENT:
            if name.startswith(f"{own}."):  # its parts are attributes of it
                import_module(f"{__package__}.{name}")


class Explaining:
    """Finds the modules of which single names are missing as Python would, and has them say why."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in PATHS else None
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                vars(module).setdefault("__getattr__", explains(name))

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # of this module's own loader
        return spec


def enter(moved: Mapping[str, str]) -> None:
    """Makes the modules importable. Called once, when all that is imported early has been.

    moved: PyTorch's path of a module -> where the module stands.
    """
    sys.meta_path.append(AbsentFinder(__package__))
    sys.meta_path.insert(0, Explaining())
    for name in ABSENT:
        if name.startswith(("_C.", "backends.", "utils.")):  # others are made when they are asked for
            import_module(f"{__package__}.{name}")
    for name in MISSING:
        path = f"{__package__}.{name}"
        place = moved.get(path, path)
        PATHS.setdefault(place, []).append(name)
        if place in sys.modules:
            vars(sys.modules[place]).setdefault("__getattr__", explains(place))


NAMES = " ".join(name for name in ABSENT if "." not in name)  # of the package


def __getattr__(name: str) -> Any:
    if name not in ABSENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__package__}.{name}")
