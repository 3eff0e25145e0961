# SPDX-License-Identifier: Apache-2.0
"""docs/what_there_is.md is what the package has, and what is absent says what to use instead."""

import copy
import importlib
import pickle
import re
import runpy
import subprocess
import sys
import types
from pathlib import Path

import pytest

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite._absent import ABSENT  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
NAMES = [(module, name, absent) for absent in ABSENT
         for module, names in absent.names.items() for name in names.split()]  # fmt: skip
CLASSES = {"Tensor": flow.Tensor, "nn.Module": flow.nn.Linear(1, 1)}


def place(module):
    if module in CLASSES:
        return CLASSES[module]
    return importlib.import_module(f"oneflow_lite.{module}".rstrip("."))


@pytest.mark.parametrize("module, name, absent", NAMES, ids=[f"{m}.{n}" for m, n, _ in NAMES])
def test_what_is_absent_says_what_to_use(module, name, absent):
    assert not hasattr(place(module), name)
    for where in [place(module)] + [flow.ones(2)] * (module == "Tensor"):
        with pytest.raises(AttributeError) as error:
            getattr(where, name)
        assert f"has no attribute '{name}', on purpose ({absent.what})" in str(error.value)
        assert absent.instead in str(error.value) and error.value.name == name


IMPORTED = [(module, name, absent) for module, name, absent in NAMES if module not in CLASSES]


@pytest.mark.parametrize("module, name, absent", IMPORTED,
                         ids=[f"{m}.{n}" for m, n, _ in IMPORTED])  # fmt: skip
def test_the_import_of_what_is_absent_says_so_too(module, name, absent):
    where = f"oneflow_lite.{module}".rstrip(".")
    with pytest.raises(ImportError) as error:
        exec(f"from {where} import {name}", {})
    assert str(error.value).startswith(f"cannot import name '{name}' from '{where}', on purpose")
    assert absent.instead in str(error.value)


@pytest.mark.parametrize("statement", [
    "import oneflow_lite.distributions", "from oneflow_lite.distributions import Normal",
    "from oneflow_lite.nn.utils.stateless import functional_call",
    "import oneflow_lite.nn.parallel as p",
    "from oneflow_lite.utils.tensorboard import SummaryWriter",
])  # fmt: skip
def test_the_import_of_an_absent_module_says_what_to_use(statement):
    with pytest.raises(ModuleNotFoundError, match=r"No module named '.*', on purpose \(.*instead"):
        exec(statement, {})


def test_the_import_of_an_unknown_name_is_an_ordinary_error():
    with pytest.raises(ImportError, match="^cannot import name 'Linaer' from 'oneflow_lite.nn' "):
        exec("from oneflow_lite.nn import Linaer", {})
    with pytest.raises(ModuleNotFoundError, match="^No module named 'oneflow_lite.no_such'$"):
        exec("import oneflow_lite.no_such", {})


@pytest.mark.parametrize("absent", ABSENT, ids=[absent.what for absent in ABSENT])
def test_what_stands_in_is_there(absent):
    spoken = re.findall(r"\b(?:flow|Tensor|nn|optim|autograd|utils|cuda)(?:\.\w+)+", absent.instead)
    for name in spoken:
        found = flow
        for part in name.removeprefix("flow.").split("."):
            found = getattr(found, part)
    for name in re.findall(r"(\w+)=", absent.instead):
        assert name in ("dtype", "device", "inplace")


@pytest.mark.parametrize(
    "module, name",
    [("", "distributions"), ("", "accelerator"), ("", "polar"), ("utils.data", "RandomSampler"),
     ("nn", "ReflectionPad2d"), ("nn.functional", "conv2d"), ("Tensor", "polygamma"),
     ("Tensor", "igamma_"), ("optim", "RAdam"), ("optim.swa_utils", "SWALR"),
     ("autograd.graph", "register_multi_grad_hook"), ("nn.init", "xavier_uniform"),
     ("profiler", "ProfilerActivity"), ("utils.checkpoint", "CheckpointPolicy")],
)  # fmt: skip
def test_names_that_programs_use_are_in_the_table(module, name):
    assert (module, name) in {(m, n) for m, n, _ in NAMES}


def test_an_absent_attribute_of_a_tensor_may_be_set():
    x = flow.ones(2)
    assert not hasattr(x, "names")
    x.names = 3
    assert x.names == 3 and "names" in dir(x)

    class Mine(flow.Tensor):
        def geqrf(self):
            return "mine"

    assert Mine([1.0]).geqrf() == "mine" and "geqrf" in dir(Mine([1.0]))
    assert copy.copy(x).sum() == pickle.loads(pickle.dumps(x)).sum()


def is_there(of, name):
    try:
        return hasattr(of, name)
    except RuntimeError:  # H of a vector, the placement of a local tensor
        return True


@pytest.mark.parametrize("of", [flow.Tensor, flow.ones(2), flow.nn.Parameter, flow.nn.Linear(1, 1)],
                         ids=["class", "tensor", "subclass", "module"])  # fmt: skip
def test_what_dir_shows_is_there(of):
    assert [name for name in dir(of) if not is_there(of, name)] == []
    assert "geqrf" not in dir(of)


def test_what_tensors_lack_is_looked_up_last():
    """In a subclass with another base, too; and the class of Tensor is no other than before."""

    class Base:
        def geqrf(self):
            return "base"

    class Both(flow.Tensor, Base):
        pass

    assert Both([1.0]).geqrf() == "base" and type(flow.Tensor) is type
    assert flow.Tensor.__bases__ == (object,) and Both.__bases__ == (flow.Tensor, Base)
    with pytest.raises(AttributeError, match="on purpose"):
        Both([1.0]).names  # noqa: B018


MODULES = ["", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler",
           "optim.swa_utils", "autograd", "autograd.functional", "autograd.graph", "cuda",
           "cuda.amp", "amp", "utils", "utils.data", "utils.checkpoint", "profiler", "fuse",
           "linalg", "special"]  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_a_module_shows_its_own_names(module):
    here = place(module)
    shown = {name for name in dir(here) if not name.startswith("_")}
    for name in shown:
        value = getattr(here, name)
        if isinstance(value, types.ModuleType):
            assert value.__name__.startswith("oneflow_lite."), name
        elif callable(value) and value is not tuple:
            assert value.__module__.startswith("oneflow_lite"), name
    assert not shown & {"os", "Any", "Callable", "annotations", "TYPE_CHECKING", "np", "math"}
    assert set(here.__all__) <= shown


def test_flow_shows_what_comes_when_it_is_asked_for():
    code = "import oneflow_lite as flow, sys; assert {'fuse', 'check_op', 'CheckError', 'int', " \
           "'nn'} <= set(dir(flow)) and 'oneflow_lite.fuse' not in sys.modules"  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_ordinary_error():
    where = importlib.import_module("oneflow_lite.nn")
    with pytest.raises(AttributeError, match="oneflow_lite.nn' has no attribute 'Linaer'$"):
        where.Linaer  # noqa: B018
    assert not hasattr(where, "__no_such__")


def test_the_page_is_current():
    script, shown = ROOT / "scripts/what_there_is.py", ROOT / "docs/what_there_is.md"
    if not (script.exists() and shown.exists()):
        pytest.skip("the page is not here")
    text = "\n".join(runpy.run_path(str(script))["page"]()) + "\n"
    assert shown.read_text(encoding="utf-8") == text, (
        "run: .venv/bin/python scripts/what_there_is.py docs/what_there_is.md"
    )
