# SPDX-License-Identifier: Apache-2.0
"""C++ and Python have the same functions: registrations, headers and docs/cpp_api.md agree."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
API = runpy.run_path(str(ROOT / "scripts" / "cpp_api.py"))
DECLARED = API["declared"]()
REGISTERED = API["registered"]()

# Functions of Python whose functor has another name, by the reason.
OTHER_NAMES = {
    "the functor takes its options as a struct": {
        "adam_": "AdamStep", "sgd_": "SgdStep", "rmsprop_": "RmspropStep",
        "adadelta_": "AdadeltaStep", "adagrad_": "AdagradStep", "lion_": "LionStep",
    },
    "the functor changes lists of tensors and gives a Status": {
        "multi_lerp_": "MultiLerp", "multi_scale_": "MultiScale", "multi_clamp_": "MultiClamp",
        "multi_fill_": "MultiFill", "multi_unscale_": "MultiUnscale",
        "update_scale_": "UpdateScale",
    },
    "an overload of Python that has its own name in C++": {
        "split": "SplitWithSizes", "tensor_split": "TensorSplitAt", "hsplit": "HsplitAt",
        "vsplit": "VsplitAt", "dsplit": "DsplitAt", "repeat_interleave": "RepeatedPlaces",
    },
    "an older function of PyTorch beside the one of flow.linalg": {
        "lu": "LuFactor", "inverse": "Inv", "pinverse": "Pinv", "chain_matmul": "MultiDot",
        "triangular_solve": "SolveTriangular", "nuclear_norm": "MatrixNorm",
        "linalg_norm": "MatrixNorm",
    },
    "numbers come among the tensors": {"fuse_elements": "FuseElementsOf"},
}  # fmt: skip

# Functors that no function of Python comes to by a name of its own, by the reason.
WITHOUT_PYTHON = {
    "formulas of gradients": r"\w+Backward|\w+Slope[AB]?|MulDiv|ClampInside|ClampShare|LossSlope|"
    "LossSum|SumToShape|ScaleRowsInto|CumProdFrom|LinearScan|SolveFactored|LogSumExpAs|NllLossRows|"
    "LuPermutation|IndexSum",
    "indices of Python, x[...], where negative places count from the end":
    "GatherPlaces|ScatterPlaces|ScatterAddPlaces|SelectPlaces|IndexDim|IndexDims|IndexDimInto|"
    "IndexFirst|IndexLeading|IndexLeadingInto|RavelMultiIndex|ValueFor|MaskedTake|MaskedPut",
    "what an argument chooses in Python: div(rounding_mode=), unique(return_counts=), "
    "scatter(reduce=), pow of a number, to(dtype), fuse.elements":
    "TruncDivide|TruncDivideInto|UniqueWithCounts|ScatterJoinInto|PowHalf|PowMinusHalf|Cast|"
    "FuseElements",
    "parts of functors, with shapes, dtypes and places as C++ has them":
    "WrapDims|CommonShape|ResultDType|ToTensor|TakeNumbers|PadDims|RollAlong",
    "placements and signatures, which methods of Python give it":
    "LocalToGlobal|FromShard|Boxed|ToGlobal|ToLocal",
}  # fmt: skip


def like_cpp(name):
    """lerp_ as LerpInto, in small letters."""
    name = name[:-1] + "into" if name.endswith("_") else name
    return name.replace("_", "")


def test_the_page_is_current():
    assert (ROOT / "docs" / "cpp_api.md").read_text(encoding="utf-8") == API["page"]()


@pytest.mark.parametrize("header", API["HEADERS"])
def test_headers_have_what_the_page_says(header):
    text = (ROOT / header).read_text(encoding="utf-8")
    code = "\n".join(line.partition("//")[0] for line in text.splitlines())
    missing = [n for n in API["HEADERS"][header] if not re.search(rf"\b{n}\b", code)]
    assert not missing
    assert set(API["NOTES"]) <= {n for names in API["HEADERS"].values() for n in names}


def test_each_function_has_its_functor():
    assert len(REGISTERED) > 550
    missing = sorted({(name, functor) for name, functor in REGISTERED if functor not in DECLARED})
    assert not missing, "functions of Python that no header declares for C++"


def test_functors_have_the_names_of_their_functions():
    listed = {pair for names in OTHER_NAMES.values() for pair in names.items()}
    primary = [f["name"] for f in API["ext"].list_functions() if not f["alias_of"]]
    other = set()
    for name, functor in REGISTERED:
        forms = {like_cpp(name), like_cpp(re.sub("^(linalg|special)_", "", name))}
        if name in primary and functor.lower() not in forms:
            other.add((name, functor))
    assert other == listed


def test_each_functor_has_its_function():
    reached = {functor for _, functor in REGISTERED}
    alone = sorted(set(DECLARED) - reached)
    unlisted = [n for n in alone if not any(re.fullmatch(p, n) for p in WITHOUT_PYTHON.values())]
    assert not unlisted, "functors of C++ that no function of Python comes to"
    for reason, pattern in WITHOUT_PYTHON.items():
        for part in pattern.split("|"):
            assert any(re.fullmatch(part, name) for name in alone), (reason, part)


@pytest.mark.parametrize("name", ["lerp_", "scatter_reduce_", "max", "cauchy_", "expand_as"])
def test_the_page_says_how_python_calls_it(name):
    page = (ROOT / "docs" / "cpp_api.md").read_text(encoding="utf-8")
    assert re.search(rf"\);  // (.*, )?{name}(,|$)", page, re.MULTILINE)
