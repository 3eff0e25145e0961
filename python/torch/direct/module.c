/* SPDX-License-Identifier: Apache-2.0
 *
 * oneflow_lite_torch._direct: functions of Python that run a forward without PyTorch's dispatcher.
 * Each gives None where the call is one for the dispatcher: something records, traces or changes
 * what is called, or the kernels do not serve the tensors. Limited API of Python 3.10: one build
 * for all later ones.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030a0000
#include <Python.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>

static int (*run_softmax)(void*, int64_t, int, int, void**);
static int (*run_norm)(void*, void*, void*, int64_t, double, int, int, int, void**);

/* Of open(): the types of tensors; functions that say whether gradients are recorded and whether
 * autocast is on; what tells that something is in the way. */
static PyObject *tensor_type, *parameter_type, *records, *casts, *requires_grad_name;

/* A function, or where `name` is given the variable of that name in a module's globals, and what it
 * gives or holds where nothing is in the way. */
struct check {
  PyObject *source, *name, *quiet;
};
#define MOST_CHECKS 16
static struct check checks[MOST_CHECKS];
static Py_ssize_t num_checks;

/* 1, or 0; an exception is cleared, and counts as something in the way. */
static int gives(PyObject* function, PyObject* expected) {
  PyObject* found = PyObject_CallNoArgs(function);
  const int same = found == expected; /* None, True, False, 0 and -1 are one object each */
  if (!found) PyErr_Clear();
  Py_XDECREF(found);
  return same;
}

static int nothing_in_the_way(void) {
  for (const struct check* c = checks; c < checks + num_checks; ++c) {
    if (c->name) {
      PyObject* held = PyDict_GetItemWithError(c->source, c->name); /* borrowed */
      if (held != c->quiet) {
        if (!held) PyErr_Clear();
        return 0;
      }
    } else if (!gives(c->source, c->quiet)) {
      return 0;
    }
  }
  return 1;
}

/* For floats of 16 bits, which autocast may widen. */
static int is_cast(void) { return !gives(casts, Py_False); }

static int is_recorded(PyObject* tensor) {
  PyObject* flag = PyObject_GetAttr(tensor, requires_grad_name);
  const int recorded = flag != Py_False;
  if (!flag) PyErr_Clear();
  Py_XDECREF(flag);
  return recorded;
}

/* A flag that is True or False; -1 for anything else. */
static int flag_of(PyObject* o) { return o == Py_True ? 1 : o == Py_False ? 0 : -1; }

/* softmax(x, dim, log, invariant) */
static PyObject* softmax(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 4 || (PyObject*)Py_TYPE(args[0]) != tensor_type) Py_RETURN_NONE;
  const int log = flag_of(args[2]), invariant = flag_of(args[3]);
  if (!PyLong_Check(args[1]) || log < 0 || invariant < 0) Py_RETURN_NONE;
  const long long dim = PyLong_AsLongLong(args[1]);
  if (dim == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    Py_RETURN_NONE;
  }
  if (is_recorded(args[0]) && !gives(records, Py_False)) Py_RETURN_NONE;
  if (!nothing_in_the_way()) Py_RETURN_NONE;
  void* y;
  if (run_softmax(args[0], dim, log, invariant, &y) == 0) return (PyObject*)y;
  PyErr_Clear();
  Py_RETURN_NONE;
}

/* The one dim of a number or of a tuple of one; -1 for others. */
static long long cols_of(PyObject* shape) {
  if (PyTuple_Check(shape) && PyTuple_Size(shape) == 1) shape = PyTuple_GetItem(shape, 0);
  if (!PyLong_Check(shape)) return -1;
  const long long cols = PyLong_AsLongLong(shape);
  if (PyErr_Occurred()) PyErr_Clear();
  return cols;
}

