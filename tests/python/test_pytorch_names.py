# SPDX-License-Identifier: Apache-2.0
"""Arguments by the names and in the forms that PyTorch documents, and an order that follows."""

import inspect
import io
from collections import OrderedDict

import numpy as np
import pytest
from numerics import flow, host

nn, F = flow.nn, flow.nn.functional


def test_parameters_of_a_plain_dict_are_in_the_order_of_their_names():
    given = {name: nn.Parameter(flow.full([2], float(i))) for i, name in enumerate("kvr")}
    made = nn.ParameterDict(given)
    assert [name for name, _ in made.named_parameters()] == ["k", "r", "v"]
    assert [p[0].item() for p in made.parameters()] == [0, 2, 1]
    made.update({"z": flow.ones(1), "a": flow.ones(1)})
    assert list(made) == ["k", "r", "v", "a", "z"]
    pairs = list(given.items())
    for ordered in (OrderedDict(given), pairs, nn.ParameterDict(pairs), iter(pairs)):
        assert list(nn.ParameterDict(ordered)) == ["k", "v", "r"]
    same = nn.ParameterDict(pairs)
    assert list(same.copy()) == ["k", "v", "r"] and list(same.fromkeys("zya")) == ["z", "y", "a"]
    assert list(same | nn.ParameterDict([("b", flow.ones(1))])) == ["k", "v", "r", "b"]
    assert list(nn.ModuleDict({"z": nn.ReLU(), "a": nn.ReLU()})) == ["z", "a"]


def test_both_operands_by_name():
    x, y = flow.randn(3, 4), flow.randn(3, 4)
    for function in (F.cosine_similarity, flow.cosine_similarity, F.pairwise_distance):
        for dtype in (flow.float32, flow.float16):
            a, b = x.to(dtype), y.to(dtype)
            want = function(a, b).tolist()
            assert function(x1=a, x2=b).tolist() == want and function(a, x2=b).tolist() == want
    with pytest.raises(TypeError, match=r"cosine_similarity\(\) missing 2 required .* 'x1' and"):
        F.cosine_similarity()


def test_histogram_has_100_bins():
    counts, edges = flow.histogram(flow.randn(1000), density=True)
    assert counts.shape == (100,) and edges.shape == (101,)


def test_save_and_load_by_name():
    stream, x = io.BytesIO(), flow.randn(3)
    flow.save(obj={"x": x}, f=stream, pickle_protocol=4, _use_new_zipfile_serialization=True)
    for options in (
        {}, {"mmap": True}, {"pickle_module": None, "weights_only": False}, {"map_location": "cpu"},
        {"map_location": lambda storage, place: storage}, {"map_location": {"cuda:0": "cpu"}},
        {"device": "cpu"}, {"map_location": flow.device("cpu")},
    ):  # fmt: skip
        stream.seek(0)
        assert flow.load(f=stream, **options)["x"].tolist() == x.tolist()
    for place in ("meta", {"cpu": "meta"}, lambda storage, place: storage.to("meta")):
        stream.seek(0)
        assert flow.load(stream, place)["x"].is_meta
    for wrong, message in ((2.5, "must be a device, a dict of names of devices or a function"),
                           (lambda storage, place: 3, "must give what it was given")):  # fmt: skip
        stream.seek(0)
        with pytest.raises(TypeError, match=rf"^load\(\): map_location {message}"):
            flow.load(stream, wrong)


def test_containers_and_modules_by_name():
    values = nn.ParameterList().append(value=flow.ones(1)).extend(values=[flow.zeros(1)])
    assert len(values) == 2
    named = nn.ParameterDict([("a", flow.ones(1))])
    assert named.get(key="b", default=3) == 3 and named.pop(key="a").item() == 1
    modules = nn.ModuleDict({"a": nn.ReLU()})
    assert isinstance(modules.pop(key="a"), nn.ReLU)
    twice = nn.Sequential(*[nn.ReLU()] * 2)
    assert len(list(twice.modules())) == 2 and len(list(twice.modules(remove_duplicate=False))) == 3
    assert len(nn.Sequential().extend(sequential=twice)) == 2
    with flow.autograd.graph.saved_tensors_hooks(pack_hook=id, unpack_hook=id):
        pass


