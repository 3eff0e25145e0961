# SPDX-License-Identifier: Apache-2.0
"""Observers in Python see every op of their thread, and may fail."""

import pytest

flow = pytest.importorskip("oneflow_lite")
ext = flow._oneflow_lite
X = flow.arange(12.0).reshape(3, 4)


@pytest.fixture
def observe():
    pushed = []

    def push(f):
        ext.push_observer(f)
        pushed.append(f)

    yield push
    for _ in pushed:
        ext.pop_observer()


def test_observer_sees_shapes_and_cost(observe):
    seen = []
    observe(lambda name, run: seen.append((name, run())))
    X.softmax(1)
    ((name, info),) = seen
    assert name == info["op"] == "softmax" and info["seconds"] > 0
    assert info["inputs"] == [((3, 4), flow.float32, flow.device("cpu"))] == info["outputs"]
    assert info["bytes"] == 2 * X.nbytes and info["flops"] > 0


def test_observers_nest(observe):
    order = []

    def named(n):
        def f(name, run):
            order.append(n)
            run()
            order.append(-n)

        return f

    observe(named(1))
    observe(named(2))
    X.exp()
    assert order == [1, 2, -2, -1]


def test_observer_errors(observe):
    kept = []
    modes = {
        "raise": lambda run: (_ for _ in ()).throw(KeyError("mine")),
        "raise after": lambda run: (run(), {}["gone"]),
        "skip": lambda run: None,
        "twice": lambda run: (run(), run()),
        "keep": lambda run: (run(), kept.append(run)),
        "swallow": lambda run: swallow(run),
    }

    def swallow(run):
        try:
            run()
        except IndexError:
            pass

    mode = "raise"
    observe(lambda name, run: modes[mode](run))
    with pytest.raises(KeyError, match="mine"):
        X.exp()
    mode = "raise after"
    with pytest.raises(KeyError, match="gone"):
        X.exp()
    mode = "skip"
    with pytest.raises(RuntimeError, match=r"exp\(\): the observer did not call run\(\)"):
        X.exp()
    mode = "twice"
    with pytest.raises(RuntimeError, match="once"):
        X.exp()
    mode = "keep"
    X.exp()
    with pytest.raises(RuntimeError, match="before it ends"):
        kept[0]()
    mode = "swallow"
    with pytest.raises(flow.ShapeError):
        flow.matmul(X, X)


def test_observer_may_leave_while_it_runs():
    def f(name, run):
        ext.pop_observer()
        run()

    ext.push_observer(f)
    X.exp()
    with pytest.raises(RuntimeError, match="none on this thread"):
        ext.pop_observer()
    with pytest.raises(TypeError):
        ext.push_observer(1)
