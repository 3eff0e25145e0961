# SPDX-License-Identifier: Apache-2.0
"""Lists and tensors that change while an argument is read: __index__ of an item may do anything.

Each case ends with the values that were there when they were read, or with an exception that says
what happened. tests/attack/borrowed.py tries the same at random, on every function.
"""

import _thread
import gc
import time

import numpy as np
import pytest
from numerics import flow

ext = flow._oneflow_lite
CHANGED = r"\w+\(\): argument '\w+' is a list that changed its length while it was read"


class Act:
    """An object that does something when it is asked for its value."""

    def __init__(self, value, act):
        self.value, self.act = value, act

    def __index__(self):
        self.act()
        return int(self.value)

    def __float__(self):
        self.act()
        return float(self.value)


def lossy(*values, act=list.clear):
    """A list of ints that loses its items when the first one is read; its class goes with it."""
    items = []
    own = type("Once", (Act,), {})  # no other reference: the name of a freed class is freed
    items.append(own(values[0], lambda: act(items)))
    items.extend(values[1:])
    return items


def refill(items):
    n = len(items)
    items.clear()
    items.extend([1] * n)


CALLS = {
    "reshape": lambda x, items: x.reshape(items),
    "permute": lambda x, items: flow.permute(x, items),
    "sum": lambda x, items: x.sum(items),
    "sum by name": lambda x, items: x.sum(dim=items),
    "zeros": lambda x, items: flow.zeros(items),
    "layer_norm": lambda x, items: flow.layer_norm(x, items),
    "op": lambda x, items: flow.ops.view(x, items),
    "tensor": lambda x, items: flow.tensor(items),
    "tensor, nested": lambda x, items: flow.tensor([items, [1, 2]]),
    "Tensor": lambda x, items: flow.Tensor(items),
    "setitem": lambda x, items: x.__setitem__(0, items),
    "index": lambda x, items: x[items],
    "index of setitem": lambda x, items: x.__setitem__((0, items), 1),
    "cat": lambda x, items: flow.cat(items),
    "full": lambda x, items: flow.full(items, 1.0),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("act", [list.clear, list.pop, lambda items: items.append(5)])
def test_a_list_that_changes_its_length_is_refused(name, act):
    items = lossy(1, 0, act=act) if name in ("sum", "sum by name", "permute") else lossy(2, 3)
    if act is not list.clear:
        items[0].act = lambda: act(items)
    with pytest.raises((ValueError, TypeError, IndexError)) as caught:
        CALLS[name](flow.ones(2, 3), items)
    if name != "cat":
        assert caught.match(CHANGED)


def test_a_list_of_the_same_length_gives_what_is_read():
    assert flow.zeros(lossy(2, 3, 4, act=refill)).shape == (2, 1, 1)
    assert flow.tensor(lossy(7, 8, 9, act=refill)).tolist()[1:] == [1, 1]


def test_a_list_that_is_read_twice_may_not_get_longer_in_between():
    calls = []
    items = [1, 2, 3]

    def act():
        calls.append(1)
        if len(calls) == 2:
            items.append(4)

    items[0] = Act(1, act)
    with pytest.raises(ValueError, match=CHANGED):
        flow.tensor(items)


@pytest.mark.parametrize("items", [lossy(2, "x", act=refill), (Act(2, lambda: None), object())])
def test_the_wrong_type_is_named_although_its_object_has_gone(items):
    with pytest.raises(TypeError, match="must be ints, but item"):
        flow.zeros([*items, object()])


def tensor_with(act, shape):
    x = flow.ones(shape)
    return x, Act(0, lambda: act(x))


def shrink(x):
    x.data = flow.ones(2)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: x[i, 0, 0],
        lambda x, i: x[0, i, 0, 0, 0, 0, 0],
        lambda x, i: x[i:, 0, 0],
        lambda x, i: x.__setitem__((i, 0, 0), 1),
    ],
)
def test_an_index_is_read_before_the_tensor_is_looked_at(call):
    """Of seven dims, whose sizes do not lie in the tensor itself."""
    x, i = tensor_with(shrink, [2] * 7)
    with pytest.raises(IndexError, match=r"too many indices: \d for a tensor of shape \[2\]"):
        call(x, i)


def test_a_tensor_that_changes_while_a_dim_is_read():
    for name in ("size", "stride"):
        x, i = tensor_with(shrink, [3] * 7)
        assert getattr(x, name)(i) == (2 if name == "size" else 1)
        x = flow.ones([3] * 7)
        with pytest.raises(IndexError, match="dim 6 is out of range"):
            getattr(x, name)(Act(6, lambda x=x: shrink(x)))


