# SPDX-License-Identifier: Apache-2.0
"""axis is dim, keepdims is keepdim: in every function and method; older orders of arguments."""

import inspect
import warnings

import numpy as np
import pytest
from numerics import flow, host

X = flow.tensor(np.random.default_rng(3).standard_normal((2, 2, 3)))
I = flow.tensor([[[0, 1, 0]], [[1, 1, 0]]])  # noqa: E741
ONE = flow.tensor([0, 1])
SUM_DIMS = {"dim": 1, "keepdim": True}
# What besides the tensor each function gets: by place, and what is named otherwise too.
CALLS = {
    **dict.fromkeys(("all", "any"), ((), SUM_DIMS)),
    **dict.fromkeys("amax amin aminmax argmax argmin logsumexp max mean median min mode nanmean "
                    "nanmedian nansum norm prod std std_mean sum var var_mean".split(),
                    ((), SUM_DIMS)),
    **dict.fromkeys("argsort count_nonzero cummax cummin cumprod cumsum diff log_softmax "
                    "logcumsumexp softmax softmin sort squeeze unbind unique unique_consecutive "
                    "unsqueeze cumprod_ cumsum_ squeeze_ unsqueeze_ "
                    "F.normalize F.softmin size stride".split(), ((), {"dim": 1})),
    **dict.fromkeys(("cat", "concat", "concatenate", "stack"), ("tensors", {"dim": 1})),
    **dict.fromkeys("swapaxes swapdims transpose swapaxes_ swapdims_ transpose_".split(),
                    ((), {"dim0": 0, "dim1": 2})),
    **dict.fromkeys(("chunk", "split", "tensor_split", "topk", "repeat_interleave"),
                    ((2,), {"dim": 1})),
    **dict.fromkeys(("gather", "take_along_dim"), ({"index": I, "indices": I}, {"dim": 1})),
    **dict.fromkeys(("index_add", "index_copy", "index_add_", "index_copy_"),
                    ({"index": ONE, "source": X}, {"dim": 1})),
    **dict.fromkeys(("scatter", "scatter_add", "scatter_", "scatter_add_"),
                    ({"index": I, "src": X}, {"dim": 1})),
    "scatter_reduce": ({"index": I, "src": X, "reduce": "sum"}, {"dim": 1}),
    "cosine_similarity": ((X,), {"dim": 1}), "diag_embed": ((), {"dim1": 0, "dim2": 2}),
    "diagonal": ((), {"dim1": 0, "dim2": 1}), "flip": ((), {"dims": (0, 2)}),
    "tile": ((), {"dims": (2, 1)}),
    **dict.fromkeys(("index_fill", "index_fill_"),
                    ({"index": ONE, "value": 3.0}, {"dim": 1})),
    "index_select": ({"index": ONE}, {"dim": 1}), "kthvalue": ((2,), SUM_DIMS),
    "narrow": ({"start": 0, "length": 1}, {"dim": 1}), "permute": ((), {"dims": (2, 0, 1)}),
    "quantile": ((0.5,), SUM_DIMS), "nanquantile": ((0.5,), SUM_DIMS),
    "roll": ((1,), {"dims": 1}), "rot90": ((1,), {"dims": (0, 2)}),
    "select": ({"index": 1}, {"dim": 1}), "split_with_sizes": (([1, 1],), {"dim": 1}),
    "tensordot": ((X,), {"dims": ([1, 0], [1, 0])}), "unflatten": ({"sizes": (3, 1)}, {"dim": 2}),
    "F.gumbel_softmax": ((), {"dim": 1}),
    "F.pairwise_distance": ((X,), {"keepdim": True}), "vector_norm": ((2,), SUM_DIMS),
    **dict.fromkeys(("trapezoid", "trapz", "cumulative_trapezoid", "gradient"), ((), {"dim": 1})),
    "unsafe_chunk": ((2,), {"dim": 1}), "renorm": ({"p": 2, "maxnorm": 1.0}, {"dim": 1}),
    **dict.fromkeys(("scatter_reduce_",), ({"index": I, "src": X, "reduce": "sum"}, {"dim": 1})),
    **dict.fromkeys(("index_reduce", "index_reduce_"),
                    ({"index": ONE, "source": X, "reduce": "prod"}, {"dim": 1})),
    "select_scatter": ({"src": X[:, 0], "index": 0}, {"dim": 1}),
    "diagonal_scatter": ({"src": X[:, 0, :2]}, {"dim1": 0, "dim2": 2}), "glu": ((), {"dim": 1}),
    "swiglu": ((), {"dim": 1}),
    "slice_scatter": ({"src": X}, {"dim": 1}),
    "cross": ((X,), {"dim": 2}), "nuclear_norm": ((), {"dim": (0, 2), "keepdim": True}),
}  # fmt: skip
NUMPYS = {"dim": "axis", "dims": "axis", "keepdim": "keepdims", "dim0": "axis0", "dim1": "axis1",
          "dim2": "axis2"}  # fmt: skip


