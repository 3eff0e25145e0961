# SPDX-License-Identifier: Apache-2.0
"""What a PyTorch user gets wrong on the first day, and the text that is met.

A message names the function or the layer, the argument, what was given and what is allowed.
test_errors.py has the families of errors, op_table.py each op's own.
"""

import numpy as np
import pytest
from numerics import flow

nn, optim, dist = flow.nn, flow.optim, flow.distributed
F, lr = nn.functional, flow.optim.lr_scheduler
x, vector = flow.ones(2, 3), flow.ones(2)
target = flow.tensor([0, 1])


def leaf(*shape):
    return flow.ones(*shape, requires_grad=True)


def weights():
    return nn.Linear(2, 2).parameters()


def sgd():
    return optim.SGD(weights(), lr=0.1)


def write(t, index, value):
    t[index] = value


def stepped(kind, size):
    layer = nn.Linear(size, 2)
    optimizer = kind(layer.parameters(), lr=0.1)
    layer(flow.ones(1, size)).sum().backward()
    optimizer.step()
    return optimizer


def twice():
    loss = (leaf(2) * leaf(2)).sum()
    loss.backward()
    loss.backward()


def changed():
    y = leaf(2) * 2
    z = (y * y).sum()
    y.add_(1)
    z.backward()


class Silent(flow.autograd.Function):
    pass


