# SPDX-License-Identifier: Apache-2.0
"""Writes docs/python_callables.md: which functions of tensors are functions of Python, and why.

.venv/bin/python scripts/python_callables.py         # to the standard output
.venv/bin/python scripts/python_callables.py PATH    # to a file

REASONS says why each one stays. One without a reason is an error: it is to be a functor in C++.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path

import oneflow_lite as flow

HEAD = """\
# Functions of Python

`flow`, `nn.functional` and `Tensor` have {count} callables that take or give tensors and are
functions of Python: aliases, methods and in-place forms are counted one by one. Every other one is
a C++ function, which a C++ caller has too ([cpp_api.md](cpp_api.md)). Python keeps what parses
text, plans indices or gives Python structures ([architecture.md](architecture.md)).
`scripts/python_callables.py` writes this page from the package and its own table of reasons; a test
finds the functions by introspection and compares.

| reason | callables |
|---|---|"""

# What stays, by reason. A name may have several places: `flow`, `F` (nn.functional), `Tensor`.
REASONS = {
    "reads Python data: arrays, nested lists, buffers": [
        "flow.as_tensor", "flow.asarray", "Tensor.new", "Tensor.new_tensor",
    ],
    "parses an equation": ["flow.einsum"],
    "plans an index of tensors, None and masks": [
        "flow.index_put", "Tensor.index_put", "Tensor.index_put_",
    ],
    "gives a tuple or a tensor, as its arguments say": [
        "flow.nonzero", "Tensor.nonzero", "flow.where", "Tensor.where", "flow.unique",
        "Tensor.unique", "flow.max", "Tensor.max", "flow.min", "Tensor.min", "flow.median",
        "Tensor.median", "flow.nanmedian", "Tensor.nanmedian", "flow.mode", "Tensor.mode",
        "flow.kthvalue", "Tensor.kthvalue", "flow.std_mean", "flow.var_mean",
    ],
    "gives a Python number or bool": [
        "flow.allclose", "Tensor.allclose",
    ],
    "reads a device and a dtype in any order, as Python programs write them": [
        "Tensor.to", "Tensor.cpu", "Tensor.cuda", "Tensor.type",
    ],
    "another name of Tensor.to": [
        f"Tensor.{name}" for name in ("double", "float", "half", "bfloat16", "long", "int", "short",
                                      "char", "byte", "bool")
    ],
    "takes its dtype and device from a tensor for a function of flow": [
        "Tensor.new_empty", "Tensor.new_zeros", "Tensor.new_ones", "Tensor.new_full",
    ],
    "takes numbers and tensors in any mixture": [
        "flow.normal", "flow.isin", "flow.bucketize",
        "flow.searchsorted", "flow.tensordot", "flow.gradient",
    ],
    "calls a function of Python": ["F.triplet_margin_with_distance_loss"],
    "takes PyTorch's older arguments": [
        "flow.std", "Tensor.std", "flow.var", "Tensor.var", "F.huber_loss", "F.l1_loss",
        "F.mse_loss", "F.smooth_l1_loss", "flow.norm", "Tensor.norm",
    ],
    "chooses among functors by the text of an argument": [
        "flow.scatter", "Tensor.scatter", "Tensor.scatter_",
    ],
    "a composite whose speed is that of the functors in it": [
        "flow.cosine_similarity", "F.cosine_similarity", "F.pairwise_distance", "F.normalize",
        "F.group_norm", "F.gumbel_softmax", "F.one_hot",
        "flow.dist", "Tensor.dist", "flow.histogram", "Tensor.histogram",
        "flow.quantile",
        "Tensor.quantile", "flow.nanquantile", "Tensor.nanquantile", "flow.bincount",
        "Tensor.bincount", "F.scaled_dot_product_attention",
    ],
    "renews rows of the table (max_norm) before it looks them up": ["F.embedding"],
}  # fmt: skip

# Functions of Python that compute nothing with tensors: switches, files, dtypes, questions, states
# of random generators.
NOT_COUNTED = {
    "flow": "broadcast_shapes can_cast check_op get_default_dtype "
            "get_num_threads is_complex is_floating_point is_tensor load load_library manual_seed "
            "numel promote_types register_op result_type save set_num_threads "
            "use_deterministic_algorithms are_deterministic_algorithms_enabled "
            "get_autocast_dtype is_autocast_enabled get_rng_state initial_seed seed set_rng_state",
    "Tensor": "get_device is_complex",
    "F": "",
}  # fmt: skip
PLACES = {"flow": flow, "F": flow.nn.functional, "Tensor": flow.Tensor}


def found() -> list[str]:
    """The public functions of Python in the three places, less those that are not counted."""
    names = []
    for place, holder in PLACES.items():
        left_out = NOT_COUNTED[place].split()
        names += [
            f"{place}.{name}"
            for name in sorted({*dir(holder), *(() if place == "F" else vars(holder))})
            if not name.startswith("_")
            and isinstance(getattr(holder, name, None), types.FunctionType)
            and name not in left_out
        ]
    return names


def without_reason() -> list[str]:
    return sorted(set(found()) - {name for names in REASONS.values() for name in names})


def page() -> str:
    """The whole page."""
    if without_reason():
        raise SystemExit(f"no reason why these are functions of Python: {without_reason()}")
    there = set(found())
    lines = [HEAD.format(count=len(there))]
    for reason, names in REASONS.items():
        shown = ", ".join(f"`{name}`" for name in sorted(names) if name in there)
        if shown:
            lines.append(f"| {reason} | {shown} |")
    lines.append("\n`F` stands for `nn.functional`.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