def test_functions_of_cuda_take_a_device_by_name():
    for name in ("synchronize", "memory_allocated", "max_memory_allocated", "memory_reserved",
                 "memory_stats", "reset_peak_memory_stats", "set_device", "current_stream",
                 "get_device_name", "get_device_properties", "empty_cache"):  # fmt: skip
        assert "device" in inspect.signature(getattr(flow.cuda, name)).parameters
    assert list(inspect.signature(flow.cuda.stream).parameters) == ["stream"]
    assert flow.cuda.is_available() or flow.cuda.memory_allocated(device="cuda:0") == 0


def test_functions_by_name():
    x, y, v = flow.randn(2, 2), flow.randn(2, 2), flow.randn(2)
    for got, want in [
        (flow.mm(x, mat2=y), x @ y), (x.mm(mat2=y), x @ y),
        (flow.bmm(x[None], mat2=y[None]), (x @ y)[None]), (flow.outer(v, vec2=v), flow.outer(v, v)),
        (flow.ger(v, vec2=v), flow.outer(v, v)), (flow.dot(v, tensor=v), (v * v).sum()),
        (x.repeat(repeats=(2, 1)), flow.cat([x, x])),
        (flow.gather(x, 0, flow.tensor([[1, 0]]), sparse_grad=False), x.flip(0).diagonal()[None]),
    ]:  # fmt: skip
        np.testing.assert_allclose(host(got), host(want), rtol=1e-6)
    for parts in (x.split(split_size=1), x.split(split_size=[1, 1], dim=0),
                  x.tensor_split(sections=2), x.tensor_split(indices=[1]), x.vsplit(sections=2),
                  flow.vsplit(x, indices=[1])):  # fmt: skip
        assert [p.tolist() for p in parts] == x[:, None].tolist()
    assert flow.empty(100).random_(0, to=3).max().item() < 3


def test_copy_takes_non_blocking():
    x = flow.zeros(3)
    for call in (lambda: x.copy_(flow.ones(3), non_blocking=True),
                 lambda: x.copy_(flow.ones(3), True)):  # fmt: skip
        assert call() is x and x.tolist() == [1, 1, 1]
        x.zero_()
    assert x.copy_(3).tolist() == [3, 3, 3] and x.copy_(2.5, non_blocking=True)[0].item() == 2.5
    with pytest.raises(OverflowError):
        flow.zeros(1, dtype=flow.int8).copy_(300)
    for wrong in ((flow.ones(3), "yes"), (flow.ones(3), True, 1), ()):
        with pytest.raises(TypeError, match=r"^copy_\(\)"):
            x.copy_(*wrong)


@pytest.mark.parametrize("shape", [(4, 2), (3,), ()])
def test_a_size_is_no_data(shape):
    x = flow.ones(shape, dtype=flow.float64)
    for make in (flow.Tensor, flow.FloatTensor, flow.LongTensor, x.new):
        made = make(x.size())
        assert made.shape == shape and made.dtype is make(2).dtype
    assert x.new(x.size()).dtype is flow.float64 and x.new(*shape or [0]).shape == (shape or (0,))
    for make in (flow.Tensor, flow.FloatTensor, x.new):
        assert make(list(shape)).shape == (len(shape),)  # a list and a tuple are data
        assert make(tuple(shape)).shape == (len(shape),)
        assert make(np.int64(5)).shape == (5,) and make(np.int32(2), 3).shape == (2, 3)
        assert make(np.array([1.0, 2.0])).tolist() == [1, 2]
        assert make(np.array(5)).shape == ()
    assert flow.FloatTensor(size=(2, 3)).shape == (2, 3)


def test_arange_and_memory_by_keyword():
    assert flow.arange(end=4).tolist() == [0, 1, 2, 3]
    assert flow.arange(end=2.5, dtype=flow.float64).tolist() == [0, 1, 2]
    for make in (flow.zeros, flow.ones, flow.empty, flow.rand):
        assert make(2, pin_memory=False).shape == (2,)
    assert flow.tensor([1], pin_memory=False).tolist() == [1]