class Forward(flow.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


class Layer(nn.Module):
    def __init__(self):
        self.inner = nn.Linear(2, 2)


# What is wrong: the call, the exception's type, what its text begins with.
MISTAKES = {
    # sizes of layers
    "a size that is a float": (lambda: nn.Linear(4.0, 2), TypeError,
                               "Linear: in_features must be int, not float"),
    "a size below zero": (lambda: nn.Linear(4, -2), ValueError,
                          "Linear: out_features is -2, but it must be non-negative"),
    "rows of an embedding": (lambda: nn.Embedding("3", 2), TypeError,
                             "Embedding: num_embeddings must be int, not str"),
    "heads that are a float": (lambda: nn.MultiheadAttention(12, 3.0), TypeError,
                               "MultiheadAttention: num_heads must be int, not float"),
    "no heads": (lambda: nn.MultiheadAttention(12, 0), ValueError,
                 "MultiheadAttention: num_heads is 0, but it must be positive"),
    "layers of an encoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), "2"),
                             TypeError, "TransformerEncoder: num_layers must be int, not str"),
    "layers of a decoder": (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2), -1),
                            ValueError, "TransformerDecoder: num_layers is -1, but it must be"),
    "a norm of a negative size": (lambda: nn.LayerNorm([3, -1]), flow.ShapeError,
                                  "LayerNorm: normalized_shape is [3, -1], but its sizes must be"),
    "groups that are a float": (lambda: nn.GroupNorm(2.0, 4), TypeError,
                                "GroupNorm: num_groups must be int, not float"),
    # layers called where they are made
    "an activation of a tensor": (lambda: nn.ReLU(x), TypeError,
                                  "ReLU: inplace must be bool, not Tensor"),
    "a loss of its operands": (lambda: nn.MSELoss(x, x), TypeError,
                               "MSELoss: reduction must not be a Tensor; call the loss that was "
                               "made: MSELoss()(input, target)"),
    "cross entropy of its operands": (lambda: nn.CrossEntropyLoss(x, target), TypeError,
                                      "CrossEntropyLoss: ignore_index must not be a Tensor"),
    "a binary loss of its operands": (lambda: nn.BCELoss(x, x), TypeError,
                                      "BCELoss: reduction must not be a Tensor"),
    "a class for a module": (lambda: nn.Sequential(nn.ReLU), TypeError,
                             "Sequential: '0' must be a Module, not a type"),
    "a list for modules": (lambda: nn.Sequential([nn.ReLU()]), TypeError,
                           "Sequential: '0' must be a Module, not a list"),
    "no super().__init__()": (Layer, AttributeError,
                              "Layer: call super().__init__() before assigning 'inner'"),
    "a hook that cannot be called": (lambda: nn.ReLU().register_forward_hook(3), TypeError,
                                     "argument 'hook' must be callable, not int"),
    "a vector's fan in": (lambda: nn.init.xavier_uniform_(flow.ones(3)), ValueError,
                          "xavier_uniform_(): tensor has shape [3], expected at least 2 dims"),
    "a vector's fan out": (lambda: nn.init.kaiming_normal_(flow.ones(3)), ValueError,
                           "kaiming_normal_(): tensor has shape [3], expected at least 2 dims"),
    "weights between bounds": (lambda: nn.init.uniform_(flow.ones(3), 1, -1), ValueError,
                               "uniform_(): there are no numbers from a = 1 to b = -1"),
    # shapes and dtypes
    "a dim squeezed twice": (lambda: x.squeeze((0, -2)), ValueError,
                             "squeeze(): a dim occurs twice in [0, -2]"),
    "a gradient along a dim twice": (lambda: flow.gradient(x, dim=(1, -1)), ValueError,
                                     "gradient(): a dim occurs twice in [1, -1]"),
    "a class that marks what is ignored": (lambda: F.one_hot(flow.tensor([0, -1])), ValueError,
                                           "one_hot(): class -1 is out of range: it is negative"),
    "a class beyond the number": (lambda: F.one_hot(flow.tensor([0, 2]), 2), ValueError,
                                  "one_hot(): class 2 is out of range [0, 1]"),
    "features": (lambda: nn.Linear(4, 2)(x), flow.ShapeError,
                 "linear(): input has shape [2, 3], expected a last dim of 4"),
    "NumPy's float64": (lambda: nn.Linear(3, 2)(flow.tensor(np.ones((2, 3)))), flow.DTypeError,
                        "linear(): input has dtype float64, expected float32 as the weight"),
    "an array for a tensor": (lambda: nn.Linear(3, 2)(np.ones((2, 3))), TypeError,
                              "linear(): argument 'input' must be Tensor, not numpy.ndarray"),
    "a product of rows": (lambda: x @ x, flow.ShapeError,
                          "matmul(): other has shape [2, 3], expected [3, 3] to go with [2, 3]"),
    "a product with a vector": (lambda: x @ vector, flow.ShapeError,
                                "matmul(): other has shape [2], expected [3] to go with [2, 3]"),
    "a vector's product": (lambda: flow.ones(4) @ flow.ones(2, 3, 5), flow.ShapeError,
                           "matmul(): other has shape [2, 3, 5], expected [2, 4, 5] to go with "
                           "[4]"),
    "a batch's product": (lambda: flow.ones(2, 3, 4) @ flow.ones(5, 6), flow.ShapeError,
                          "matmul(): other has shape [5, 6], expected [4, 6] to go with "
                          "[2, 3, 4]"),
    "a product of batches": (lambda: flow.ones(2, 3, 4, 5) @ flow.ones(3, 6, 7), flow.ShapeError,
                             "matmul(): other has shape [3, 6, 7], expected [3, 5, 7] to go with "
                             "[2, 3, 4, 5]"),
    "mv": (lambda: flow.mv(x, vector), flow.ShapeError,
           "mv(): vec has shape [2], expected [3] to go with [2, 3]"),
    "integers in a product": (lambda: x.long() @ x.T, flow.DTypeError,
                              "matmul(): input has dtype int64 and other float32"),
    "rows beside columns": (lambda: x + flow.ones(2), flow.ShapeError,
                            "add(): the second operand has shape [2], expected one that"),
    "a dim that is not there": (lambda: x.sum(2), IndexError,
                                "sum(): dim 2 is out of range [-2, 1] for a tensor of shape"),
    "the name of a dtype": (lambda: flow.zeros(2, dtype="float32"), TypeError,
                            "zeros(): argument 'dtype' must be oneflow_lite.dtype or None"),
    "another name of a device": (lambda: x.to("gpu"), ValueError,
                                 'device(): "gpu" is not a device; allowed are "cpu", "cuda"'),
    "ragged rows": (lambda: flow.tensor([[1, 2], [3]]), ValueError,
                    "tensor(): ragged sequences: at [1] there is a sequence of length 1"),
    # assignments
    "an assigned shape": (lambda: write(flow.ones(2, 3), 0, flow.ones(4)), flow.ShapeError,
                          "setitem(): a tensor of shape [4] (float32, cpu) does not expand to"),
    "an assigned list": (lambda: write(flow.ones(3), slice(2), [1, 2, 3]), flow.ShapeError,
                         "setitem(): a tensor of shape [3] (float32, cpu) does not expand to"),
    "a masked shape": (lambda: write(flow.ones(3), flow.ones(3) > 0, flow.ones(7)),
                       flow.ShapeError, "setitem(): a tensor of shape [7] (float32, cpu) does not"),
    "an assigned place": (lambda: write(flow.ones(3), 5, 1), IndexError,
                          "setitem(): index 5 is out of range [-3, 2] for dim 0 of size 3"),
    "assigned places": (lambda: write(flow.ones(3), [0, 5], 1), IndexError,
                        "setitem(): index 5 is out of range [-3, 2]"),
    "assigned dims": (lambda: write(flow.ones(3), (0, 0), 1), IndexError,
                      "setitem(): too many indices: 2 for a tensor of shape [3] (float32, cpu)"),
    "an assigned leaf": (lambda: write(leaf(3), 0, 1), RuntimeError,
                         "setitem(): a view of a leaf that requires grad cannot be changed"),
    "too many indices": (lambda: x[0, 0, 0], IndexError,
                         "index(): too many indices: 3 for a tensor of shape [2, 3]"),
    # losses
    "logits and targets exchanged": (lambda: F.cross_entropy(target, x), flow.ShapeError,
                                     "cross_entropy(): target (probabilities) has shape [2, 3]"),
    "rows of targets": (lambda: F.cross_entropy(x, flow.tensor([0])), flow.ShapeError,
                        "cross_entropy(): target has shape [1], expected [2]"),
    "a class too many": (lambda: F.cross_entropy(x, flow.tensor([0, 3])), IndexError,
                         "cross_entropy(): target 3 is out of range [0, 2]"),
    "another reduction": (lambda: F.mse_loss(x, x, reduction="avg"), ValueError,
                          'mse_loss(): reduction is "avg", but it must be "none", "sum" or "mean"'),
    # autograd
    "backward of a vector": (lambda: (leaf(2) * 2).backward(), RuntimeError,
                             "backward(): a gradient must be given for a tensor of shape [2]"),
    "backward without a graph": (lambda: vector.sum().backward(), RuntimeError,
                                 "backward(): a tensor of shape [] (float32, cpu) does not"),
    "backward twice": (twice, RuntimeError, "mul(): backward through this graph a second time"),
    "what was saved has changed": (changed, RuntimeError,
                                   "mul(): a tensor of shape [2] (float32, cpu) saved for"),
    "a leaf in place": (lambda: leaf(2).add_(1), RuntimeError,
                        "add_(): a leaf that requires grad cannot be changed in place"),
    "no_grad of a tensor": (lambda: flow.no_grad(3), TypeError,
                            "no_grad(): a function can be decorated, not int"),
    "enable_grad of a tensor": (lambda: flow.enable_grad(x), TypeError,
                                "enable_grad(): a function can be decorated, not Tensor"),
    "a Function without forward": (lambda: Silent.apply(x), NotImplementedError,
                                   "Silent does not define forward()"),
    "a Function without backward": (lambda: Forward.apply(leaf(2)), NotImplementedError,
                                    "Forward does not define backward(), but argument 0 requires"),
    "a Function that is called": (lambda: Forward()(x), TypeError,
                                  "Forward: an instance cannot be called; write Forward.apply("),
    # optimizers
    "a module for parameters": (lambda: optim.SGD(nn.Linear(2, 2), lr=0.1), TypeError,
                                "SGD(): params must be an iterable of tensors or of dicts, such"),
    "a step with the loss": (lambda: sgd().step(vector.sum()), TypeError,
                             "SGD.step(): closure must be a function or None, not Tensor"),
    "betas that are a number": (lambda: optim.Adam(weights(), betas=0.9), TypeError,
                                "Adam(): betas must be a pair of numbers, not float"),
    "one beta": (lambda: optim.AdamW(weights(), betas=(0.9,)), ValueError,
                 "AdamW(): betas are (0.9,); they must be two numbers in [0, 1)"),
    "a beta of text": (lambda: optim.Lion(weights(), betas=(0.9, "a")), TypeError,
                       "Lion(): betas must be a pair of numbers, but one is str"),
    "a misspelt group": (lambda: optim.SGD([{"parms": [leaf(2)]}]), ValueError,
                         "SGD(): a group must have \"params\", but this one has the keys "
                         "['parms']"),
    "a tensor for a group": (lambda: sgd().add_param_group(leaf(2)), TypeError,
                             'SGD(): a group must be a dict with "params", not Tensor'),
    "state of other shapes": (lambda: stepped(optim.Adam, 3).load_state_dict(
        stepped(optim.Adam, 2).state_dict()), flow.ShapeError,
        "load_state_dict(): exp_avg of parameter 0 has shape [2, 2], expected [2, 3]"),
    "state of another optimizer": (lambda: stepped(optim.Adam, 2).load_state_dict(
        stepped(optim.RMSprop, 2).state_dict()), ValueError,
        "load_state_dict(): the state of parameter 0 has ['step', 'square_avg'], but Adam needs"),
    "epochs of text": (lambda: lr.StepLR(sgd(), "3"), TypeError,
                       "StepLR(): step_size must be a number, not str"),
    "a factor of text": (lambda: lr.ExponentialLR(sgd(), "0.9"), TypeError,
                         "ExponentialLR(): gamma must be a number, not str"),
    "a number for a function": (lambda: lr.LambdaLR(sgd(), 0.9), TypeError,
                                "LambdaLR(): lr_lambda must be a function or a list of functions"),
    "one milestone": (lambda: lr.MultiStepLR(sgd(), 3), TypeError,
                      "MultiStepLR(): milestones must be a list of numbers, not int"),
    # files, data and what is absent
    "another model's state": (lambda: nn.Linear(2, 2).load_state_dict({"module.weight": x}),
                              flow.ShapeError, "load_state_dict(): the state does not fit Linear"),
    "a list of data": (lambda: next(flow.utils.data.batches([1, 2, 3], size=2)), TypeError,
                       "batches(): array 0 must be a numpy.ndarray or a Tensor, not list"),
    "no data": (lambda: next(flow.utils.data.batches(size=2)), TypeError,
                "batches(): one array or more must be given"),
    "convolutions": (lambda: nn.Conv2d(3, 4, 3), AttributeError,
                     "module 'oneflow_lite.nn' has no attribute 'Conv2d', on purpose"),
    "process groups": (lambda: dist.init_process_group("nccl"), AttributeError,
                       "module 'oneflow_lite.distributed' has no attribute 'init_process_group', "
                       "on purpose (several processes); instead: flow.distributed has init"),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_told(what):
    call, error, text = MISTAKES[what]
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)