def test_dlpack_looks_at_the_tensor_last():
    def lose(x):
        x.data = flow.zeros(1000, device="meta")

    for option in ("max_version", "dl_device"):
        x, i = tensor_with(lose, 1000)
        with pytest.raises(BufferError, match="has no data"):
            x.__dlpack__(**{option: (Act(1, i.act), 0)})
    with pytest.raises(TypeError, match="argument 'dl_device' must be a tuple, not list"):
        flow.ones(1).__dlpack__(dl_device=[1, 0])
    with pytest.raises(TypeError, match="argument 'stream' must be int or None, not str"):
        flow.ones(1).__dlpack__(stream="x")


@pytest.mark.parametrize("pair", [(1, "x"), ("x", 0), (1,), None, (1 << 80, 0), (1, None)])
def test_a_wrong_dlpack_device_is_an_exception_of_its_own(pair):
    class Producer:
        def __dlpack__(self, **kwargs):
            return flow.ones(1).__dlpack__()

        def __dlpack_device__(self):
            return pair

    with pytest.raises((TypeError, IndexError, OverflowError)):
        flow.from_dlpack(Producer())


def test_backward_does_not_ask_an_object_for_its_truth():
    class Refuses:
        def __bool__(self):
            raise KeyError("mine")

    x = flow.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="'retain_graph' must be bool, not Refuses"):
        x.sum().backward(retain_graph=Refuses())
    assert x.grad is None


def test_a_subclass_may_give_any_list():
    for odd, what in [(5, "no list"), ({1: 2}, None), (None, "no list")]:
        sub = type("Sub", (flow.Tensor,), {"tolist": lambda self, odd=odd: odd})
        x = sub(flow.ones(2))
        if what:
            with pytest.raises(TypeError, match="tolist.. gave no list"):
                flow.tensor([x, x])
        else:
            assert flow.tensor([x, x]).tolist() == [[1], [1]]


def test_results_are_stored_where_out_stood_when_the_call_was_made():
    """An observer of the ops that run meanwhile takes the list away."""
    values, indices = flow.empty(3), flow.empty(3, dtype=flow.int64)
    out = [values, indices]
    kept = [values, indices]

    def observe(name, proceed):
        if name != "max":
            out.clear()
        proceed()

    ext.push_observer(observe)
    try:
        found = flow.max(flow.tensor([[1.0, 5.0, 3.0], [2.0, 4.0, 6.0]]), 0, out=out)
        assert found.values is values and found.indices is indices
    finally:
        ext.pop_observer()
    assert [t.tolist() for t in kept] == [[2, 5, 6], [1, 0, 1]] and out == []


def test_a_call_that_is_observed_stays_on_its_thread():
    kept, errors = [], []

    def observe(name, proceed):
        done = []

        def elsewhere():
            try:
                proceed()
            except RuntimeError as error:
                errors.append(str(error))
            done.append(1)

        _thread.start_new_thread(elsewhere, ())
        while not done:
            time.sleep(1e-4)
        kept.append(proceed())

    ext.push_observer(observe)
    try:
        assert (flow.ones(2) + 1).tolist() == [2, 2]
    finally:
        ext.pop_observer()
    assert kept and all("on the thread of its op only" in e for e in errors) and errors


def test_keywords_are_those_of_the_call():
    """_thread passes on the caller's own dict."""
    results, kwargs = [], {}

    class Data:
        def __len__(self):
            return 2

        def __getitem__(self, i):
            kwargs.clear()
            gc.collect()
            if i >= 2:
                raise IndexError
            return i

        def __del__(self):
            results.append("freed")

    kwargs.update(data=Data(), requires_grad=False)
    done = _thread.allocate_lock()
    done.acquire()

    class Call:  # start_new_thread wants a callable; the builtin itself gets the dict
        def __del__(self):
            done.release()

    kwargs["device"] = None
    _thread.start_new_thread(flow.tensor, (), kwargs)
    deadline = time.monotonic() + 30
    while "freed" not in results and time.monotonic() < deadline:
        time.sleep(1e-3)
    assert results == ["freed"] and kwargs == {}


def test_a_shape_is_read_before_garbage_is_collected():
    """Making a tuple may run finalizers, and they may give the tensor another shape."""
    x = flow.ones([2] * 9)

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            x.data = flow.ones(3)

    thresholds = gc.get_threshold()
    try:
        for _ in range(200):
            x.data = flow.ones([2] * 9)
            Cycle()
            gc.set_threshold(1)
            shape, strides = x.shape, x.stride()
            gc.set_threshold(*thresholds)
            assert shape in ((2,) * 9, (3,)) and len(strides) in (9, 1)
    finally:
        gc.set_threshold(*thresholds)


