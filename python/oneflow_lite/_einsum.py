# SPDX-License-Identifier: Apache-2.0
"""Sums of products by the names of their dims: matrix products, two tensors at a time."""

from __future__ import annotations

import functools
import math
import string
from typing import Any, NamedTuple

from oneflow_lite._oneflow_lite import (
    ShapeError,
    Tensor,
    _own_list,
    bfloat16,
    float16,
    float32,
    int64,
)
from oneflow_lite._oneflow_lite import bool as bool_
from oneflow_lite._promotion import promote_types

_LETTERS = string.ascii_letters


def einsum(equation: Any, *operands: Any) -> Tensor:
    """A sum over the dims that the result does not name, as in NumPy.

    Parameters
    ----------
    equation : str
        A letter per dim of each operand, and of the result where ``->`` names it; else those that
        occur once, sorted. ``...`` stands for further dims, which broadcast.
        Without one, each operand is followed by a list of numbers below 52 for its dims, ``...``
        among them; a last list names the dims of the result.
    *operands : Tensor
        Or one list of them. They are multiplied from the left to the right, in the dtype that they
        are promoted to.

    Examples
    --------
    >>> scores = flow.einsum("bhqd,bhkd->bhqk", query, key)
    """
    if isinstance(equation, Tensor):
        equation, operands = _from_numbers(equation, *operands)
    in_a_list = len(operands) == 1 and isinstance(operands[0], list | tuple)
    tensors = _own_list("einsum", "operands", operands[0] if in_a_list else operands)
    if not isinstance(equation, str) or not all(isinstance(x, Tensor) for x in tensors):
        raise TypeError("einsum(): takes an equation and Tensors, or Tensors and lists of numbers")
    program = _program(equation, tuple([tuple(x.shape) for x in tensors]))
    kind = tensors[0].dtype
    for x in tensors[1:]:
        if x.dtype is not kind:
            kind = promote_types(kind, x.dtype)
    # Products of 16 bits that are multiplied again are not rounded on the way, but where a GPU or
    # autocast is asked for their speed.
    on_the_way = len(tensors) > 2 and kind in (float16, bfloat16) and all(x.is_cpu for x in tensors)
    widened = float32 if on_the_way else kind
    wide = int64 if kind is bool_ else widened
    y = program.run([x if x.dtype is wide else x.to(None, wide) for x in tensors])
    return y != 0 if kind is bool_ else y.to(None, kind) if widened is not kind else y


Names = tuple[str, ...]  # of dims


def _from_numbers(*given: Any) -> tuple[str, tuple[Any, ...]]:
    """The equation and the operands of a call that has lists of numbers for letters."""

    def term(dims: Any) -> str:
        if not isinstance(dims, list | tuple):
            raise TypeError(f"einsum(): a list of numbers must follow each operand, not "
                            f"{type(dims).__name__}")  # fmt: skip
        own = _own_list("einsum", "operands", dims)
        for d in own:
            if d is not Ellipsis and not (isinstance(d, int) and 0 <= d < len(_LETTERS)):
                raise ValueError(
                    f"einsum(): {d!r} is no number of a dim in [0, {len(_LETTERS) - 1}]"
                )
        return "".join("..." if d is Ellipsis else _LETTERS[d] for d in own)

    pairs = len(given) // 2
    equation = ",".join(term(given[2 * k + 1]) for k in range(pairs))
    if len(given) % 2:
        equation += "->" + term(given[-1])
    return equation, given[: 2 * pairs : 2]


Shape = tuple[int, ...]