def numpys_names(name, options):
    if "dim0" not in options and name not in ("diagonal", "diag_embed", "diagonal_scatter"):
        return {NUMPYS[n]: v for n, v in options.items()}
    return {n.replace("dim", "axis"): v for n, v in options.items()}


def parts(result):
    """The tensors of a result as arrays, other parts as they are."""
    one = isinstance(result, flow.Tensor) or not isinstance(result, tuple | list)
    return [host(t) if isinstance(t, flow.Tensor) else t for t in ([result] if one else result)]


def same(a, b):
    a, b = parts(a), parts(b)
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def drawn(function, *args, **kwargs):
    flow.manual_seed(1)  # gumbel_softmax
    return function(*args, **kwargs)


def forms(name):
    """The function, and the method, of a name; how the arguments by place begin."""
    here = flow.nn.functional if name.startswith("F.") else flow
    name = name.removeprefix("F.")
    if hasattr(here, name):
        yield getattr(here, name), True
    if here is flow and hasattr(flow.Tensor, name):
        yield getattr(flow.Tensor, name), False


@pytest.mark.parametrize("name", CALLS)
def test_numpys_names_mean_the_same(name):
    given, options = CALLS[name]
    for function, _ in forms(name):
        first = [X, X] if given == "tensors" else X.clone()
        args = given if isinstance(given, tuple) else ()
        named = {} if not isinstance(given, dict) else dict(given)
        if name == "gather":
            named.pop("indices")
        if name == "take_along_dim":
            named.pop("index")
        expected = drawn(function, first, *args, **named, **options)
        again = [X, X] if given == "tensors" else X.clone()
        got = drawn(function, again, *args, **named, **numpys_names(name, options))
        assert same(got, expected), function
        for twice in numpys_names(name, options):
            with pytest.raises(TypeError):
                function(again, *args, **named, **options, **{twice: options.get("dim", 0)})


def takes_dims(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name in NUMPYS and p.kind is not p.VAR_POSITIONAL for p in parameters)


def test_no_function_is_left_out():
    found = {n for n in flow.__all__ if takes_dims(getattr(flow, n))}
    found |= {
        n for n in dir(flow.Tensor) if n[0] != "_" and takes_dims(getattr(flow.Tensor, n, None))
    }
    found |= {f"F.{n}" for n in flow.nn.functional.__all__
              if takes_dims(getattr(flow.nn.functional, n)) and n not in found}  # fmt: skip
    assert found - set(CALLS) == set()


def test_what_numpys_functions_call():
    x, a = flow.tensor(host(X)), host(X)
    for name in ("sum", "prod", "mean", "any", "all", "std", "var", "max", "min", "amax", "amin",
                 "argmax", "argmin", "cumsum", "cumprod", "count_nonzero"):  # fmt: skip
        function = getattr(np, name)
        got, expected = function(x), function(a)
        np.testing.assert_allclose(np.asarray(got), expected, err_msg=name)
        got = function(x, axis=1)
        np.testing.assert_allclose(np.asarray(got), function(a, axis=1), err_msg=name)
    for call in (lambda t: np.prod(t, axis=0, keepdims=True), lambda t: np.any(t, 1),
                 lambda t: np.std(t, axis=2, ddof=1), lambda t: np.clip(t, -0.5, 0.5),
                 lambda t: np.round(t, 1), lambda t: np.squeeze(t[:1], axis=0),
                 lambda t: np.swapaxes(t, 0, 1), lambda t: np.transpose(t, (2, 0, 1)),
                 lambda t: np.reshape(t, (3, 4)), lambda t: np.ravel(t)):  # fmt: skip
        np.testing.assert_allclose(np.asarray(call(x)), call(a))
    assert isinstance(np.prod(x), flow.Tensor) and isinstance(np.any(x, axis=1), flow.Tensor)
    assert np.sum(flow.tensor([1, 2], dtype=flow.int8), dtype=flow.float64).dtype is flow.float64


