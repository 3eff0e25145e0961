# SPDX-License-Identifier: Apache-2.0
"""The decoder and the whole transformer: against their parts, and against PyTorch."""

import numpy as np
import pytest
from numerics import flow, host

nn, F = flow.nn, flow.nn.functional
RNG = np.random.default_rng(9)
BATCH, SOURCE, TARGET, FEATURES = 3, 6, 5, 8
PADDED = np.arange(SOURCE) >= np.array([[6], [4], [5]])


def model_of(lib, **options):
    return lib.nn.Transformer(FEATURES, 2, 2, 2, 16, 0.0, dtype=lib.float64, **options)


def drawn(model):
    return {name: RNG.standard_normal(tuple(p.shape)) for name, p in model.state_dict().items()}


def given():
    return (RNG.standard_normal((BATCH, n, FEATURES)) for n in (SOURCE, TARGET))


@pytest.mark.parametrize("norm_first", [False, True])
def test_a_decoder_layer_is_its_parts(norm_first):
    layer = nn.TransformerDecoderLayer(FEATURES, 2, 16, batch_first=True, norm_first=norm_first,
                                       dtype=flow.float64)  # fmt: skip
    layer.load_state_dict(drawn(layer))
    layer.eval()
    memory, x = map(flow.tensor, given())
    got = layer(x, memory, None, None, None, flow.tensor(PADDED), tgt_is_causal=True)
    for norm, part in (
        (layer.norm1, lambda h: layer.self_attn(h, h, h, is_causal=True)[0]),
        (layer.norm2, lambda h: layer.multihead_attn(h, memory, memory, flow.tensor(PADDED))[0]),
        (layer.norm3, lambda h: layer.linear2(F.relu(layer.linear1(h)))),
    ):
        x = x + part(norm(x)) if norm_first else norm(x + part(x))
    np.testing.assert_allclose(host(got), host(x), rtol=1e-11, atol=1e-12)
    with pytest.raises(ValueError, match='TransformerDecoderLayer: activation is "tan"'):
        nn.TransformerDecoderLayer(8, 2, activation="tan")


def test_a_transformer_is_encoder_and_decoder():
    model = model_of(flow, batch_first=True)
    model.load_state_dict(drawn(model))
    source, target = map(flow.tensor, given())
    mask = nn.Transformer.generate_square_subsequent_mask(TARGET, dtype=flow.float64)
    np.testing.assert_array_equal(host(mask), np.triu(np.full((TARGET, TARGET), -np.inf), 1))
    y = model(source, target, tgt_mask=mask)
    memory = model.encoder(source)
    assert flow.equal(y, model.decoder(target, memory, mask))
    later = host(target)
    later[:, 3:] += 1  # what comes later is not seen
    changed = host(model(source, flow.tensor(later), tgt_is_causal=True))
    np.testing.assert_allclose(changed[:, :3], host(y)[:, :3], rtol=1e-11, atol=1e-12)
    assert np.abs(changed[:, 3:] - host(y)[:, 3:]).min() > 0
    for other in (target[:2], target[..., :4], target[0]):
        with pytest.raises(flow.ShapeError, match="Transformer: src and tgt have shapes"):
            model(source, other)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_the_transformer_is_pytorchs(batch_first, norm_first, bias):
    torch = pytest.importorskip("torch")
    options = {"batch_first": batch_first, "norm_first": norm_first, "bias": bias}
    models = [model_of(lib, activation="gelu", **options) for lib in (torch, flow)]
    state = drawn(models[1])
    assert list(models[0].state_dict()) == list(state)
    arrays = [x if batch_first else x.swapaxes(0, 1).copy() for x in given()]
    found = []
    for lib, model in zip((torch, flow), models, strict=True):
        model.load_state_dict({name: lib.tensor(x) for name, x in state.items()})
        source, target = (lib.tensor(x, requires_grad=True) for x in arrays)
        padded = lib.tensor(PADDED)
        mask = lib.nn.Transformer.generate_square_subsequent_mask(TARGET, dtype=lib.float64)
        y = model(source, target, None, mask, None, padded, None, padded)
        (y**3).sum().backward()
        found.append([y, source.grad, target.grad, *(p.grad for p in model.parameters())])
    for got, want in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(host(got), want.detach().numpy(), rtol=1e-8, atol=1e-9)


def test_an_own_encoder_and_decoder_may_be_empty():
    class Same(nn.ModuleList):
        def forward(self, x, *others):
            return x

    encoder, decoder = Same(), Same()
    model = model_of(flow, batch_first=True, custom_encoder=encoder, custom_decoder=decoder)
    assert model.encoder is encoder and model.decoder is decoder and not [*model.parameters()]
    source, target = map(flow.tensor, given())
    assert flow.equal(model(source, target), target)
