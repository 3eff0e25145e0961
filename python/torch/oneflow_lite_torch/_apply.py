# SPDX-License-Identifier: Apache-2.0
"""apply_to(): the modules of a model that these kernels serve, replaced where they stand.

A module keeps its parameters, buffers, hooks and name; its class becomes a subclass of what it was,
with another forward. What its new forward cannot serve goes to the old one.
"""

import copy
import sys

import torch
from torch import Tensor, nn

from . import _losses, _norms
from ._support import is_served


def _layer_norm(self, x: Tensor) -> Tensor:
    return _norms.layer_norm(
        x, self.normalized_shape, self.weight, self.bias, self.eps, **self._rows_how
    )


def _rms_norm(self, x: Tensor) -> Tensor:
    return _norms.rms_norm(x, self.normalized_shape, self.weight, self.eps, **self._rows_how)


def _eps_of(module: nn.Module) -> float:
    eps = getattr(module, "variance_epsilon", None)
    return module.eps if eps is None else eps


def _llama_rms_norm(self, x: Tensor) -> Tensor:
    """Weight * x_hat, of one dtype. Llama rounds x_hat before it multiplies; this rounds once."""
    if not is_served(x) or x.dtype != self.weight.dtype or x.numel() == 0:
        return self._rows_class.forward(self, x)
    invariant = self._rows_how["invariant"]
    eps = _eps_of(self)
    return _norms.rms_norm(
        x, self.weight.shape, self.weight, eps, autocast="keep", invariant=invariant
    )


def _gemma_rms_norm(self, x: Tensor) -> Tensor:
    """x_hat * (1 + weight), rounded once, as Gemma does."""
    if not is_served(x) or x.numel() == 0 or self.weight.dtype == torch.float64 != x.dtype:
        return self._rows_class.forward(self, x)
    weight = 1.0 + (self.weight.double() if x.dtype == torch.float64 else self.weight.float())
    invariant = self._rows_how["invariant"]
    return _norms.rms_norm(
        x, weight.shape, weight, _eps_of(self), autocast="keep", invariant=invariant
    )


def _cross_entropy(self, x: Tensor, target: Tensor) -> Tensor:
    return _losses.cross_entropy(
        x,
        target,
        self.weight,
        self.ignore_index,
        self.reduction,
        self.label_smoothing,
        **self._rows_how,
    )


_FORWARDS = {
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "llama_rms_norm": _llama_rms_norm,
    "gemma_rms_norm": _gemma_rms_norm,
    "cross_entropy": _cross_entropy,
}
_made: dict[tuple[type, str], type] = {}


def _replacement(cls: type, kind: str) -> type:
    """The subclass of cls with that forward."""
    if (cls, kind) not in _made:

        def reduce(self, protocol):  # classes made here are found again by what they were made of
            if type(self) is not made:  # what parametrizations and FSDP made of one of them
                return super(made, self).__reduce_ex__(protocol)
            return _rebuild, (cls, kind), self.__dict__

        body = {
            "forward": _FORWARDS[kind],
            "__reduce_ex__": reduce,
            "__module__": __name__,
            "_rows_class": cls,
        }
        made = _made[cls, kind] = type(f"Rows{cls.__name__}", (cls,), body)
    return _made[cls, kind]


def _rebuild(cls: type, kind: str) -> nn.Module:
    made = _replacement(cls, kind)
    return made.__new__(made)


def _kinds(module: nn.Module) -> tuple[str, ...]:
    """The forwards that may be this module's; the probe decides."""
    cls = type(module)
    if "forward" in vars(module):  # accelerate's hooks put another before the class's
        return ()
    known = {
        nn.LayerNorm: "layer_norm",
        nn.RMSNorm: "rms_norm",
        nn.CrossEntropyLoss: "cross_entropy",
    }
    if cls in known:
        return (known[cls],)
    named = cls.__name__.endswith("RMSNorm") or cls.__name__ == "T5LayerNorm"
    weight = getattr(module, "weight", None)
    if (
        cls.__module__.startswith("transformers.models.")
        and named
        and isinstance(weight, Tensor)
        and weight.ndim == 1
        and [n for n, _ in module.named_parameters()] == ["weight"]
        and (hasattr(module, "variance_epsilon") or hasattr(module, "eps"))
    ):
        return ("llama_rms_norm", "gemma_rms_norm")
    return ()


