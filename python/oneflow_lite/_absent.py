# SPDX-License-Identifier: Apache-2.0
"""Well-known names of PyTorch that are not here, and what to use instead.

An AttributeError for one of them says so, of a Python module (``public_face``), of a tensor
(``absent_methods``) and of an ``nn.Module`` (``hint``). So does the ImportError of ``from module
import name`` and of ``import module``; docs/what_there_is.md shows all of them. A test looks up the
names with a dot that ``instead`` speaks of: a module's of this package, ``Tensor.`` or ``flow.``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from opcode import opmap
from types import FrameType
from typing import Any, NamedTuple


class Absent(NamedTuple):
    """Names that are absent for one reason: their modules with the names in them."""

    what: str
    names: dict[str, str]
    instead: str


ABSENT = [
    Absent("other data sets, and workers", {
        "utils.data": "IterableDataset ConcatDataset ChainDataset StackDataset default_convert "
                      "get_worker_info IterDataPipe MapDataPipe functional_datapipe DataChunk",
    }, "utils.data.DataLoader goes over whatever has items and a length, utils.data.batches over "
       "arrays"),
    Absent("samplers", {
        "utils.data": "Sampler BatchSampler RandomSampler SequentialSampler SubsetRandomSampler "
                      "WeightedRandomSampler",
    }, "utils.data.DataLoader shuffles, and takes any iterable of places for a sampler; "
       "flow.randperm and flow.multinomial give places, with weights too"),
    Absent("convolutions and what goes with images", {
        "": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d "
            "cudnn_convolution adaptive_avg_pool1d avg_pool1d max_pool1d max_pool2d max_pool3d "
            "affine_grid_generator grid_sampler",
        "nn": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d MaxPool1d "
              "MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d AvgPool1d AvgPool2d "
              "AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d "
              "AdaptiveMaxPool2d AdaptiveMaxPool3d FractionalMaxPool2d FractionalMaxPool3d "
              "LPPool1d LPPool2d LPPool3d Upsample UpsamplingBilinear2d UpsamplingNearest2d "
              "PixelShuffle PixelUnshuffle ChannelShuffle Fold Unfold",
        "nn.functional": "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d "
                         "conv_transpose3d max_pool1d max_pool2d max_pool3d max_unpool1d "
                         "max_unpool2d max_unpool3d avg_pool1d avg_pool2d avg_pool3d "
                         "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
                         "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d "
                         "fractional_max_pool2d fractional_max_pool3d lp_pool1d lp_pool2d "
                         "lp_pool3d interpolate upsample upsample_bilinear upsample_nearest "
                         "affine_grid grid_sample fold unfold",
    }, "Tensor.unfold and flow.matmul where one is needed"),
    Absent("padding layers", {
        "nn": "ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ZeroPad2d ZeroPad3d "
              "ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d "
              "ReplicationPad3d CircularPad1d CircularPad2d CircularPad3d",
    }, "nn.functional.pad in a module's forward"),
    Absent("random slopes", {
        "": "rrelu", "nn": "RReLU", "nn.functional": "rrelu rrelu_",
    }, "nn.functional.leaky_relu with a slope that is drawn"),
    Absent("recurrent layers", {
        "": "lstm gru lstm_cell gru_cell rnn_tanh rnn_relu",
        "nn": "RNN LSTM GRU RNNBase RNNCell RNNCellBase LSTMCell GRUCell",
        "nn.utils.rnn": "PackedSequence invert_permutation pack_padded_sequence pack_sequence "
                        "pad_packed_sequence unpack_sequence",
    }, "nn.Transformer, or a module that loops over nn.Linear"),
    Absent("normalization over the batch", {
        "": "batch_norm native_batch_norm instance_norm",
        "nn": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d "
              "InstanceNorm3d LocalResponseNorm CrossMapLRN2d",
        "nn.functional": "batch_norm instance_norm local_response_norm",
        "nn.utils": "fuse_conv_bn_eval fuse_linear_bn_eval convert_conv2d_weight_memory_format",
    }, "nn.LayerNorm, nn.RMSNorm or nn.GroupNorm"),
    Absent("functions of layers under flow", {
        "": "group_norm pairwise_distance",
    }, "the function of that name in nn.functional, such as nn.functional.group_norm"),
    Absent("old names of mixed precision", {
        "": "set_autocast_enabled GradScaler",
    }, "flow.autocast and amp.GradScaler"),
    Absent("compilers and captured programs", {
        "": "compile compiler jit fx export onnx func vmap cond while_loop ScriptModule library "
            "package overrides hub classes",
        "nn": "modules common_types", "nn.Module": "compile",
        "nn.utils": "stateless", "autograd": "forward_ad",
        "cuda": "make_graphed_callables graph_pool_handle graphs jiterator",
    }, "nothing needs compiling; flow.fuse makes kernels of lambdas around softmax and the norms, "
       "cuda.graph captures, autograd.functional has jvp, vjp, jacobian and hessian"),
    Absent("several processes", {
        "": "multiprocessing futures is_distributed monitor",
        "nn": "DataParallel parallel", "nn.Module": "share_memory", "cuda": "nccl comm ipc_collect",
        "distributed": "init_process_group destroy_process_group get_backend is_nccl_available "
                       "is_gloo_available is_mpi_available is_torchelastic_launched Backend "
                       "ProcessGroup Work TCPStore FileStore HashStore PrefixStore new_subgroups "
                       "get_process_group_ranks get_global_rank get_group_rank isend irecv P2POp "
                       "batch_isend_irecv send_object_list recv_object_list gather_object "
                       "scatter_object_list monitored_barrier all_reduce_coalesced "
                       "all_gather_coalesced reduce_op device_mesh DeviceMesh init_device_mesh "
                       "fsdp rpc elastic launch run pipelining tensor",
        "Tensor": "share_memory_ is_shared is_distributed",
    }, "flow.distributed has init, batch, collectives and DataParallel, Tensor.to_global spreads "
       "tensors over processes, as docs/parallel_training.md says"),
    Absent("probability distributions", {
        "": "distributions binomial poisson quasirandom",
    }, "flow.rand, flow.randn, flow.normal, flow.bernoulli, flow.multinomial and "
       "Tensor.exponential_; log_softmax gives log-probabilities"),
    Absent("other devices", {
        "": "accelerator mps xpu mtia cpu get_device_module get_default_device",
        "nn.Module": "xpu ipu mtia",
        "Tensor": "xpu ipu is_mps is_xpu is_xla is_mkldnn to_mkldnn",
    }, "flow.cuda.is_available() and device=\"cuda\"; flow.device names \"cpu\", \"cuda\" and "
       "\"meta\""),
    Absent("other dtypes and layouts", {
        "": "complex32 complex64 complex128 chalf cfloat cdouble uint16 uint32 uint64 "
            "float8_e4m3fn float8_e5m2 bits8 qint8 quint8 quantization ao per_tensor_affine "
            "quantize_per_tensor quantize_per_channel fake_quantize_per_channel_affine dequantize "
            "int_repr q_scale sparse sparse_coo sparse_coo_tensor sparse_csr_tensor "
            "sparse_compressed_tensor hspmm masked nested channels_last channels_last_3d "
            "empty_permuted empty_strided set_default_dtype set_default_device "
            "set_default_tensor_type",
        "nn": "quantized quantizable qat intrinsic", "cuda": "sparse",
        "utils": "mkldnn",
        "Tensor": "coalesce is_coalesced indices values dense_dim sparse_dim sparse_mask "
                  "sparse_resize_ row_indices smm sspaddmm to_dense to_sparse to_sparse_bsc "
                  "to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr to_padded_tensor "
                  "is_sparse_csr is_nested is_quantized dequantize int_repr q_scale q_zero_point "
                  "q_per_channel_axis qscheme new_empty_strided dim_order cfloat cdouble chalf",
    }, "dtype= and device= say per call what is made; there are bool, integers and floats of 8 to "
       "64 bits, all dense"),
    Absent("complex numbers", {
        "": "complex polar imag conj is_conj resolve_conj is_neg resolve_neg "
            "view_as_complex view_as_real view_copy adjoint",
        "Tensor": "real imag conj conj_physical is_conj resolve_conj is_neg resolve_neg adjoint",
    }, "two real tensors, such as r * flow.cos(a) and r * flow.sin(a); Tensor.mT transposes"),
    Absent("linear algebra of complex numbers, and the rarer one", {
        "": "geqrf lobpcg orgqr ormqr pca_lowrank svd_lowrank vander",
        "linalg": "eig eigvals householder_product ldl_factor ldl_factor_ex ldl_solve",
        "Tensor": "geqrf orgqr ormqr lstsq solve symeig eig renorm_",
    }, "flow.linalg.eigh, flow.linalg.svd, flow.linalg.qr, flow.linalg.lstsq, flow.linalg.vander, "
       "flow.outer and flow.addmm"),
    Absent("transforms and windows", {
        "": "fft signal stft istft bartlett_window blackman_window hamming_window "
            "hann_window kaiser_window",
        "Tensor": "stft istft",
    }, "flow.matmul with a matrix of the transform; NumPy over x.numpy()"),
    Absent("other functions of elements", {
        "": "igamma igammac",
        "special": "gammainc gammaincc airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1",
        "Tensor": "igamma igamma_ polygamma polygamma_ mvlgamma_ frexp_",
    }, "NumPy's or SciPy's over x.numpy(); flow.register_op gives such a function a gradient"),
    Absent("other ways to gather, scatter and count", {
        "": "histogramdd", "Tensor": "as_strided_scatter",
    }, "flow.histogram, flow.select_scatter, flow.scatter_reduce, flow.index_add and item "
       "assignment to a clone"),
    Absent("copies of views, and ranges, by other names", {
        "": "frombuffer from_file expand_copy narrow_copy slice_copy unfold_copy range "
            "unsafe_split fix",
        "Tensor": "narrow_copy slice_inverse unsafe_split fix fix_",
    }, "flow.tensor, flow.from_numpy, flow.arange, flow.linspace, flow.vstack, flow.chunk, "
       "flow.split, flow.trunc, Tensor.sum and Tensor.clone"),
    Absent("changes of shape and sign in place", {
        "Tensor": "as_strided_ resize resize_ resize_as resize_as_ set_ rename rename_ lt_ le_ gt_ "
                  "ge_ eq_ ne_ less_ less_equal_ greater_ greater_equal_ not_equal_",
    }, "the function without the underscore, such as Tensor.lt; Tensor.data may be assigned"),
    Absent("names of dims", {
        "": "align_tensors", "Tensor": "name names align_as align_to has_names refine_names",
    }, "dims have numbers; flow.einsum has letters for them"),
    Absent("memory that is shared or pinned", {
        "": "storage Storage UntypedStorage TypedStorage FloatStorage ByteStorage is_storage",
        "cuda": "CUDAPluggableAllocator MemPool caching_allocator_alloc caching_allocator_delete "
                "change_current_allocator get_allocator_backend use_mem_pool "
                "set_per_process_memory_fraction",
        "Tensor": "storage storage_type untyped_storage is_set_to is_same_size pin_memory "
                  "is_pinned",
    }, "Tensor.data_ptr and Tensor.storage_offset tell where elements lie; copies are ordered by "
       "the stream"),
    Absent("functions of Python per element or per tensor", {
        "Tensor": "apply_ map_ map2_ as_subclass module_load reinforce is_inference",
    }, "flow.register_op or autograd.Function; flow.where for conditions"),
    Absent("layers that guess or wrap", {
        "nn": "LazyLinear LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d "
              "LazyConvTranspose2d LazyConvTranspose3d LazyBatchNorm1d LazyBatchNorm2d "
              "LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d "
              "UninitializedBuffer UninitializedParameter Container factory_kwargs",
        "nn.utils": "weight_norm remove_weight_norm spectral_norm remove_spectral_norm parametrize "
                    "parametrizations prune skip_init init",
    }, "give sizes where a layer is made; a module's forward can compute its weights"),
    Absent("other ways to initialize and clip", {
        "nn.init": "dirac_ sparse_ constant uniform normal orthogonal xavier_uniform xavier_normal "
                   "kaiming_uniform kaiming_normal",
        "nn.utils": "clip_grad_norm clip_grads_with_norm_ get_total_norm",
    }, "the name with an underscore at its end: nn.init.xavier_uniform_, nn.utils.clip_grad_norm_"),
    Absent("other ways to look into modules", {
        "nn.Module": "register_backward_hook call_super_init dump_patches T_destination",
    }, "nn.Module.register_full_backward_hook and nn.Module.register_state_dict_post_hook"),
    Absent("other optimizers", {
        "optim": "Adafactor Adamax NAdam RAdam ASGD Muon Rprop SparseAdam",
    }, "optim.SGD, optim.Adam, optim.AdamW, or a subclass of optim.Optimizer"),
    Absent("other schedules", {"optim.swa_utils": "SWALR"},
       "optim.lr_scheduler.OneCycleLR, or optim.lr_scheduler.LambdaLR of any formula; "
       "optim.lr_scheduler.SequentialLR puts one after another"),
    Absent("means of a batch for an average", {"optim.swa_utils": "update_bn"},
           "nothing needs them: optim.swa_utils.AveragedModel copies or averages the buffers"),
    Absent("other embeddings and losses", {
        "": "embedding_bag bilinear ctc_loss",
        "nn": "EmbeddingBag Bilinear CTCLoss NLLLoss2d AdaptiveLogSoftmaxWithLoss",
        "nn.functional": "embedding_bag bilinear ctc_loss",
    }, "compose it of functions; autograd differentiates the composition"),
    Absent("attention as one function", {"nn.functional": "multi_head_attention_forward"},
           "nn.MultiheadAttention or nn.functional.scaled_dot_product_attention"),
    Absent("another way to random numbers' states", {"cuda": "random"},
           "flow.random and the functions of its names in flow.cuda, or cuda.default_generators"),
    Absent("switches", {
        "": "is_deterministic_algorithms_warn_only_enabled get_deterministic_debug_mode "
            "set_deterministic_debug_mode set_float32_matmul_precision "
            "get_float32_matmul_precision set_num_interop_threads get_num_interop_threads "
            "set_flush_denormal set_printoptions set_warn_always is_warn_always_enabled "
            "is_inference is_inference_mode_enabled vitals_enabled",
        "nn": "backends", "utils": "deterministic",
        "autograd": "set_multithreading_enabled",
        "cuda": "set_sync_debug_mode get_sync_debug_mode tunable is_bf16_supported "
                "is_tf32_supported",
    }, "flow.use_deterministic_algorithms names the one exception to results that are the same "
       "twice; "
       "flow.set_num_threads sets the CPU's threads, "
       "flow.is_grad_enabled tells whether gradients are recorded"),
    Absent("switches of other libraries", {
        "backends": "cusparselt fp32_precision mha mkl mkldnn nnpack openmp opt_einsum quantized "
                    "xeon xnnpack",
    }, "flow.backends has those of cpu, cuda, cudnn and mps, and nothing else can be switched"),
    Absent("watching and building", {
        "": "testing", "nn": "grad",
        "utils": "cpp_extension tensorboard benchmark bottleneck collect_env flop_counter "
                 "module_tracker show_pickle throughput_benchmark model_dump get_cpp_backtrace "
                 "bundled_inputs mobile_optimizer model_zoo backend_registration hooks weak "
                 "swap_tensors dlpack file_baton",
        "autograd": "profiler profiler_util detect_anomaly anomaly_mode set_detect_anomaly "
                    "grad_mode variable NestedIOFunction",
        "autograd.graph": "Node GradientEdge get_gradient_edge increment_version "
                          "allow_mutation_on_saved_tensors disable_saved_tensors_hooks "
                          "register_multi_grad_hook",
        "utils.checkpoint": "set_checkpoint_early_stop create_selective_checkpoint_contexts "
                            "CheckpointPolicy",
        "profiler": "ProfilerActivity ProfilerAction schedule "
                    "tensorboard_trace_handler supported_activities kineto_available itt "
                    "ExecutionTraceObserver DeviceType",
        "cuda": "nvtx profiler cudart check_error clock_rate device_memory_used memory_usage "
                "power_draw temperature utilization list_gpu_processes memory_snapshot memory "
                "memory_summary memory_stats_as_nested_dict",
    }, "utils.load_inline compiles ops, flow.profiler.profile times them, flow.check_op and "
       "autograd.gradcheck test them, Tensor.register_hook sees gradients"),
    Absent("other names of CUDA's parts", {
        "": "Event Stream",
        "cuda": "ExternalStream StreamContext streams set_stream default_stream device_of "
                "get_stream_from_external current_blas_handle can_device_access_peer "
                "get_arch_list get_device_capability get_gencode_flags init is_initialized "
                "is_current_stream_capturing max_memory_reserved max_memory_cached memory_cached "
                "mem_get_info reset_accumulated_memory_stats reset_max_memory_allocated "
                "reset_max_memory_cached OutOfMemoryError BoolTensor ByteTensor CharTensor "
                "DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor",
    }, "cuda.Stream, cuda.Event, cuda.stream, cuda.get_device_properties, cuda.memory_stats and "
       "flow.OutOfMemoryError; tensors of a dtype by device=\"cuda\""),
    Absent("types that say little here", {
        "": "types typename parse_type return_types version torch_version unify_type_list Tag Use "
            "Value SymInt SymFloat SymBool sym_int sym_float sym_max sym_min sym_not",
    }, "flow.__version__, flow.dtype, flow.Size and Python's own numbers"),
    Absent("questions of one element", {
        "": "is_nonzero get_device", "Tensor": "is_nonzero is_signed",
    }, "bool(x), Tensor.get_device and flow.dtype.is_signed"),
]  # fmt: skip

_REASONS = {
    (module, name): absent
    for absent in ABSENT
    for module, names in absent.names.items()
    for name in names.split()
}


def hint(within: str, name: str) -> str:
    """What an AttributeError adds of a name that is absent on purpose; else nothing."""
    absent = _REASONS.get((within, name))
    if absent is None:
        return ""
    return (f", on purpose ({absent.what}); instead: {absent.instead} "
            "(all in docs/what_there_is.md)")  # fmt: skip


def _is_imported(frame: FrameType) -> bool:
    """Whether the frame is at a ``from module import name``, which drops an AttributeError's text.

    A ``__getattr__`` with a frame of its own between the two hands the name over.
    """
    while frame.f_code.co_name == "__getattr__" and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]


class _AbsentModules:
    """The last to be asked for a module: says of one that is absent on purpose what to use."""

    @staticmethod
    def find_spec(fullname: str, path: Any, target: Any = None) -> None:
        package, _, name = fullname.rpartition(".")
        if package.partition(".")[0] == "oneflow_lite":
            why = hint(package.partition(".")[2], name)
            if why:
                raise ModuleNotFoundError(f"No module named {fullname!r}{why}", name=fullname)


def public_face(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module of this package.

    The first says of what is absent what to use instead. The second shows what ``__all__`` names,
    not what the module imports.
    """
    within = module.partition(".")[2]

    def __getattr__(name: str) -> Any:
        why = hint(within, name)
        if why and _is_imported(sys._getframe(1)):
            raise ImportError(f"cannot import name {name!r} from {module!r}{why}", name=module)
        text = f"module {module!r} has no attribute {name!r}{why}"
        raise AttributeError(text, name=name, obj=sys.modules[module])

    def __dir__() -> list[str]:
        here = sys.modules[module]
        return sorted({*here.__all__, *(name for name in vars(here) if name.startswith("__"))})

    return __getattr__, __dir__


sys.meta_path.append(_AbsentModules())


class _AbsentAttribute:
    """Stands for an absent method, and raises as if it were not there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        text = f"{owner.__name__!r} object has no attribute {self._name!r}"
        text += hint("Tensor", self._name)
        raise AttributeError(text, name=self._name, obj=owner if instance is None else instance)


def absent_methods() -> type:
    """A class of what tensors lack, for the last place in which attributes of Tensor are looked up.

    There ``dir`` does not see them, and what a tensor has costs no time.
    """
    names = (name for module, name in _REASONS if module == "Tensor")
    return type("Absent", (), {"__slots__": (), **{n: _AbsentAttribute(n) for n in names}})