def _parsed(equation: str, shapes: tuple[Shape, ...]) -> tuple[tuple[Names, ...], Names]:
    """The names of the dims of each tensor and of the result; "0", "1" ... for those of "..."."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(f'einsum(): "{equation}" is for {len(terms)} operands, not {len(shapes)}')
    extra = 0
    names: list[Names] = []
    for term, shape in zip(terms, shapes, strict=True):
        letters = term.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            raise ValueError(f'einsum(): "{term}" has something else than letters and one "..."')
        more = len(shape) - len(letters) if "..." in term else 0
        if more < 0 or (more == 0 and "..." not in term and len(letters) != len(shape)):
            raise ShapeError(f'einsum(): "{term}" does not go with shape {list(shape)}')
        extra = max(extra, more)
        front, _, back = term.partition("...") if "..." in term else (term, "", "")
        # Counted from the last, so that they broadcast.
        names.append((*front, *(str(d) for d in reversed(range(more))), *back))
    points = [str(d) for d in reversed(range(extra))]
    if arrow:
        front, dots, back = right.partition("...")
        result = (*front, *(points if dots else ()), *back)
    else:
        letters = "".join(terms).replace("...", "")
        result = (*points, *sorted(c for c in set(letters) if letters.count(c) == 1))
    known = set().union(*names)
    for name in result:
        if name not in known or result.count(name) > 1:
            raise ValueError(f'einsum(): "{name}" in the result of "{equation}" is no dim of the '
                             "operands, or stands there twice")  # fmt: skip
    return tuple(names), result


def _diagonals(shape: Shape, names: Names) -> tuple[list[tuple[int, int]], Shape, Names]:
    """Pairs of dims of which diagonals are taken one after the other, as a name that stands twice
    means; the shape and the names then.
    """
    pairs, sizes, dims = [], list(shape), list(names)
    for name in names:
        while dims.count(name) > 1:
            first = dims.index(name)
            second = dims.index(name, first + 1)
            if sizes[first] != sizes[second]:
                raise ShapeError(f'einsum(): "{name}" stands for dims of {sizes[first]} and '
                                 f"{sizes[second]}")  # fmt: skip
            pairs.append((first, second))
            size = sizes[first]
            sizes = [n for d, n in enumerate(sizes) if d not in (first, second)] + [size]
            dims = [n for d, n in enumerate(dims) if d not in (first, second)] + [name]
    return pairs, tuple(sizes), tuple(dims)


class _Layout(NamedTuple):
    """How an operand becomes one of a matrix product; None where a step changes nothing."""

    order: list[int] | None
    wide: list[int] | None
    groups: list[int] | None

    def of(self, x: Tensor) -> Tensor:
        if self.order is not None:
            x = x.permute(self.order)
        if self.wide is not None:
            x = x.expand(self.wide)
        return x if self.groups is None else x.reshape(self.groups)


def _planned(
    names: Names, shape: Shape, other: Names, other_shape: Shape, wanted: frozenset[str]
) -> tuple[_Layout, _Layout, bool, list[int], Names]:
    """One matrix product: [batch, rows, sums] times [batch, sums, cols]; whether there are sums,
    the shape of its result, and the names of that.
    """
    sizes: dict[str, int] = {}
    for t, dims in ((shape, names), (other_shape, other)):
        for name, size in zip(dims, t, strict=True):
            if sizes.setdefault(name, size) != size and 1 not in (size, sizes[name]):
                raise ShapeError(f'einsum(): "{name}" stands for dims of {sizes[name]} and {size}')
            if sizes[name] == 1:
                sizes[name] = size
    shared = [n for n in names if n in other]
    batch, sums = [n for n in shared if n in wanted], [n for n in shared if n not in wanted]
    rows, cols = [n for n in names if n not in other], [n for n in other if n not in names]

    def layout(t: Shape, dims: Names, groups: tuple[list[str], ...]) -> _Layout:
        order = [dims.index(n) for group in groups for n in group]
        wide = [sizes[dims[d]] for d in order]
        some = [group for group in groups if group or group is not batch]
        flat = [math.prod(sizes[n] for n in group) for group in some]
        return _Layout(
            None if order == sorted(order) else order,
            None if wide == [t[d] for d in order] else wide,
            None if flat == wide else flat,
        )

    left = layout(shape, names, (batch, rows, sums))
    right = layout(other_shape, other, (batch, sums, cols))
    out = (*batch, *rows, *cols)
    return left, right, bool(sums), [sizes[n] for n in out], out


class _Program(NamedTuple):
    """What an equation comes to for operands of some shapes."""

    diagonals: list[tuple[int, int, int]]  # of an operand, along two dims
    products: list[tuple[_Layout, _Layout, bool, list[int]]]  # as _planned has them
    gone: list[int]  # dims that are added up in the end
    order: list[int] | None  # in which the dims are then

    def run(self, tensors: list[Tensor]) -> Tensor:
        for k, first, second in self.diagonals:
            tensors[k] = tensors[k].diagonal(0, first, second)
        x = tensors[0]
        for (left, right, adds, shape), y in zip(self.products, tensors[1:], strict=True):
            x = left.of(x) @ right.of(y) if adds else left.of(x) * right.of(y)
            if list(x.shape) != shape:
                x = x.reshape(shape)
        if self.gone:
            x = x.sum(self.gone)
        return x if self.order is None else x.permute(self.order)


def _programmed(equation: str, shapes: tuple[Shape, ...]) -> _Program:
    names, result = _parsed(equation, shapes)
    diagonals, parts = [], []
    for k, (given, of_given) in enumerate(zip(shapes, names, strict=True)):
        pairs, shape, dims = _diagonals(given, of_given)
        diagonals += [(k, *pair) for pair in pairs]
        parts.append((shape, dims))
    shape, dims = parts[0]
    products = []
    for k, (other_shape, other) in enumerate(parts[1:], 2):
        wanted = frozenset(result).union(*(later for _, later in parts[k:]))
        left, right, adds, flat, dims = _planned(dims, shape, other, other_shape, wanted)
        products.append((left, right, adds, flat))
        shape = tuple(flat)
    gone = [d for d, name in enumerate(dims) if name not in result]
    left_over = tuple(name for name in dims if name in result)
    own = bool(gone) or bool(products)  # else it may be an operand itself
    order = None if own and left_over == result else [left_over.index(name) for name in result]
    return _Program(diagonals, products, gone, order)


# What follows from the equation and shapes alone is kept: it takes longer than a small product.
_program = functools.lru_cache(maxsize=256)(_programmed)
