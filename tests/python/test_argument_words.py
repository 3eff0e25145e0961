# SPDX-License-Identifier: Apache-2.0
"""An error names the argument that is wrong as the signature of the called function does, whichever
function inside was refused: of all public functions and methods, each argument wrong in turn."""

import inspect
import re

import pytest
from numerics import flow
from test_called_names import TARGETS

X = flow.ones(2, 3)
PLACES = flow.zeros(2, 3, dtype=flow.int64)
# What an argument without a default is, by its name.
GIVEN = {
    **dict.fromkeys("input self other weight src source target tensor x1 x2 tensor1 tensor2 anchor "
                    "positive negative input1 input2 std mean".split(), X),
    **dict.fromkeys(("dim", "dim0", "start", "diagonal"), 0),
    **dict.fromkeys("dim1 step k shifts num_groups num_samples length split_size_or_sections "
                    "fill_value value".split(), 1),
    **dict.fromkeys("end n m repeats chunks indices_or_sections steps".split(), 2),
    **dict.fromkeys(("size", "shape"), [2, 3]), **dict.fromkeys(("index", "indices"), PLACES),
    **dict.fromkeys(("mask", "condition"), X > 0), **dict.fromkeys(("dims", "pad"), [0]),
    **dict.fromkeys(("A", "LU", "LD", "LU_data"), flow.eye(3)),
    **dict.fromkeys(("B", "b"), flow.ones(3, 2)),
    **dict.fromkeys(("pivots", "LU_pivots"), flow.tensor([1, 2, 3], dtype=flow.int32)),
    **dict.fromkeys("vec vec2 values boundaries sorted_sequence".split(), flow.ones(3)),
    **dict.fromkeys(("query", "key"), flow.ones(1, 2, 4)), "tensors": [X, X], "p": 2.0, "q": 0.5,
    "exponent": 2.0, "mat": X, "mat1": flow.ones(2, 2), "mat2": X, "vec1": flow.ones(2),
    "batch1": flow.ones(1, 2, 2), "batch2": flow.ones(1, 2, 3), "normalized_shape": [3],
    "sizes": [1, 3], "reduce": "sum", "equation": "ij->ji", "dtype": flow.float32,
}  # fmt: skip
WRONG = [object(), "bad", None, 3.5, [object()], 99, -99, [99], flow.ones(7, 5), X > 0,
         flow.ones(4, 4, 4, dtype=flow.int64), float("nan")]  # fmt: skip
SUBJECT = re.compile(r"(?:argument )?'?([A-Za-z_]\w*)'?( -?\d+)? "
                     r"(has|is|must|holds|and|does not go) ")  # fmt: skip
# Words at the start of a message that are no argument's name: "CUDA is not available".
OTHERS = set("CUDA there one rows rank data dim element item index object tensor".split())


def copied(value):
    return value.clone() if isinstance(value, flow.Tensor) else value


def mistakes(label):
    """The wrong argument of each call that is refused, and the message without the name."""
    _, function = TARGETS[label]
    parameters = list(inspect.signature(function).parameters.values())
    by_place = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    method = label.startswith("Tensor.")
    given = {p.name: GIVEN[p.name] for p in parameters
             if p.default is p.empty and p.name in GIVEN}  # fmt: skip
    for parameter in parameters[method:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        for wrong in WRONG:
            named = {name: copied(value) for name, value in given.items()}
            named[parameter.name] = copied(wrong)
            args = [named.pop(p.name) for p in by_place if p.name in named]
            if method and not args:
                args = [named.pop(parameters[0].name, X.clone())]
            try:
                function(*args, **named)
            except NotImplementedError:
                pass
            except Exception as error:
                yield parameter.name, str(error).partition("(): ")[2]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("label", TARGETS)
def test_the_argument_is_called_as_in_the_signature(label):
    try:
        names = set(inspect.signature(TARGETS[label][1]).parameters)
    except ValueError:
        pytest.skip("a class: it has no signature")
    for argument, text in mistakes(label):
        found = SUBJECT.match(text)
        if found and not re.search(rf"\b{argument}\b", text):
            assert found[1] in names | OTHERS, (argument, text)


@pytest.mark.parametrize("call, text", [
    (lambda: flow.empty(-1), r"empty\(\): size is \[-1\]"),
    (lambda: X.view(7), r"view\(\): size \[7\] does not go"),
    (lambda: flow.unflatten(X, 1, [2, 2]), r"unflatten\(\): sizes \[2, 2, 2\] does not go"),
    (lambda: flow.narrow(X, 0, 5, 1), r"narrow\(\): start 5 is out of range \[-2, 2\]"),
    (lambda: flow.det(X), r"det\(\): input has shape \[2, 3\], expected square"),
    (lambda: flow.linalg.det(X), r"linalg.det\(\): A has shape \[2, 3\], expected square"),
    (lambda: flow.lu_solve(X, X, X), r"lu_solve\(\): LU_data has shape \[2, 3\]"),
    (lambda: flow.lu_solve(flow.ones(3, 1), flow.eye(2), flow.ones(2, dtype=flow.int32)),
     r"lu_solve\(\): b has shape \[3, 1\], expected 2 rows to go with a matrix of"),
    (lambda: flow.empty(2**40, 2**40), r"empty\(\): size \[1099511627776, 10.*\] has 2\^60 el"),
    (lambda: flow.zeros(2**62, 8), r"zeros\(\): size \[4611686018427387904, 8\] has 2\^60 elem"),
    (lambda: flow.full([2**62, 8], 1), r"full\(\): size \[4611686018427387904, 8\] has 2\^60 elem"),
    (lambda: flow.triangular_solve(flow.ones(2, 2), flow.eye(3)), r"triangular_solve\(\): b has"),
    (lambda: flow.addmm(X, X, X), r"addmm\(\): mat2 has shape \[2, 3\]"),
    (lambda: flow.addmm(X, flow.ones(2, 2) > 0, X),
     r"addmm\(\): mat1 has dtype bool and mat2 float32"),
    (lambda: flow.ones(2, dtype=flow.int64).exp_(), r"exp_\(\): the result has dtype float32"),
    (lambda: X.clone().addmv_(flow.ones(7, 3), flow.ones(3)), r"addmv_\(\): self has shape"),
    (lambda: flow.masked_fill(X, flow.ones(7, 5) > 0, 1), r"masked_fill\(\): (mask|input) has"),
    (lambda: flow.nn.functional.embedding(PLACES, X, 5), r"embedding\(\): padding_idx 5 is out of"),
    (lambda: flow.nn.functional.normalize(X, eps="a"), r"normalize\(\): argument .eps. must be a"),
    (lambda: flow.histogram(X, 3, weight=flow.ones(7)), r"histogram\(\): weight has shape \[7\]"),
    (lambda: flow._C.update_scale_(X > 0, X, X), r"update_scale_\(\): scale "),
    (lambda: flow._C.update_scale_(flow.ones(()), X > 0, X), r"update_scale_\(\): found_inf "),
    (lambda: flow.split(X, [5]), r"split\(\): split_size_or_sections is \[5\]"),
])  # fmt: skip
def test_the_words(call, text):
    with pytest.raises(Exception, match=f"^{text}"):
        call()


def test_the_scaler_names_its_argument():
    scaler = flow.amp.GradScaler("cpu")
    scaler.scale(flow.ones(()))
    with pytest.raises(ValueError, match="new_scale"):
        scaler.update(-1.0)
