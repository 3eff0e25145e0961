# SPDX-License-Identifier: Apache-2.0
"""A layer whose parameter a program computes: weight norm, spectral norm, masks, low ranks.

The program takes the parameter out of the layer and sets a tensor of that name in its place, before
each forward or by a property of a class that it gives the layer.
"""

import pytest
from numerics import flow

nn, F = flow.nn, flow.nn.functional

LAYERS = {
    "Linear": (lambda: nn.Linear(4, 3), lambda x, w, b: F.linear(x, w, b)),
    "LayerNorm": (lambda: nn.LayerNorm(4), lambda x, w, b: F.layer_norm(x, [4], w, b)),
    "RMSNorm": (lambda: nn.RMSNorm(4), lambda x, w, b: F.rms_norm(x, [4], w)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), lambda x, w, b: F.group_norm(x, 2, w, b)),
    "PReLU": (lambda: nn.PReLU(4), lambda x, w, b: F.prelu(x, w)),
    "Embedding": (
        lambda: nn.Embedding(5, 4),
        lambda x, w, b: F.embedding(flow.tensor([[0, 4], [2, 2]]), w),
    ),
}


def operand(name):
    return flow.tensor([[0, 4], [2, 2]]) if name == "Embedding" else flow.randn(6, 4)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("by_property", [False, True])
def test_a_tensor_in_the_place_of_a_parameter(name, by_property):
    make, function = LAYERS[name]
    layer, x = make(), operand(name)
    source = nn.Parameter(flow.randn(layer.weight.shape))
    del layer._parameters["weight"]
    layer.register_parameter("weight_source", source)
    if by_property:
        weight = property(lambda self: 2 * self.weight_source)
        layer.__class__ = type("Computed", (type(layer),), {"weight": weight})
    else:
        layer.weight = 2 * source
    y = layer(x)
    expected = function(x, 2 * source, getattr(layer, "bias", None))
    assert flow.equal(y, expected)
    (expected**2).sum().backward()
    wanted, source.grad = source.grad, None
    (y**2).sum().backward()
    assert wanted.abs().sum() > 0 and flow.allclose(source.grad, wanted)
    assert "weight" not in layer.state_dict() and "weight_source" in layer.state_dict()


@pytest.mark.parametrize("name", ["Linear", "LayerNorm", "GroupNorm"])
def test_a_bias_in_the_place_of_a_parameter(name):
    make, function = LAYERS[name]
    layer, x = make(), operand(name)
    shift = nn.Parameter(flow.randn(layer.bias.shape))
    del layer.bias
    layer.bias = -shift
    assert flow.equal(layer(x), function(x, layer.weight, -shift))
    layer.bias = None
    assert flow.equal(layer(x), function(x, layer.weight, None))


@pytest.mark.parametrize("name", LAYERS)
def test_a_parameter_that_is_gone_is_named(name):
    layer = LAYERS[name][0]()
    del layer.weight
    with pytest.raises(AttributeError, match=f"{name} has no attribute 'weight'"):
        layer(operand(name))


def test_spectral_norm_as_programs_write_it():
    class SpectralNorm(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module
            weight = module.weight
            self.u = F.normalize(flow.ones(weight.shape[0]), dim=0)
            del module._parameters["weight"]
            module.register_parameter("weight_bar", nn.Parameter(weight.data))

        def forward(self, x):
            weight = self.module.weight_bar
            v = F.normalize(flow.mv(weight.data.t(), self.u), dim=0)
            self.u = F.normalize(flow.mv(weight.data, v), dim=0)
            self.module.weight = weight / self.u.dot(weight.mv(v))
            return self.module(x)

    layer = SpectralNorm(nn.Linear(6, 4))
    for _ in range(100):
        y = layer(flow.randn(3, 6))
    assert abs(flow.linalg.matrix_norm(layer.module.weight, 2).item() - 1) < 1e-3
    y.sum().backward()
    assert layer.module.weight_bar.grad.abs().sum() > 0