OPTIONS = {
    "SGD": ("lr", "momentum", "dampening", "weight_decay"),
    "Adam": ("lr", "eps", "weight_decay"),
    "AdamW": ("lr", "eps", "weight_decay"),
    "Lion": ("lr", "weight_decay"),
    "RMSprop": ("lr", "alpha", "eps", "weight_decay", "momentum"),
    "Adadelta": ("lr", "rho", "eps", "weight_decay"),
    "LBFGS": ("lr", "max_iter", "tolerance_grad", "tolerance_change", "history_size"),
    "Adagrad": ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps"),
}


@pytest.mark.parametrize(
    "name, option", [(n, o) for n, options in OPTIONS.items() for o in options]
)
@pytest.mark.parametrize("value", ["0.1", None, [0.1]], ids=repr)
def test_an_option_that_is_no_number(name, option, value):
    with pytest.raises(TypeError) as caught:
        getattr(optim, name)(weights(), **{option: value})
    given = type(value).__name__
    assert str(caught.value) == f"{name}(): {option} must be a number, not {given}"
    group = {"params": [leaf(2)], option: value}
    with pytest.raises(TypeError, match=rf"{option} must be a number, not {given}"):
        getattr(optim, name)([group])


IMPORTS = [("oneflow_lite.utils.data", "ConcatDataset"), ("oneflow_lite.nn", "Conv2d"),
           ("oneflow_lite", "vmap"), ("oneflow_lite.nn.functional", "conv2d"),
           ("oneflow_lite.optim", "RAdam"),
           ("oneflow_lite.autograd", "detect_anomaly")]  # fmt: skip