def test_other_names_are_refused_as_before():
    for call, text in (
        (lambda: X.sum(axes=0), "unexpected keyword argument 'axes'"),
        (lambda: X.prod(axes=0), "unexpected keyword argument 'axes'"),
        (lambda: X.prod(keepdmis=True), "did you mean 'keepdim'"),
        (lambda: X.exp(axis=0), "unexpected keyword argument 'axis'"),
        (lambda: X.trunc(axis=0), "unexpected keyword argument 'axis'"),
        (lambda: X.prod(0, out=X), "unexpected keyword argument 'out'"),
        (lambda: flow.prod(X, dim=0, axis=0), "multiple values for argument 'axis'"),
        (lambda: flow.sum(X, dim=0, axis=0), "multiple values for argument 'axis'"),
    ):
        with pytest.raises(TypeError, match=text):
            call()
    assert X.prod(0, out=None).shape == (2, 3) and X.round(out=None).shape == X.shape


def test_the_input_may_have_numpys_name():
    x, y = flow.tensor([1.0, 2.0]), flow.tensor([3.0, 5.0])
    assert flow.add(x1=x, x2=y).tolist() == [4, 7] and flow.sum(a=x).item() == 3
    assert flow.prod(x=y).item() == 15 and flow.logaddexp(x1=x, x2=x).shape == (2,)


# Older orders of arguments.

A, B, C = (flow.tensor(np.random.default_rng(k).standard_normal((2, 2))) for k in (1, 2, 3))
BATCHES = [t.unsqueeze(0) for t in (A, B, C)]
OLDER = [
    ("add", lambda: flow.add(A, 2, B), lambda: A + 2 * B),
    ("add", lambda: flow.add(A, 2, other=B), lambda: A + 2 * B),
    ("add", lambda: A.add(2, B), lambda: A + 2 * B),
    ("add_", lambda: A.clone().add_(2, B), lambda: A + 2 * B),
    ("add_", lambda: A.clone().add_(np.float64(0.5), B), lambda: A + 0.5 * B),
    ("sub", lambda: flow.sub(A, 3, B), lambda: A - 3 * B),
    ("sub_", lambda: A.clone().sub_(3, B), lambda: A - 3 * B),
    ("addcmul", lambda: flow.addcmul(A, 2, B, C), lambda: A + 2 * B * C),
    ("addcmul", lambda: A.addcmul(2, B, C), lambda: A + 2 * B * C),
    ("addcmul_", lambda: A.clone().addcmul_(2, B, C), lambda: A + 2 * B * C),
    ("addcdiv", lambda: flow.addcdiv(A, 2, B, C), lambda: A + 2 * B / C),
    ("addcdiv_", lambda: A.clone().addcdiv_(2, B, C), lambda: A + 2 * B / C),
    ("addmm", lambda: flow.addmm(2, A, 3, B, C), lambda: 2 * A + 3 * (B @ C)),
    ("addmm", lambda: flow.addmm(2, A, B, C), lambda: 2 * A + B @ C),
    ("addmm", lambda: flow.addmm(2, A, B, mat2=C), lambda: 2 * A + B @ C),
    ("addmm", lambda: A.addmm(2, 3, B, C), lambda: 2 * A + 3 * (B @ C)),
    ("addmm", lambda: A.addmm(2, B, C), lambda: 2 * A + B @ C),
    ("addmm_", lambda: A.clone().addmm_(2, 3, B, C), lambda: 2 * A + 3 * (B @ C)),
    ("baddbmm", lambda: flow.baddbmm(2, BATCHES[0], 3, *BATCHES[1:])[0],
     lambda: 2 * A + 3 * (B @ C)),
    ("baddbmm", lambda: BATCHES[0].baddbmm(2, *BATCHES[1:])[0], lambda: 2 * A + B @ C),
    ("baddbmm_", lambda: BATCHES[0].clone().baddbmm_(2, 3, *BATCHES[1:])[0],
     lambda: 2 * A + 3 * (B @ C)),
]  # fmt: skip
# Of all that add a product: what it is of, and the product.
PRODUCTS = {
    "addmm": ((A, B, C), lambda: B @ C), "baddbmm": (BATCHES, lambda: BATCHES[1] @ BATCHES[2]),
    "addbmm": ((A, *BATCHES[1:]), lambda: (BATCHES[1] @ BATCHES[2]).sum(0)),
    "addmv": ((A[0], B, C[0]), lambda: B @ C[0]),
    "addr": ((A, B[0], C[0]), lambda: B[0].view(-1, 1) * C[0]),
}  # fmt: skip
for name, ((x, *factors), product) in PRODUCTS.items():
    for alpha in (1, 3):
        given = [alpha] if alpha > 1 else []
        OLDER += [
            (name, lambda n=name, x=x, g=given, f=factors: getattr(flow, n)(2, x, *g, *f),
             lambda x=x, a=alpha, p=product: 2 * x + a * p()),
            (name, lambda n=name, x=x, g=given, f=factors: getattr(x, n)(2, *g, *f),
             lambda x=x, a=alpha, p=product: 2 * x + a * p()),
            (f"{name}_", lambda n=name, x=x, g=given, f=factors: getattr(x.clone(), n + "_")(
                2, *g, *f), lambda x=x, a=alpha, p=product: 2 * x + a * p()),
        ]  # fmt: skip


