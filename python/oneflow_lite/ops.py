# SPDX-License-Identifier: Apache-2.0
"""The ops themselves, below the functions, and what there is to know of them.

>>> print(flow.ops.describe("softmax"))
>>> y = flow.ops.softmax(x, axis=1)        # an op of this library
>>> y = flow.ops.demo.softplus(x)          # demo::softplus, from an extension or from Python
"""

from __future__ import annotations

import builtins
from typing import Any

from oneflow_lite import _oneflow_lite as _ext
from oneflow_lite._op_names import unknown

__all__ = ["describe", "list"]


def _op(name: str) -> Any:
    """What a pickled op is loaded by."""
    return _ext.op_function(name)


class _Namespace:
    """The ops named ``name::...``."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, op: str) -> Any:
        name = f"{self.__name__}::{op}"
        if name not in _ext.list_ops():
            raise AttributeError(unknown(name), name=name, obj=None)
        function = _ext.op_function(name)
        setattr(self, op, function)
        return function

    def __dir__(self) -> builtins.list[str]:
        prefix = self.__name__ + "::"
        return [n.removeprefix(prefix) for n in _ext.list_ops() if n.startswith(prefix)]

    def __repr__(self) -> str:
        return f"<ops {self.__name__}: {', '.join(dir(self))}>"


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    names = _ext.list_ops()
    if name in names:
        value = _ext.op_function(name)
    elif any(n.startswith(name + "::") for n in names):
        value = _Namespace(name)
    else:
        raise AttributeError(unknown(name, "op and no namespace"), name=name, obj=None)
    globals()[name] = value
    return value


def __dir__() -> builtins.list[str]:
    return sorted(set(__all__) | {n.split("::")[0] for n in _ext.list_ops()})


def list(namespace: str | None = None) -> builtins.list[str]:
    """The names of all ops, sorted.

    Parameters
    ----------
    namespace : str, optional
        Only the ops ``namespace::...``; ``""`` for those of this library, which have none.
    """
    names = sorted(_ext.list_ops())
    if namespace is None:
        return names
    return [n for n in names if (n.split("::")[0] if "::" in n else "") == namespace]


def describe(name: Any, *args: Any, **kwargs: Any) -> str:
    """What an op declares, as text to read.

    Parameters
    ----------
    name : str or function
        One of :func:`list`, or the op itself.
    *args, **kwargs
        The arguments of a call, for which outputs, sharding and cost are then shown as well. The op
        does not run: meta tensors will do.

    Raises
    ------
    NotImplementedError
        There is no such op.

    Examples
    --------
    >>> print(flow.ops.describe("softmax"))
    >>> print(flow.ops.describe("softmax", flow.empty(8, 512), 1))
    """
    name = getattr(name, "__name__", name)
    if not isinstance(name, str):
        raise TypeError(f"describe(): a name or an op is wanted, not {type(name).__name__}")
    if name not in _ext.list_ops():
        raise NotImplementedError(unknown(name))
    info = _ext.op_info(name)
    lines = [info["schema"]]
    lines += [f"  {line}".rstrip() for line in info["doc"].splitlines()]
    lines.append(f"  defined in {info['place']}")
    for k in info["kernels"]:
        kinds = "all dtypes" if len(k["dtypes"]) == 10 else ", ".join(t.name for t in k["dtypes"])
        lines.append(f"  kernel for {k['device'] or 'any device'}: {kinds} ({k['place']})")
    view = info["inputs"][:1] and info["inputs"][0][1] == "viewed"
    lines += ["  a view: it has no kernel"] if view else []
    lines.append(f"  {_gradient(info)}")
    lines.append(f"  sharding: {_sharding(info)}")
    lines.append(f"  cost: {_cost(info, view)}")
    lines.append(f"  autocast: {_ext.autocast_policies().get(name, ('as is',))[0]}")
    if args or kwargs:
        lines += [f"  {line}" for line in _of_call(name, args, kwargs)]
    return "\n".join(lines) + "\n"


def _gradient(info: dict[str, Any]) -> str:
    if not info["differentiable"]:
        return "never requires grad"
    return "has a gradient" if info["has_backward"] else "has no gradient"


def _sharding(info: dict[str, Any]) -> str:
    if not info["has_sbp"]:
        return "whole only"
    return info["sbp_text"] or "by its own rule; describe a call to see it"


def _cost(info: dict[str, Any], view: bool) -> str:
    if info["has_cost"]:
        return info["cost_text"] or "by its own formula; describe a call to see it"
    if view:
        return "none"
    return "each input is read once, each output written once; one operation per output element"


def _of_call(name: str, args: Any, kwargs: Any) -> builtins.list[str]:
    """The same for one call."""
    from oneflow_lite.op_check.calls import Subject  # which is not needed for anything else here

    call = Subject(name, [(*args, kwargs)], "describe(): the call").calls[0]
    arguments = call.arguments()[0]
    outputs = ", ".join(
        f"{dtype.name}{[*shape]}" for shape, dtype in _ext.op_infer(name, arguments)
    )
    ways = [f"({', '.join(ins)}) -> ({', '.join(outs)})"
            for ins, outs in _ext.op_signatures(name, arguments)]  # fmt: skip
    nbytes, flops = _ext.op_cost(name, arguments)
    return [
        f"a call of {call} gives {outputs}",
        f"  on shards as {'; '.join(ways) or 'a whole only'}",
        f"  {nbytes:.10g} bytes, {flops:.10g} operations",
        *_of_global_call(name, arguments),
    ]


def _of_global_call(name: str, arguments: builtins.list[Any]) -> builtins.list[str]:
    """What moves where the tensors are global: the ways to run, the chosen one, and its bytes."""
    plan = _ext.op_plan(name, arguments)
    if plan is None:
        return []
    placement, moves, outputs, nbytes, aside = plan

    def text(entries: builtins.list[str]) -> str:
        return entries[0] if len(entries) == 1 else f"[{', '.join(entries)}]"

    inputs = ", ".join(text(a) if a == b else f"{text(a)} -> {text(b)}" for a, b in moves)
    lines = [f"  on {placement}: ({inputs}) gives ({', '.join(map(text, outputs))})"]
    dims = _ext.op_candidates(name, arguments)
    for d, ways in enumerate(dims):
        where = f" along dim {d} of the grid" if len(dims) > 1 else ""
        lines.append(f"  each rank would send{where}")
        lines += _ways(ways)
        lines += _moves([(a[d], b[d]) for a, b in moves], ways)
    lines += ["  computed aside and moved back into the tensor that changes"] if aside else []
    return [*lines, f"  each rank sends {nbytes:.10g} bytes for it"]


def _ways(ways: builtins.list[Any]) -> builtins.list[str]:
    """The candidates, with the bytes of each."""
    lines: builtins.list[str] = []
    for ins, outs, sent, chosen, fits in ways:
        amount = f"{sum(b or 0 for b in sent):.10g} bytes"
        if not fits:
            amount = "- (its parts would not be even)"
        elif None in sent:
            amount = "- (terms of a sum are made of none unasked)"
        text = f"    ({', '.join(ins)}) -> ({', '.join(outs)}): {amount}"
        line = text + (", chosen" if chosen else "")
        if text not in lines and text + ", chosen" not in lines:
            lines.append(line)
    return lines


_COLLECTIVES = {"SB": "all_gather", "SS": "all_to_all", "PS": "reduce_scatter", "PB": "all_reduce",
                "BS": "a slice", "BP": "on one rank alone"}  # fmt: skip


def _moves(moves: builtins.list[tuple[str, str]], ways: builtins.list[Any]) -> builtins.list[str]:
    """What becomes of each global input."""
    sent = next((way[2] for way in ways if way[3]), [0.0] * len(moves))
    return [f"    input {i}: {a} -> {b} by {_COLLECTIVES.get(a[0] + b[0], 'boxing')}, "
            f"{(nbytes or 0):.10g} bytes"
            for i, ((a, b), nbytes) in enumerate(zip(moves, sent, strict=True))
            if a != b]  # fmt: skip
