# SPDX-License-Identifier: Apache-2.0
"""Everything an op promises, held against what it does.

>>> flow.check_op("softmax", [(flow.randn(3, 4), 1), {"in": flow.randn(5), "axis": 0}])

The checks:

- schema: the signature can be shown, its names can be used, there is documentation.
- inference: shapes, dtypes and devices are those that a run gives.
- repetition: the same call twice gives the same bits; else it is said why, and what compares values
  is skipped.
- mutation: no input is changed but one marked ``Tensor(a!)``.
- layouts, empty: views at odd offsets and of any strides, and sizes of 0 wherever inference
  allows them.
- dtypes: each dtype that kernels are registered for, against the widest.
- cuda against cpu, where there is a GPU; all other checks then run on both.
- gradients, second order: every subset of the floating inputs against differences, in float64,
  or in float32 where that is all there is; inputs and incoming gradients that lie otherwise, of
  which none is written into; empty tensors.
- gradient dtypes: each floating dtype against the widest, and of the input's own dtype.
- sharding: each declared SBP signature, run on 2 and on 3 shards and combined, is the whole.
- cost: finite, about the bytes of inputs and outputs, more for larger tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite.op_check import declared, gradients, running
from oneflow_lite.op_check.calls import Subject
from oneflow_lite.op_check.outcome import Check, CheckError, CheckResult, Failed, Skipped
from oneflow_lite.op_check.running import without_grad
from oneflow_lite.op_check.values import TOLERANCE

__all__ = ["Check", "CheckError", "CheckResult", "check_op"]

_Planned = tuple[str, Callable[[], str]]  # a check's name, and what runs it
_RUNNING = [("inference", running.inference), ("repetition", running.repetition),
            ("mutation", running.mutation), ("layouts", running.layouts),
            ("empty", running.empty)]  # fmt: skip


def _plan(
    subject: Subject, devices: Sequence[str], tolerance: dict[str, float]
) -> Iterator[_Planned]:
    yield "schema", lambda: declared.schema(subject)
    for where in devices:
        mark = "" if where == "cpu" else f" ({where})"
        for name, check in _RUNNING:
            yield name + mark, lambda c=check, w=where: without_grad(c)(subject, w)
        yield "dtypes" + mark, lambda w=where: without_grad(running.dtypes)(subject, w, tolerance)
        if where != "cpu" and "cpu" in devices:
            yield (f"{where} against cpu",
                   lambda w=where: without_grad(running.parity)(subject, w, tolerance))  # fmt: skip
        yield "gradients" + mark, lambda w=where: gradients.first_order(subject, w)
        yield "gradient dtypes" + mark, lambda w=where: gradients.dtypes(subject, w, tolerance)
        yield "second order" + mark, lambda w=where: gradients.second_order(subject, w)
        yield "sharding" + mark, lambda w=where: without_grad(declared.sharding)(subject, w)
    yield "cost", lambda: declared.cost(subject)


def _devices(subject: Subject) -> tuple[list[str], list[Check]]:
    """The devices here that the op has kernels for, and why others are left out."""
    found, left_out = [], []
    for where in ("cpu", "cuda"):
        if where == "cpu" and (why := _is_at_home_elsewhere(subject)):
            left_out.append(Check("cpu", "skipped", why))
        elif where == "cuda" and not _ext.cuda_is_available():
            left_out.append(Check("cuda", "skipped", "no GPU here"))
        elif why := _missing(subject, where):
            left_out.append(Check(where, "skipped", why))
        else:
            found.append(where)
    return found, left_out


def _is_at_home_elsewhere(subject: Subject) -> str:
    """Why a function does not run on the CPU though it does on a GPU: its own tensors are there."""
    if subject.info is not None or not _ext.cuda_is_available():
        return ""
    try:
        subject.run(subject.on(subject.calls[0], "cpu"))
    except RuntimeError as error:
        if "must be on one device" not in str(error):
            return ""
        try:
            subject.run(subject.on(subject.calls[0], "cuda"))
        except Exception:
            return ""  # the checks will tell what is wrong
        return f"a function whose own tensors are on a GPU: {error}"
    except Exception:
        return ""
    return ""


def _missing(subject: Subject, where: str) -> str:
    """Why the op does not run there; empty where it does."""
    if not subject.kernel_dtypes(where):
        return f"no kernel for {where}"
    if where == "cuda":  # a kernel for any device may lack the primitive of one, or a part of it
        for call in subject.calls:
            try:
                subject.run(subject.on(call, where))
            except NotImplementedError as error:
                return str(error)
            except Exception as error:
                if subject.info is None and "must be on one device" in str(error):
                    return f"a function that uses tensors of its own: {error}"
                # Else the checks will tell what is wrong.
    return ""


def _run(subject: Subject, name: str, check: Callable[[], str]) -> Check:
    try:
        return Check(name, "ok", check())
    except Failed as failed:
        return Check(name, "FAILED", str(failed))
    except Skipped as skipped:
        return Check(name, "skipped", str(skipped))
    except Exception as error:
        notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
        text = f"raised {type(error).__name__}: {error}{notes}; the last call was {subject.last}"
        return Check(name, "FAILED", text)


def _given_devices(devices: Any) -> list[str]:
    given = [devices] if isinstance(devices, str) else list(devices)
    if not given or not set(given) <= {"cpu", "cuda"}:
        raise ValueError(f'check_op(): devices must be of "cpu" and "cuda", not {devices!r}')
    return given


def _bounds(tolerance: Mapping[Any, float]) -> dict[str, float]:
    """For each floating dtype, by its name."""
    given = {getattr(k, "name", k): bound for k, bound in tolerance.items()}
    if unknown := set(given) - set(TOLERANCE):
        raise ValueError(f"check_op(): tolerance names {sorted(unknown)[0]!r}; there are "
                         f"{', '.join(TOLERANCE)}")  # fmt: skip
    return {**TOLERANCE, **given}


def _known(subject: Subject, skip: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(skip, Mapping):
        raise TypeError("check_op(): skip must be a dict of checks' names and reasons, not "
                        f"{type(skip).__name__}")  # fmt: skip
    names = [name for name, _ in _plan(subject, ["cpu", "cuda"], {})]
    for unknown in set(skip) - set(names):
        raise ValueError(f"check_op(): there is no check {unknown!r}; there are {', '.join(names)}")
    return dict(skip)


def _checks(subject: Subject, plan: Iterable[_Planned], reasons: dict[str, str]) -> Iterator[Check]:
    """Those that have no reason to be skipped; none on a device where the samples do not run."""
    broken = random = False
    for name, check in plan:
        inference = name.startswith("inference")
        reason = reasons.get(name) or reasons.get(name.split(" (")[0])
        if broken and not inference and not reason:
            reason = "the samples do not run, see inference"
        if random and name not in ("schema", "cost") and not inference and not reason:
            reason = "equal calls differ, see repetition"
        done = Check(name, "skipped", reason) if reason else _run(subject, name, check)
        if inference:
            broken = done.status == "FAILED" and done.detail.startswith("raised")
        random = random or (name.startswith("repetition") and done.status == "FAILED")
        yield done


def check_op(
    op: str | Callable[..., Any],
    samples: Sequence[Any],
    *,
    devices: Sequence[str] | None = None,
    tolerance: Mapping[str, float] | None = None,
    skip: Mapping[str, str] | None = None,
    verbose: bool = True,
    raise_exception: bool = True,
) -> CheckResult:
    """Hold an op's definition against its kernels, and its gradient against differences.

    Parameters
    ----------
    op : str or callable
        An op's name (``"softmax"``, ``"mine::softplus"``), its function
        (``flow.ops.mine.softplus``), a function composed of ops, or a module, of which a copy is
        made where a check wants it on another device.
    samples : sequence
        Calls to check on: each a tensor, a tuple of arguments, which a dict of keywords may end, or
        such a dict. Arguments and results may be lists, tuples and dicts of tensors; after an
        argument that is a dict comes one of keywords, which may be empty. Gradients are held
        against differences, entry by entry, for samples whose tensors have 120 elements or fewer
        together; where no sample is so small, the report says that "gradients" and "second order"
        were not looked at.
    devices : sequence of str, optional
        By default the CPU, and CUDA where there is a GPU, as far as the op has kernels and, of a
        function with tensors of its own, where these are. The samples are moved there.
    tolerance : mapping of dtype, or its name, to float, optional
        Allowed against the widest dtype: ``|error| <= tolerance * (|value| + max |value|)``. By
        default float16 2e-3, bfloat16 1.6e-2, float32 1e-5.
    skip : mapping of check's name to reason, optional
        Checks that make no sense for the op.
    verbose : bool
        Print the report.
    raise_exception : bool
        Raise where a check failed.

    Returns
    -------
    CheckResult
        ``passed``, and ``checks`` with name, status ("ok", "FAILED", "skipped") and detail of each.

    Raises
    ------
    CheckError
        A check failed; an AssertionError with the lines of those that did.
    TypeError
        ``samples`` is no list, or a sample does not go with the op's schema; ``skip`` is no dict.
    ValueError
        There are no samples; ``devices``, ``tolerance`` or ``skip`` names what is not there.
    NotImplementedError
        There is no such op.

    Examples
    --------
    >>> flow.check_op("softmax", [(flow.randn(3, 4), 1)])
    """
    if not isinstance(samples, (list, tuple)):  # a tensor would be taken for its rows
        raise TypeError(
            f"check_op(): samples must be a list of calls, not {type(samples).__name__}"
        )
    subject = Subject(op, samples)
    if not subject.calls:
        raise ValueError("check_op(): there are no samples")
    reasons, bounds = _known(subject, skip or {}), _bounds(tolerance or {})
    found, left_out = _devices(subject)
    if devices is not None:
        found, left_out = _given_devices(devices), []
    if subject.info is None and found and "cpu" not in found:  # where the function's tensors are
        subject.calls = [subject.on(call, found[0]) for call in subject.calls]
    plan = _plan(subject, found, bounds)
    checks = [*_checks(subject, plan, reasons), *left_out]
    result = CheckResult(subject.name, tuple(checks))
    if verbose:
        print(result)
    if raise_exception and not result.passed:
        raise CheckError("\n".join([result.summary(), *map(str, result.failures)]))
    return result