@pytest.mark.parametrize("module, name", IMPORTS)
def test_an_import_of_an_absent_name_says_what_to_use(module, name):
    """Python drops the text of the AttributeError that the module raises."""
    with pytest.raises(ImportError, match=f"cannot import name '{name}' .* on purpose .*instead"):
        exec(f"from {module} import {name}")


def test_an_import_of_a_name_that_nobody_knows_is_pythons():
    with pytest.raises(ImportError, match="cannot import name 'Nobody' from 'oneflow_lite.nn'"):
        exec("from oneflow_lite.nn import Nobody")
    assert not hasattr(nn, "Conv2d") and getattr(nn, "Conv2d", 1) == 1
    with pytest.raises(AttributeError):
        _ = nn.Conv2d


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"size": 2.5}, "size must be an int, not float"),
        ({"size": None}, "size must be an int, not NoneType"),
        ({"size": 2, "rng": 3}, "rng must be a numpy.random.Generator, not int"),
        ({"size": 2, "sampler": [0, 1.5]}, "'float' object cannot be interpreted as an integer"),
    ],
)
def test_batches_of_what_is_no_number(options, text):
    with pytest.raises(TypeError, match=text):
        next(flow.utils.data.batches(np.arange(4), **options))


def test_batches_take_tensors_too():
    rows, labels = flow.arange(10).view(5, 2), np.arange(5)
    rng = np.random.default_rng(0)
    got = list(flow.utils.data.batches(rows, labels, size=2, rng=rng))
    assert [len(a) for a, _ in got] == [2, 2, 1]
    for a, b in got:
        assert a.tolist() == [[2 * k, 2 * k + 1] for k in b.tolist()]