class Renamed(flow.nn.Linear):
    """Reads states of an older version, as published layers do."""

    calls_super, moves = True, 0

    def _load_from_state_dict(self, state_dict, prefix, *args):
        if prefix + "kernel" in state_dict:
            state_dict[prefix + "weight"] = state_dict.pop(prefix + "kernel").T
        if self.calls_super:
            super()._load_from_state_dict(state_dict, prefix, *args)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "version"] = flow.tensor(2)

    def _apply(self, fn, recurse=True):
        type(self).moves += 1
        return super()._apply(fn, recurse)


def test_overrides_that_published_layers_have():
    net = flow.nn.Sequential(Renamed(2, 3), flow.nn.Linear(3, 1))
    state = net.state_dict()
    assert list(state) == ["0.weight", "0.bias", "0.version", "1.weight", "1.bias"]
    del state["0.version"]
    kernel = flow.arange(6.0).view(2, 3)
    older = {"0.kernel": kernel, **{k: v for k, v in state.items() if k != "0.weight"}}
    assert not any(net.load_state_dict(older))
    assert net[0].weight.tolist() == kernel.T.tolist() and "0.kernel" in older
    with pytest.raises(flow.ShapeError, match='Missing key.*"0.bias"'):
        net.load_state_dict({"0.kernel": -kernel, "1.weight": state["1.weight"] + 1,
                             "1.bias": state["1.bias"]})  # fmt: skip
    assert net[0].weight.tolist() == kernel.T.tolist()
    with pytest.raises(flow.ShapeError, match='Unexpected key.*"0.more"'):
        net.load_state_dict(state | {"0.more": kernel})
    net[0].calls_super = False  # it loads for itself, or nothing
    net.load_state_dict({"1.weight": state["1.weight"], "1.bias": state["1.bias"]})
    net.double()
    assert Renamed.moves == 1 and {p.dtype for p in net.parameters()} == {flow.float64}


def test_names_of_pytorch_s_own_that_programs_call():
    init, layer = flow.nn.init, flow.nn.Linear(4, 3)
    assert init._calculate_correct_fan(layer.weight, "fan_out") == 3
    with pytest.raises(ValueError, match="mode is 'fan'"):
        init._calculate_correct_fan(layer.weight, "fan")
    assert init._no_grad_trunc_normal_(layer.weight, 0.0, 1.0, -0.1, 0.1).abs().max() <= 0.1
    assert not layer._forward_hooks and not layer._forward_pre_hooks
    layer.register_forward_hook(lambda *_: None)
    assert len(layer._forward_hooks) == 1
    layer._apply(lambda t: t + 1)
    assert layer.weight.min() > 0.8
    states = flow.utils.checkpoint.get_device_states(layer.weight, 3)
    assert states == ([], [])
    flow.utils.checkpoint.set_device_states(*states)


def test_a_module_does_not_take_a_parameter_s_place():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.p = nn.Parameter(flow.ones(1))

    m = Own()
    with pytest.raises(TypeError, match="Own.p is registered as a Parameter; .* not to a module"):
        m.p = nn.Linear(1, 1)
    del m.p
    m.p = nn.Linear(1, 1)
    m.p = nn.Parameter(flow.zeros(1))
    assert m._get_name() == "Own" and [n for n, _ in m.named_parameters()] == ["p"]


@pytest.mark.parametrize("name, weights", [
    ("fweights", flow.tensor([1, -1, 2])), ("aweights", flow.tensor([0.5, 1.0, -0.25])),
])  # fmt: skip
def test_weights_of_cov_are_not_negative(name, weights):
    x = flow.randn(2, 3)
    with pytest.raises(ValueError, match=rf"cov\(\): {name} is less than 0 somewhere, -"):
        flow.cov(x, **{name: weights})
    assert flow.cov(x, **{name: weights.abs()}).shape == (2, 2)