def _like(module: nn.Module) -> Tensor:
    """A tensor of the dtype and device of the module's parameters."""
    return next(iter(module.parameters()), torch.empty(0, device="cpu"))


def _inputs(module: nn.Module) -> list[tuple[Tensor, ...]]:
    """Random inputs for a probe, as the module's parameters are."""
    like = _like(module)
    if isinstance(module, nn.CrossEntropyLoss):
        weight = module.weight
        classes = 17 if weight is None else weight.shape[0]
        device = like.device if weight is None else weight.device
        x = torch.randn(6, classes, dtype=torch.float32, device=device)
        return [(x, torch.randint(0, classes, (6,), device=device))]
    shape = tuple(getattr(module, "normalized_shape", like.shape))
    return [
        (torch.randn(*lead, *shape, dtype=torch.float32, device=like.device).to(like.dtype),)
        for lead in ((5,), (2, 3))
    ]


def _outcome(module: nn.Module, inputs: tuple[Tensor, ...], dy_seed: int) -> list[Tensor]:
    """Output and gradients of a module."""
    x = inputs[0].clone().requires_grad_()
    with torch.enable_grad():
        y = module.forward(x, *inputs[1:])  # hooks are not the probe's to call
        generator = torch.Generator("cpu").manual_seed(dy_seed)
        dy = torch.randn(y.shape, generator=generator, dtype=torch.float32, device="cpu").to(y)
        wanted = [x, *module.parameters()]
        return [y, *torch.autograd.grad(y, wanted, dy, allow_unused=True)]