/* norm(x, shape, weight, bias, eps, centre, invariant, statistics): y, or y, mean and rstd */
static PyObject* norm(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 8 || (PyObject*)Py_TYPE(args[0]) != tensor_type) Py_RETURN_NONE;
  const int centre = flag_of(args[5]), invariant = flag_of(args[6]), keeps = flag_of(args[7]);
  const long long cols = cols_of(args[1]);
  if (cols < 0 || centre < 0 || invariant < 0 || keeps < 0) Py_RETURN_NONE;
  if (args[4] != Py_None && !PyFloat_Check(args[4])) Py_RETURN_NONE;
  const double eps = args[4] == Py_None ? NAN : PyFloat_AsDouble(args[4]);
  void* tensors[3] = {args[0], NULL, NULL};
  int recorded = is_recorded(args[0]);
  for (int i = 1; i < 3; ++i) {
    PyObject* column = args[1 + i];
    if (column == Py_None) continue;
    PyObject* type = (PyObject*)Py_TYPE(column);
    if (type != tensor_type && type != parameter_type) Py_RETURN_NONE;
    recorded = recorded || is_recorded(column);
    tensors[i] = column;
  }
  if (recorded && !gives(records, Py_False)) Py_RETURN_NONE;
  if (!nothing_in_the_way()) Py_RETURN_NONE;
  void* out[3] = {NULL, NULL, NULL};
  if (run_norm(tensors[0], tensors[1], tensors[2], cols, eps, centre, invariant, keeps, out) != 0) {
    PyErr_Clear();
    for (int i = 0; i < 3; ++i) Py_XDECREF((PyObject*)out[i]);
    Py_RETURN_NONE;
  }
  if (!keeps) return (PyObject*)out[0];
  const Py_ssize_t size = centre ? 3 : 2;
  PyObject* all = PyTuple_New(size);
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (all) {
      PyTuple_SetItem(all, i, (PyObject*)out[i]);
    } else {
      Py_DECREF((PyObject*)out[i]);
    }
  }
  return all;
}

/* open(path of the library, Tensor, Parameter, is_grad_enabled, is_any_autocast_enabled,
 * ((function, None, value) or (globals, name, value), ...)): whether this PyTorch can be called
 * so. */
static PyObject* open_library(PyObject* self, PyObject* args) {
  const char* path;
  PyObject *tensor, *parameter, *recording, *casting, *given;
  if (!PyArg_ParseTuple(args, "sOOOOO!", &path, &tensor, &parameter, &recording, &casting,
                        &PyTuple_Type, &given)) {
    return NULL;
  }
  const Py_ssize_t size = PyTuple_Size(given);
  if (size > MOST_CHECKS || num_checks > 0) {
    PyErr_SetString(PyExc_ValueError, "_direct.open(): called twice, or with too many functions");
    return NULL;
  }
  for (Py_ssize_t i = 0; i < size; ++i) {
    struct check* c = &checks[i];
    if (!PyArg_ParseTuple(PyTuple_GetItem(given, i), "OOO", &c->source, &c->name, &c->quiet)) {
      return NULL;
    }
    Py_INCREF(c->source), Py_INCREF(c->quiet);
    if (c->name == Py_None) {
      c->name = NULL;
    } else {
      Py_INCREF(c->name);
    }
  }
  void* library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  int (*start)(void* (*)(void), void (*)(void*), int (*)(void)) = NULL;
  if (library) {
    *(void**)&start = dlsym(library, "ofl_direct_open");
    *(void**)&run_softmax = dlsym(library, "ofl_direct_softmax");
    *(void**)&run_norm = dlsym(library, "ofl_direct_norm");
  }
  if (!start || !run_softmax || !run_norm ||
      start((void* (*)(void))PyEval_SaveThread, (void (*)(void*))PyEval_RestoreThread, is_cast)) {
    Py_RETURN_FALSE;
  }
  requires_grad_name = PyUnicode_InternFromString("requires_grad");
  if (!requires_grad_name) return NULL;
  Py_INCREF(tensor), Py_INCREF(parameter), Py_INCREF(recording), Py_INCREF(casting);
  tensor_type = tensor, parameter_type = parameter, records = recording, casts = casting;
  num_checks = size;
  Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
    {"softmax", (PyCFunction)(void (*)(void))softmax, METH_FASTCALL, NULL},
    {"norm", (PyCFunction)(void (*)(void))norm, METH_FASTCALL, NULL},
    {"open", open_library, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_direct", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__direct(void) { return PyModule_Create(&module); }