def test_custom_ops_own_what_their_functions_give():
    outputs = []

    @flow.register_op("borrowed::lists")
    class Lists:
        def forward(x, n: list[int]):
            outputs[:] = [x * 2]
            return outputs

        def backward(ctx, dy):
            return [dy * 2]

        def sbp(x, n: list[int]):
            return [["S(0)", "S(0)"], ("B", "B")]

    def observe(name, proceed):
        proceed()
        outputs.clear()

    x = flow.ones(3, requires_grad=True)
    ext.push_observer(observe)
    try:
        flow.ops.borrowed.lists(x, [1]).sum().backward()
    finally:
        ext.pop_observer()
    assert x.grad.tolist() == [2, 2, 2]
    signatures = ext.op_signatures("borrowed::lists", [x, (1,)])
    assert signatures == [(["S(0)"], ["S(0)"]), (["B"], ["B"])]


def test_numbers_of_numpy_are_still_numbers():
    x = flow.ones(2, 3)
    assert x.reshape([np.int64(3), np.int32(2)]).shape == (3, 2)
    assert x.reshape(np.array([3, 2])).shape == (3, 2)
    assert flow.zeros(np.int64(2), 3).shape == (2, 3)
    assert x[np.int64(1), flow.tensor(2)].item() == 1


class Endless:
    """A sequence that has always one more item."""

    def __init__(self, item):
        self.item = item

    def __getitem__(self, i):
        if i > 1000:
            pytest.fail("a sequence without an end is read on and on")
        return self.item


class OfLengthTwo(Endless):
    def __len__(self):
        return 2


class ListOfLengthOne(list):
    """Whose iterator has no end."""

    def __iter__(self):
        return iter(OfLengthTwo(self[0]))


class Anything:
    """Has every attribute."""

    def __init__(self, value):
        self.value = value

    def __getattr__(self, name):
        return self.value


READS = {
    "tensor": (1, flow.tensor),
    "tensor, nested": (1, lambda s: flow.tensor([[1], s])),
    "tensor, of tensors": (flow.ones(2), flow.tensor),
    "Tensor": (1, flow.Tensor),
    "as_tensor": (1, flow.as_tensor),
    "zeros": (1, flow.zeros),
    "reshape": (1, lambda s: flow.ones(1).reshape(s)),
    "sum": (0, lambda s: flow.ones(1, 2).sum(s)),
    "Size": (1, flow.Size),
    "broadcast_shapes": (1, flow.broadcast_shapes),
    "normal": (1, lambda s: flow.normal(0.0, 1.0, s)),
    "norm": (0, lambda s: flow.norm(flow.ones(2, 2), "nuc", s)),
    "gradient of dims": (0, lambda s: flow.gradient(flow.ones(4), dim=s)),
    "gradient of spacing": (1.0, lambda s: flow.gradient(flow.ones(4), spacing=s)),
    "tensordot": ([0], lambda s: flow.tensordot(flow.ones(2), flow.ones(2), s)),
    "einsum": (0, lambda s: flow.einsum(flow.ones(2), s)),
}


@pytest.mark.parametrize("name", READS)
def test_a_sequence_is_read_no_further_than_its_length(name):
    item, call = READS[name]
    with pytest.raises(TypeError, match=r"\w+\(\): .*(has a length, not|, not) Endless"):
        call(Endless(item))
    for made in (OfLengthTwo(item), ListOfLengthOne([item])):
        try:
            call(made)  # of a list, some calls read the items themselves
        except (ValueError, TypeError) as error:
            assert "items" in str(error) or "not OfLengthTwo" in str(error), error


@pytest.mark.parametrize("name", READS)
def test_a_length_that_no_memory_holds_is_refused_at_once(name):
    item, call = READS[name]
    made = type("Long", (Endless,), {"__len__": lambda self: 1 << 60})(item)
    with pytest.raises((MemoryError, TypeError)):
        call(made)


def test_a_function_asks_no_other_object_what_a_tensor_is_asked():
    """A number of dims without an end was gone through one by one."""
    for value in (1 << 20, 5, None, Anything(1)):
        for call in (
            lambda o: flow.gradient(o),
            lambda o: flow.gradient(input=o),
            lambda o: flow.diff(flow.ones(3), 1, 0, o),
            lambda o: flow.histogram(o),
            lambda o: flow.nn.functional.one_hot(o),
            lambda o: flow.histogram(flow.ones(3), weight=o),
        ):
            with pytest.raises(
                TypeError, match=r"^\w+\(\): argument '\w+' must be Tensor.*Anything"
            ):
                call(Anything(value))
