# SPDX-License-Identifier: Apache-2.0
"""Well-known names of PyTorch that are not here, and what to use instead.

An AttributeError for one of them says so; docs/what_there_is.md shows all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class Absent(NamedTuple):
    """Names that are absent for one reason: their modules with the names in them."""

    what: str
    names: dict[str, str]
    instead: str


ABSENT = [
    Absent("data loaders", {
        "utils.data": "DataLoader Dataset IterableDataset TensorDataset ConcatDataset Subset "
                      "Sampler random_split default_collate",
    }, "utils.data.batches goes over NumPy arrays in shuffled batches"),
    Absent("convolutions and what goes with images", {
        "": "conv1d conv2d conv3d",
        "nn": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d MaxPool1d "
              "MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d "
              "AdaptiveAvgPool2d AdaptiveMaxPool2d Upsample PixelShuffle Fold Unfold Dropout1d "
              "Dropout2d Dropout3d",
        "nn.functional": "conv1d conv2d conv3d conv_transpose2d max_pool1d max_pool2d avg_pool2d "
                         "adaptive_avg_pool2d interpolate grid_sample fold unfold",
    }, "Tensor.unfold and matmul where one is needed"),
    Absent("recurrent layers", {
        "": "lstm gru", "nn": "RNN LSTM GRU RNNCell LSTMCell GRUCell", "nn.utils": "rnn",
    }, "nn.Transformer, or a module that loops over Linear"),
    Absent("normalization over the batch", {
        "nn": "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d "
              "InstanceNorm3d LocalResponseNorm",
        "nn.functional": "batch_norm instance_norm local_response_norm",
    }, "nn.LayerNorm, nn.RMSNorm or nn.GroupNorm"),
    Absent("mixed precision by itself", {
        "": "autocast amp GradScaler", "cuda": "amp",
    }, "model.to(flow.bfloat16), or x.half() where it is wanted; the row ops compute in float32"),
    Absent("compilers and captured programs", {
        "": "compile jit fx export onnx func vmap",
    }, "nothing needs compiling; flow.fuse makes kernels of lambdas around softmax and the norms, "
       "cuda.graph captures, autograd.functional has jvp, vjp, jacobian and hessian"),
    Absent("several processes", {
        "": "distributed multiprocessing", "nn": "DataParallel parallel", "cuda": "nccl",
    }, "one process computes; op definitions declare how they split (flow.ops.describe)"),
    Absent("other dtypes and layouts", {
        "": "complex64 complex128 sparse sparse_coo_tensor quantization ao uint16 float8_e4m3fn "
            "set_default_dtype set_default_device",
    }, "dtype= and device= say per call what is made; there are bool, integers and floats of 16 to "
       "64 bits, all dense"),
    Absent("linear algebra and transforms", {
        "": "linalg fft special svd inverse det cholesky stft",
    }, "matmul and einsum are here; for the rest, NumPy over x.numpy()"),
    Absent("other functions of elements", {
        "": "acos acosh asin asinh atan atan2 atanh arccos arcsin arctan arctan2 copysign digamma "
            "erfc erfinv float_power gcd heaviside i0 lcm ldexp lgamma nextafter polygamma sgn "
            "signbit sinc",
    }, "NumPy's or SciPy's over x.numpy(); flow.register_op gives such a function a gradient"),
    Absent("other ways to gather and scatter", {
        "": "index_reduce histc unique_consecutive put",
    }, "scatter_reduce, index_add, bincount, sort and unique"),
    Absent("layers that guess or wrap", {
        "nn": "LazyLinear LazyConv1d LazyConv2d",
        "nn.utils": "weight_norm spectral_norm parametrize parametrizations prune",
    }, "give sizes where a layer is made; a module's forward can compute its weights"),
    Absent("other optimizers", {
        "optim": "RMSprop Adagrad Adadelta Adamax NAdam RAdam ASGD LBFGS Rprop SparseAdam "
                 "swa_utils",
    }, "optim.SGD, optim.Adam, optim.AdamW, or a subclass of optim.Optimizer"),
    Absent("other embeddings and losses", {
        "nn": "EmbeddingBag Bilinear CTCLoss TripletMarginLoss MarginRankingLoss "
              "CosineEmbeddingLoss GaussianNLLLoss PoissonNLLLoss HingeEmbeddingLoss "
              "SoftMarginLoss MultiMarginLoss MultiLabelMarginLoss",
        "nn.functional": "embedding_bag bilinear ctc_loss triplet_margin_loss margin_ranking_loss "
                         "cosine_embedding_loss gaussian_nll_loss poisson_nll_loss "
                         "hinge_embedding_loss soft_margin_loss multi_margin_loss",
    }, "compose it of functions; autograd differentiates the composition"),
    Absent("switches", {
        "": "backends use_deterministic_algorithms set_float32_matmul_precision",
    }, "results are deterministic as they are; flow.set_num_threads sets the CPU's threads"),
    Absent("watching and building", {
        "utils": "cpp_extension tensorboard", "autograd": "profiler detect_anomaly",
        "cuda": "nvtx manual_seed manual_seed_all",
    }, "utils.load_inline compiles ops, flow.profiler times them, manual_seed seeds all devices"),
]  # fmt: skip

_REASONS = {
    (module, name): absent
    for absent in ABSENT
    for module, names in absent.names.items()
    for name in names.split()
}


def absent_names(module: str) -> Callable[[str], Any]:
    """A ``__getattr__`` for a module of this package, which says what to use instead."""
    within = module.partition(".")[2]

    def __getattr__(name: str) -> Any:
        text = f"module {module!r} has no attribute {name!r}"
        if absent := _REASONS.get((within, name)):
            text += f", on purpose ({absent.what}); instead: {absent.instead}"
            text += " (all in docs/what_there_is.md)"
        raise AttributeError(text, name=name, obj=sys.modules[module])

    return __getattr__