def _is_near(ours: Tensor | None, theirs: Tensor | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return False
    eps = torch.finfo(theirs.dtype).eps
    return torch.allclose(
        ours, theirs, rtol=8 * eps, atol=32 * eps * (1 + theirs.abs().max().item())
    )


def _twin(module: nn.Module, cls: type, parameters: dict[str, nn.Parameter | None]) -> nn.Module:
    """The module as one of cls with other parameters; all else is shared: hooks may own much."""
    twin = copy.copy(module)
    twin.__class__ = cls
    vars(twin)["_parameters"] = parameters
    return twin


def _agrees(module: nn.Module, kind: str) -> bool:
    """Whether the replacement gives the module's output and gradients on random numbers."""
    if any(t.is_meta for t in (*module.parameters(), *module.buffers())):
        return False
    if any(type(p) not in (nn.Parameter, Tensor) for p in module.parameters()):
        return False
    with (
        torch.random.fork_rng(devices=range(torch.cuda.device_count())),
        torch.inference_mode(False),
        torch.no_grad(),
    ):
        try:
            drawn = {
                name: p if p is None else nn.Parameter(torch.randn_like(p))
                for name, p in module._parameters.items()
            }
            old = _twin(module, type(module), drawn)
            new = _twin(module, _replacement(type(module), kind), drawn)
            new._rows_how = {"autocast": "torch", "invariant": False}
            for number, inputs in enumerate(_inputs(module)):
                theirs, ours = (_outcome(m, inputs, number) for m in (old, new))
                if not all(_is_near(a, b) for a, b in zip(ours, theirs, strict=True)):
                    return False
        except Exception:  # what cannot be compared, fake tensors for one, is not replaced
            return False
    return True


def _causal_lm_loss(
    logits,
    labels,
    vocab_size,
    num_items_in_batch=None,
    ignore_index=-100,
    shift_labels=None,
    invariant=False,
    **_,
):
    """Transformers' ForCausalLMLoss without a float32 copy of the logits."""
    if shift_labels is None:
        labels = nn.functional.pad(labels, (0, 1), value=ignore_index)
        shift_labels = labels[..., 1:].contiguous()
    logits = logits.view(-1, vocab_size)
    target = shift_labels.view(-1).to(logits.device)
    reduction = "mean" if num_items_in_batch is None else "sum"
    wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
    loss = _losses.cross_entropy(
        logits, target, None, ignore_index, reduction, dtype=wide, invariant=invariant
    )
    if num_items_in_batch is None:
        return loss
    if torch.is_tensor(num_items_in_batch):
        num_items_in_batch = num_items_in_batch.to(loss.device)
    return loss / num_items_in_batch


def _invariant_causal_lm_loss(*arguments, **named):
    return _causal_lm_loss(*arguments, **named, invariant=True)


def _replace_loss(model: nn.Module, invariant: bool) -> bool:
    """Give a transformers model for causal language modelling the loss above."""
    losses = sys.modules.get("transformers.loss.loss_utils")
    if losses is None or not hasattr(type(model), "loss_function"):
        return False
    ours = _invariant_causal_lm_loss if invariant else _causal_lm_loss
    if model.loss_function in (_causal_lm_loss, _invariant_causal_lm_loss):
        changes = model.loss_function is not ours
        model.loss_function = ours
        return changes
    if model.loss_function is not losses.ForCausalLMLoss:
        return False
    with torch.random.fork_rng(devices=()), torch.inference_mode(False):
        logits = torch.randn(2, 5, 11, dtype=torch.float32, device="cpu", requires_grad=True)
        labels = torch.randint(0, 11, (2, 5), device="cpu")
    labels[0, 1] = -100
    for items in (None, 7):
        with torch.inference_mode(False), torch.enable_grad():
            old = losses.ForCausalLMLoss(logits, labels, 11, items)
            new = _causal_lm_loss(logits, labels, 11, items)
        gradients = [torch.autograd.grad(loss, logits)[0] for loss in (old, new)]
        if not (torch.allclose(old, new) and torch.allclose(*gradients, atol=1e-6)):
            return False
    model.loss_function = ours
    return True


def apply_to(model: nn.Module, *, autocast: str = "torch", invariant: bool = False) -> list[str]:
    """Replace the modules of `model` that the kernels serve, keeping their parameters.

    nn.LayerNorm, nn.RMSNorm, nn.CrossEntropyLoss, the RMSNorms of transformers (Llama's and Gemma's
    kinds) and its loss for causal language models. Each is replaced only if output and gradients
    agree on random input and weight. Subclasses of these are left alone, and modules on the meta
    device.

    Parameters
    ----------
    autocast : {"torch", "keep"}
        Inside torch.autocast: results as PyTorch's modules give them (float32 on CUDA), or with the
        inputs' dtype.
    invariant : bool
        What a row becomes depends on that row alone, to the last bit, in every module that is
        replaced; a call that the kernels do not serve is refused then.

    Returns
    -------
    list of str
        What was replaced, as "encoder.norm: LayerNorm", or was replaced before and now has another
        `autocast` or `invariant`.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"apply_to(): model must be a torch.nn.Module, not {type(model).__name__}")
    if autocast not in ("torch", "keep"):
        raise ValueError(f'autocast is "{autocast}"; allowed are "torch" and "keep"')
    replaced, verdicts = [], {}
    how = {"autocast": autocast, "invariant": invariant}
    for name, module in model.named_modules():
        cls = getattr(type(module), "_rows_class", None)
        if cls is not None:
            if module._rows_how != how:
                module._rows_how = how
                replaced.append(f"{name or 'the model'}: {cls.__name__}")
            continue
        cls = type(module)
        for kind in _kinds(module):
            like = _like(module)
            key = (cls, kind, like.dtype, like.device, like.shape, repr(module))
            if key not in verdicts:
                verdicts[key] = _agrees(module, kind)
            if verdicts[key]:
                module.__class__ = _replacement(cls, kind)
                module._rows_how = how
                replaced.append(f"{name or 'the model'}: {cls.__name__}")
                break
    if _replace_loss(model, invariant):
        replaced.append("loss_function: ForCausalLMLoss")
    return replaced
