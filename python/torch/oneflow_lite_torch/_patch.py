# SPDX-License-Identifier: Apache-2.0
"""patch() and unpatch(): PyTorch's own softmax and norms by these kernels."""

import warnings
from collections.abc import Sequence

import torch

from ._library import ops

# In the order of bindings/patch.cpp.
PATCHED = (
    "_softmax",
    "_log_softmax",
    "_softmax_backward_data",
    "_log_softmax_backward_data",
    "native_layer_norm",
    "native_layer_norm_backward",
    "_fused_rms_norm",
    "_fused_rms_norm_backward",
)
_MASKS = {"native_layer_norm_backward": 3, "_fused_rms_norm_backward": 2}  # flags of output_mask
# Errors that keep their class; see bindings/errors.cpp.
_CLASSES = (IndexError, NotImplementedError, TypeError, ValueError, torch.OutOfMemoryError)
_KEYS = {"cuda": "CUDA", "cpu": "CPU"}

# The kernels that were there before, by device and operator. Not looked up while ours is in place:
# the look would find it.
_before: dict[tuple[str, str], torch._C._SafeKernelFunction] = {}
_library = torch.library.Library("oneflow_lite_torch", "FRAGMENT")
_active: set[str] = set()

# Compute capabilities of the GPUs on which plans were measured.
MEASURED = frozenset({(9, 0)})


def _keep(device: str, name: str) -> bool:
    """Keep the kernel that is there, behind fallback_<name>; False where there is none."""
    key = _KEYS[device]
    if device in _active:
        return (device, name) in _before
    if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key):
        return False
    known = (device, name) in _before
    _before[device, name] = torch.library.get_kernel(f"aten::{name}", key)
    if known:  # its fallback is there
        return True

    def fallback(keyset, *args):
        if name in _MASKS:  # which came as the bits of a number
            args = (*args[:-1], [bool(args[-1] >> i & 1) for i in range(_MASKS[name])])
        try:
            return _before[device, name].call_boxed(keyset, *args)
        except Exception as error:  # nothing of it passes through the stable ABI
            kind = next((k.__name__ for k in _CLASSES if isinstance(error, k)), "")
            ops.note_error(kind, str(error))
            raise

    _library.impl(f"fallback_{name}", fallback, key, with_keyset=True)
    return True


def _warn_unmeasured(index: int) -> None:
    """Say so where no plan was measured on a GPU like this one."""
    capability = torch.cuda.get_device_capability(index)
    if capability in MEASURED:
        return
    known = ", ".join(f"{major}.{minor}" for major, minor in sorted(MEASURED))
    warnings.warn(
        f"patch(): no plan was measured for {torch.cuda.get_device_name(index)} (compute "
        f"capability {capability[0]}.{capability[1]}; measured: {known}). The plans follow the "
        "number and size of its multiprocessors. python -m oneflow_lite_torch.bench shows what "
        "that gains",
        stacklevel=3,
    )


def _set(device: str, op: int, on: bool) -> None:
    with warnings.catch_warnings():  # that a kernel is overridden is what was asked for
        warnings.filterwarnings("ignore", message="(?s).*Overriding a previously registered.*")
        ops.set_patch(op, device == "cuda", on)


def patch(
    devices: str | torch.device | Sequence[str | torch.device] = "cuda", *, invariant: bool = False
) -> list[str]:
    """Let PyTorch's softmax, log_softmax, layer_norm and rms_norm run on these kernels.

    Programs need no change: torch.softmax, nn.LayerNorm and all that calls them are served, forward
    and backward. What the kernels do not serve runs on PyTorch's own; its errors keep their text,
    and IndexError, ValueError, TypeError, NotImplementedError and torch.OutOfMemoryError their
    class. Others come as RuntimeError, torch.AcceleratorError too: PyTorch's stable ABI passes no
    errors on. Inside torch.compile these
    operators are decomposed before they reach a kernel, so there patch() does nothing.

    Parameters
    ----------
    devices : {"cuda", "cpu"}, a torch.device (of any index), or a sequence of them
    invariant : bool
        What a row becomes depends on that row alone, to the last bit, on all patched devices. A
        softmax over another dim than the last, and what else the kernels do not serve, is still
        PyTorch's own, which does not promise it.

    Returns
    -------
    list of str
        The operators that are patched now, as "cuda: _softmax".

    Warns
    -----
    UserWarning
        No plan was measured on such a GPU: values are right, the speed is not known.

    Raises
    ------
    RuntimeError
        The GPU, its driver or this build cannot run the kernels; nothing is patched then.
    """
    given = [devices] if isinstance(devices, str | torch.device) else devices
    if not isinstance(given, Sequence):
        raise TypeError(f"patch(): devices must be named, not {type(devices).__name__}")
    wanted = [d.type if isinstance(d, torch.device) else d for d in given]
    for device in wanted:
        if device not in _KEYS:
            raise ValueError(f'patch(): device is "{device}"; allowed are "cuda" and "cpu"')
        if device == "cuda":
            if not torch.cuda.is_available():
                raise RuntimeError(
                    'patch(): PyTorch sees no CUDA device here; patch("cpu") is for the CPU'
                )
            for index in range(torch.cuda.device_count()):
                ops.check_device(index)
                _warn_unmeasured(index)
    ops.set_patch_invariant(invariant)
    done = []
    for device in wanted:
        for op, name in enumerate(PATCHED):
            if _keep(device, name):
                _set(device, op, True)
                done.append(f"{device}: {name}")
        _active.add(device)
    return done


def unpatch() -> None:
    """Give PyTorch its own kernels back."""
    for device in list(_active):
        for op in range(len(PATCHED)):
            _set(device, op, False)
        _active.discard(device)
    ops.set_patch_invariant(False)
