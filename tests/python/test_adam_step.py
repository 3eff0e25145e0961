# SPDX-License-Identifier: Apache-2.0
"""adam_, a step on many tensors at once, against its formula in NumPy float64."""

import numpy as np
import pytest
from numerics import flow, host, tensor

RNG = np.random.default_rng(0)
LISTS = ("params", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs", "masters", "steps")
# Around a pack (4 elements), a block's turn (1024) and a chunk (16384 elements) of the CUDA kernel;
# beyond the 448 tensors of one launch.
SIZES = [0, 1, 3, 4, 5, 1023, 1025, 16383, 16384, 16385, 40001] + [2] * 450
WIDE = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64"}
TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-6, "float64": 1e-13}
OPTIONS = {"lr": 0.05, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.1}


def formula(p, g, m, v, most, t, decoupled=False, maximize=False, scale=1.0):
    o = OPTIONS
    g = (-g if maximize else g) / scale
    if decoupled:
        p = p * (1 - o["lr"] * o["weight_decay"])
    else:
        g = g + o["weight_decay"] * p
    m = o["beta1"] * m + (1 - o["beta1"]) * g
    v = o["beta2"] * v + (1 - o["beta2"]) * g * g
    most = v if most is None else np.maximum(most, v)
    root = np.sqrt(most / (1 - o["beta2"] ** t)) + o["eps"]
    return p - o["lr"] / (1 - o["beta1"] ** t) * m / root, m, v, most


def lists(dtype, device, sizes=SIZES, amsgrad=True, master=False, steps=()):
    """Tensors at odd offsets of their storage, and the same numbers in float64."""
    kind = WIDE[dtype]

    def drawn(of, positive=False):
        xs = [tensor(RNG.standard_normal(n + 1), of, device)[1:] for n in sizes]
        return [x.abs() for x in xs] if positive else xs

    made = {"params": drawn(dtype), "grads": drawn(dtype), "exp_avgs": drawn(kind),
            "exp_avg_sqs": drawn(kind, True), "max_exp_avg_sqs": drawn(kind, True),
            "masters": [], "steps": list(steps)}  # fmt: skip
    if not amsgrad:
        made["max_exp_avg_sqs"] = []
    if master:
        made["masters"] = [p.to(None, getattr(flow, kind)) * 1.001 for p in made["params"]]
    return made, {name: [host(x).astype(np.float64) for x in made[name]] for name in LISTS}


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("amsgrad, master, options", [
    (False, False, {}), (True, False, {"decoupled": True}),
    (False, True, {"maximize": True}), (True, True, {"decoupled": True, "maximize": True}),
])  # fmt: skip
def test_all_tensors_of_a_call_are_stepped(device, dtype, amsgrad, master, options):
    made, before = lists(dtype, device, amsgrad=amsgrad, master=master)
    flow._C.adam_(*made.values(), step=3, **OPTIONS, **options)
    for i, n in enumerate(SIZES):
        p, m, v, most = formula(
            before["masters" if master else "params"][i], before["grads"][i],
            before["exp_avgs"][i], before["exp_avg_sqs"][i],
            before["max_exp_avg_sqs"][i] if amsgrad else None, 3, **options)  # fmt: skip
        close = {"rtol": TOLERANCE[dtype], "atol": TOLERANCE[dtype]}
        np.testing.assert_allclose(host(made["params"][i]).astype(float), p, **close)
        close = {"rtol": TOLERANCE[WIDE[dtype]], "atol": TOLERANCE[WIDE[dtype]]}
        np.testing.assert_allclose(host(made["exp_avgs"][i]), m, **close)
        np.testing.assert_allclose(host(made["exp_avg_sqs"][i]), v, **close)
        if amsgrad:
            np.testing.assert_allclose(host(made["max_exp_avg_sqs"][i]), most, **close)
        if master:
            np.testing.assert_allclose(host(made["masters"][i]), p, **close)
            np.testing.assert_array_equal(  # the rounding of the master
                host(made["params"][i]), host(made["masters"][i].to(None, getattr(flow, dtype)))
            )
        assert made["params"][i].numel() == n
        np.testing.assert_array_equal(host(made["grads"][i]), before["grads"][i])


def test_the_device_knows_lr_step_scale_and_whether_to_step(device):
    number = flow.tensor
    steps = [number(4.0, dtype=flow.float64, device=device) for _ in SIZES]
    made, before = lists("float32", device, steps=steps)
    found = number(1.0, device=device)
    known = {"lr_tensor": number(OPTIONS["lr"], dtype=flow.float64, device=device),
             "grad_scale": number(8.0, device=device), "found_inf": found}  # fmt: skip
    options = OPTIONS | {"lr": 123.0}
    flow._C.adam_(*made.values(), **options, **known)
    for name in LISTS:
        for x, was in zip(made[name], before[name], strict=True):
            np.testing.assert_array_equal(host(x), was)
    found.zero_()
    flow._C.adam_(*made.values(), **options, **known)
    assert [s.item() for s in steps] == [5.0] * len(SIZES)
    for i in range(len(SIZES)):
        p, *_ = formula(*(before[name][i] for name in LISTS[:5]), 5, scale=8.0)
        np.testing.assert_allclose(host(made["params"][i]), p, rtol=3e-6, atol=3e-6)