@pytest.mark.parametrize("name, older, expected", OLDER)
def test_older_orders_are_understood_with_a_warning(name, older, expected):
    with pytest.warns(UserWarning, match=rf"^{name}\(.*\) is an older order") as caught:
        got = older()
    assert caught[0].filename == __file__  # the user's line
    np.testing.assert_allclose(host(got), host(expected()), rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="older order"):
            older()


def test_older_orders_take_tensors_in_their_places_only():
    for call, text in (
        (lambda: flow.add(A, B, B), "takes at most 2 positional arguments"),
        (lambda: flow.add(2, 3, B), "takes at most 2 positional arguments"),
        (lambda: A.add_(2, 3), "takes at most 1 positional argument"),
        (lambda: A.mul(2, B), "takes at most 1 positional argument"),
        (lambda: flow.add(A, "2", B), "takes at most 2 positional arguments"),
        (lambda: flow.addmm(A, B, C, 2), "positional argument"),
        (lambda: flow.addcmul(A, B, C, 2), "positional argument"),
        (lambda: flow.add(A, 2, B, alpha=3), "takes at most 2 positional arguments"),
    ):
        with pytest.raises(TypeError, match=text):
            call()


def test_an_older_order_that_does_not_fit_leaves_no_exception_behind():
    """Reading the next one runs Python: with an exception set that ends as a SystemError."""

    class Two:
        def __index__(self):
            return 2

    with pytest.raises(TypeError, match=r"baddbmm\(\)"):
        BATCHES[0].baddbmm(Two(), [2], BATCHES[1])
    with pytest.raises(TypeError, match=r"addmm\(\)"):
        A.addmm(Two(), [2], B)


def test_older_orders_write_and_differentiate():
    out = flow.empty(2, 2, dtype=flow.float64)
    x = A.clone().requires_grad_()
    with pytest.warns(UserWarning):
        assert flow.add(A, 2, B, out=out) is out
        assert flow.addmm(2, A, B, C, out=out) is out
        flow.addmm(2, x, 3, B, C).sum().backward()
    np.testing.assert_allclose(host(out), host(2 * A + B @ C))
    assert x.grad.tolist() == [[2, 2], [2, 2]]