def test_strides_of_all_kinds_are_stepped_in_place(device):
    shape, made = (5, 7), {}
    for name in LISTS[:4]:
        base = tensor(RNG.standard_normal((7, 10)), "float64", device).abs()
        made[name] = [base[:, ::2].T]
    before = [host(made[name][0]).copy() for name in LISTS[:4]]
    version = made["params"][0]._version
    flow._C.adam_(*made.values(), [], [], [], step=1, **OPTIONS)
    p, m, v, _ = formula(*before, None, 1)
    for name, expected in (("params", p), ("exp_avgs", m), ("exp_avg_sqs", v)):
        assert made[name][0].shape == shape
        np.testing.assert_allclose(host(made[name][0]), expected, rtol=1e-13)
    assert made["params"][0]._version > version


def bad_calls():
    x, y = flow.ones(3), flow.ones(4)
    yield ValueError, "params.*empty", ([], [], [], [], [], [], []), {}
    yield ValueError, r"grads.*list of 1.*2", ([x, x], [x], [x, x], [x, x], [], [], []), {}
    yield flow.ShapeError, r"grads\[0\]", ([x], [y], [x], [x], [], [], []), {}
    yield flow.DTypeError, r"exp_avgs\[0\]", ([x], [x], [x.double()], [x], [], [], []), {}
    yield flow.DTypeError, "int64", ([x.long()], [x.long()], [x], [x], [], [], []), {}
    yield flow.DTypeError, r"steps\[0\]", ([x], [x], [x], [x], [], [], [flow.tensor(1.0)]), {}
    yield ValueError, "step", ([x], [x], [x], [x], [], [], []), {"step": 0}
    yield RuntimeError, "device", ([x], [x.to("meta")], [x], [x], [], [], []), {}
    yield flow.ShapeError, "found_inf", ([x], [x], [x], [x], [], [], []), {"found_inf": x}
    yield RuntimeError, "expand", ([x[:1].expand(3)], [x], [x], [x], [], [], []), {}


@pytest.mark.parametrize("case", range(10))
def test_what_does_not_go_together_is_refused_and_changes_nothing(case):
    error, text, given, options = list(bad_calls())[case]
    before = [[host(x).copy() for x in xs if x.device.type != "meta"] for xs in given]
    with pytest.raises(error, match=text):
        flow._C.adam_(*given, **options)
    after = [[host(x) for x in xs if x.device.type != "meta"] for xs in given]
    for one, other in zip(before, after, strict=True):
        for was, now in zip(one, other, strict=True):
            np.testing.assert_array_equal(was, now)


def test_a_step_is_not_recorded():
    x = flow.ones(3, requires_grad=True)
    state = [flow.ones(3)], [flow.zeros(3)], [flow.zeros(3)], [], [], []
    with pytest.raises(RuntimeError, match="params requires grad"):
        flow._C.adam_([x], *state)
    with flow.no_grad():
        flow._C.adam_([x], *state)
    assert x.grad_fn is None and (x != 1).all()


@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
def test_an_optimizers_step_is_one_op(kind):
    layers = flow.nn.Sequential(*[flow.nn.Linear(3, 3) for _ in range(5)])
    optimizer = getattr(flow.optim, kind)(layers.parameters())
    layers(flow.ones(2, 3)).sum().backward()
    optimizer.step()
    with flow.profiler.profile() as prof:
        optimizer.step()
    assert [(s.name, s.calls) for s in prof.stats()] == [("adam_", 1)]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_masters_keep_what_roundings_would_lose(dtype):
    """Steps of 1e-4 at 1 are lost in 16 bits, but add up in the masters."""
    moved = {}
    for master_weights in (False, True):
        p = flow.ones(4, dtype=getattr(flow, dtype), requires_grad=True)
        optimizer = flow.optim.AdamW([p], lr=1e-4, weight_decay=0, master_weights=master_weights)
        for _ in range(100):
            p.grad = flow.ones_like(p)
            optimizer.step()
        moved[master_weights] = 1 - p.detach().float().numpy()
        state = optimizer.state_dict()["state"][0]
        assert state["exp_avg"].dtype == flow.float32
        assert ("master_weight" in state) == master_weights
    np.testing.assert_array_equal(moved[False], 0)
    np.testing.assert_allclose(moved[True], 0.01, atol=4e-3)


def test_masters_are_saved_and_go_on(tmp_path):
    def stepped(count, optimizer, p):
        for k in range(count):
            p.grad = flow.full_like(p, 1.0 + k)
            optimizer.step()

    made = flow.tensor([1.0, -2.0], dtype=flow.bfloat16)
    p, q = made.clone().requires_grad_(), made.clone().requires_grad_()
    whole = flow.optim.AdamW([p], master_weights=True)
    stepped(3, whole, p)
    first = flow.optim.AdamW([q], master_weights=True)
    stepped(3, first, q)
    flow.save(first.state_dict(), tmp_path / "state")
    second = flow.optim.AdamW([q], master_weights=True)
    second.load_state_dict(flow.load(tmp_path / "state"))
    stepped(5, whole, p)
    stepped(5, second, q)
    master = [o.state_dict()["state"][0]["master_weight"].numpy() for o in (whole, second)]
    np.testing.assert_array_equal(*master)
    np.testing.assert_array_equal(p.detach().float().numpy(), q.detach().float().numpy())
