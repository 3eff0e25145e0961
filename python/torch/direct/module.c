/* SPDX-License-Identifier: Apache-2.0
 *
 * oneflow_lite_torch._direct: functions of Python that run an operator without PyTorch's
 * dispatcher. Each gives None where the call is one for the dispatcher: something records, traces
 * or changes what is called, or the kernels do not serve the tensors. Limited API of Python 3.10:
 * one build for all later ones.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030a0000
#include <Python.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>

static int (*run_softmax)(void*, int64_t, int, int, void**);
static int (*run_softmax_backward)(void*, void*, int64_t, int, int, void**);
static int (*run_norm)(void*, void*, void*, int64_t, double, int, int, int, void**);
static int (*run_norm_backward)(void* const*, int, int, const int*, void**);
static int (*run_loss)(void*, void*, int64_t, char, double, int, int, int, void**);
static int (*run_loss_backward)(void*, void*, void*, void*, int64_t, double, void**);

/* Of open(): the types of tensors; functions that say whether gradients are recorded and whether
 * autocast is on; what tells that something is in the way. */
static PyObject *tensor_type, *parameter_type, *records, *casts, *requires_grad_name;
static PyObject* to_capsule; /* before 2.14: a tensor as a handle */
static PyObject *transforms, *traces; /* whether torch.func transforms, and torch.jit.trace records */

/* What these two ask, asked of PyTorch itself where it can be: a function of pybind11 takes a few
 * hundred instructions. Whether this thread's dispatcher has those keys, which transforms set; and
 * the state of a trace, a pointer behind a pointer. */
static _Bool (*has_keys)(uint64_t keys);
static uint64_t transform_keys;
static void* const* (*trace_state)(void);

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
  if (has_keys ? has_keys(transform_keys) : !gives(transforms, Py_False)) return 0;
  if (trace_state ? *trace_state() != NULL : !gives(traces, Py_False)) return 0;
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

/* nothing_in_the_way(): whether a call is seen by its operator alone */
static PyObject* is_clear(PyObject* self, PyObject* nothing) {
  return PyBool_FromLong(nothing_in_the_way());
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

static void* handle_of(void* tensor) {
  PyObject* capsule = PyObject_CallFunctionObjArgs(to_capsule, (PyObject*)tensor, NULL);
  if (!capsule) return NULL;
  void* handle = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
  Py_DECREF(capsule);
  return handle;
}
/* A flag that is True or False; -1 for anything else. */
static int flag_of(PyObject* o) { return o == Py_True ? 1 : o == Py_False ? 0 : -1; }

/* False: not a number, or one beyond 64 bits. */
static int is_integer(PyObject* o, long long* value) {
  if (!PyLong_CheckExact(o)) return 0; /* a bool is none, though Python has it so */
  *value = PyLong_AsLongLong(o);
  if (*value != -1 || !PyErr_Occurred()) return 1;
  PyErr_Clear();
  return 0;
}

static int are_plain(PyObject* const* tensors, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; ++i) {
    if ((PyObject*)Py_TYPE(tensors[i]) != tensor_type) return 0;
  }
  return 1;
}

/* Whether a call of these may go past the dispatcher. */
static int may_pass(PyObject* const* tensors, Py_ssize_t count) {
  int recorded = 0;
  for (Py_ssize_t i = 0; i < count; ++i) recorded = recorded || is_recorded(tensors[i]);
  return (!recorded || gives(records, Py_False)) && nothing_in_the_way();
}

static PyObject* none_of(PyObject** out, int count) {
  PyErr_Clear();
  for (int i = 0; i < count; ++i) Py_XDECREF(out[i]);
  Py_RETURN_NONE;
}
/* A tuple of these, which it takes; None where one is not there. */
static PyObject* tuple_of(PyObject** out, Py_ssize_t count) {
  PyObject* all = PyTuple_New(count);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!out[i]) {
      Py_INCREF(Py_None);
      out[i] = Py_None;
    }
    if (all) {
      PyTuple_SetItem(all, i, out[i]);
    } else {
      Py_DECREF(out[i]);
    }
  }
  return all;
}

/* softmax(x, dim, log, invariant) */
static PyObject* softmax(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  long long dim;
  if (count != 4 || !are_plain(args, 1) || !is_integer(args[1], &dim)) Py_RETURN_NONE;
  const int log = flag_of(args[2]), invariant = flag_of(args[3]);
  if (log < 0 || invariant < 0 || !may_pass(args, 1)) Py_RETURN_NONE;
  void* y = NULL;
  if (run_softmax(args[0], dim, log, invariant, &y) == 0) return (PyObject*)y;
  return none_of(NULL, 0);
}

/* softmax_backward(dy, y, dim, log, invariant) */
static PyObject* softmax_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  long long dim;
  if (count != 5 || !are_plain(args, 2) || !is_integer(args[2], &dim)) Py_RETURN_NONE;
  const int log = flag_of(args[3]), invariant = flag_of(args[4]);
  if (log < 0 || invariant < 0 || !may_pass(args, 2)) Py_RETURN_NONE;
  void* dx = NULL;
  if (run_softmax_backward(args[0], args[1], dim, log, invariant, &dx) == 0) return (PyObject*)dx;
  return none_of(NULL, 0);
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
  if (eps != eps && (centre || args[4] != Py_None)) Py_RETURN_NONE;
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
  PyObject** made = (PyObject**)out;
  if (run_norm(tensors[0], tensors[1], tensors[2], cols, eps, centre, invariant, keeps, out) != 0) {
    return none_of(made, 3);
  }
  if (!keeps) return made[0];
  return tuple_of(made, centre ? 3 : 2);
}

/* norm_backward(dy, x, mean, rstd, weight, bias, centre, invariant, need_dx, need_dweight,
 * need_dbias): the three, None in place of what is not needed */
static PyObject* norm_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  if (count != 11 || !are_plain(args, 2) || !are_plain(args + 3, 1)) Py_RETURN_NONE;
  void* tensors[6] = {args[0], args[1], NULL, args[3], NULL, NULL};
  if (args[2] != Py_None && !are_plain(args + 2, 1)) Py_RETURN_NONE;
  if (args[2] != Py_None) tensors[2] = args[2];
  for (int i = 4; i < 6; ++i) {
    if (args[i] == Py_None) continue;
    PyObject* type = (PyObject*)Py_TYPE(args[i]);
    if (type != tensor_type && type != parameter_type) Py_RETURN_NONE;
    tensors[i] = args[i];
  }
  int flags[5];
  for (int i = 0; i < 5; ++i) {
    flags[i] = flag_of(args[6 + i]);
    if (flags[i] < 0) Py_RETURN_NONE;
  }
  if (!gives(records, Py_False) || !nothing_in_the_way()) Py_RETURN_NONE;
  void* out[3] = {NULL, NULL, NULL};
  if (run_norm_backward(tensors, flags[0], flags[1], flags + 2, out) != 0) {
    return none_of((PyObject**)out, 3);
  }
  return tuple_of((PyObject**)out, 3);
}

/* The first letter of "none", "sum" or "mean"; 0 for others. */
static char reduction_of(PyObject* o) {
  static const char* const names[] = {"mean", "sum", "none"};
  if (!PyUnicode_Check(o)) return 0;
  for (int i = 0; i < 3; ++i) {
    if (PyUnicode_CompareWithASCIIString(o, names[i]) == 0) return names[i][0];
  }
  return 0;
}

static int is_smoothing(PyObject* o, double* value) {
  if (!PyFloat_Check(o)) return 0;
  *value = PyFloat_AsDouble(o);
  return *value >= 0 && *value <= 1;
}

/* loss(x, target, ignore_index, reduction, smoothing, wide, invariant, statistics): the loss, or
 * loss, what backward needs and the weight of a row in a mean, else None */
static PyObject* loss(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  long long ignore_index;
  double smoothing;
  if (count != 8 || !are_plain(args, 2) || !is_integer(args[2], &ignore_index)) Py_RETURN_NONE;
  const char reduction = reduction_of(args[3]);
  if (!reduction || !is_smoothing(args[4], &smoothing)) Py_RETURN_NONE;
  const int wide = flag_of(args[5]), invariant = flag_of(args[6]), keeps = flag_of(args[7]);
  if (wide < 0 || invariant < 0 || keeps < 0 || !may_pass(args, 1)) Py_RETURN_NONE;
  void* out[3] = {NULL, NULL, NULL};
  PyObject** made = (PyObject**)out;
  if (run_loss(args[0], args[1], ignore_index, reduction, smoothing, wide, invariant, keeps, out)) {
    return none_of(made, 3);
  }
  return keeps ? tuple_of(made, 3) : made[0];
}

/* loss_backward(x, target, stats, dloss, ignore_index, smoothing) */
static PyObject* loss_backward(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  long long ignore_index;
  double smoothing;
  if (count != 6 || !are_plain(args, 4) || !is_integer(args[4], &ignore_index)) Py_RETURN_NONE;
  if (!is_smoothing(args[5], &smoothing) || !may_pass(args, 4)) Py_RETURN_NONE;
  void* dx = NULL;
  if (run_loss_backward(args[0], args[1], args[2], args[3], ignore_index, smoothing, &dx) == 0) {
    return (PyObject*)dx;
  }
  return none_of(NULL, 0);
}

/* False: the library lacks one of them. */
static int find_all(void* library) {
  const struct {
    const char* name;
    void** function;
  } wanted[] = {
      {"ofl_direct_softmax", (void**)&run_softmax},
      {"ofl_direct_softmax_backward", (void**)&run_softmax_backward},
      {"ofl_direct_norm", (void**)&run_norm},
      {"ofl_direct_norm_backward", (void**)&run_norm_backward},
      {"ofl_direct_loss", (void**)&run_loss},
      {"ofl_direct_loss_backward", (void**)&run_loss_backward},
  };
  for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); ++i) {
    *wanted[i].function = dlsym(library, wanted[i].name);
    if (!*wanted[i].function) return 0;
  }
  return 1;
}

static void* find(const char* library, const char* name) {
  void* opened = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return opened ? dlsym(opened, name) : NULL;
}
/* c10::impl::tls_is_dispatch_keyset_included, torch::jit::tracer::getTracingState */
static void find_quicker_ways(void) {
  if (transform_keys) {
    *(void**)&has_keys =
        find("libc10.so", "_ZN3c104impl31tls_is_dispatch_keyset_includedENS_14DispatchKeySetE");
  }
  *(void**)&trace_state = find("libtorch_cpu.so", "_ZN5torch3jit6tracer15getTracingStateEv");
}

/* 0: the library can be called. */
static int start(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  int (*begin)(void* (*)(void), void (*)(void*), int (*)(void), void* (*)(void*)) = NULL;
  if (library) *(void**)&begin = dlsym(library, "ofl_direct_open");
  if (!begin || !find_all(library)) return 1;
  return begin((void* (*)(void))PyEval_SaveThread, (void (*)(void*))PyEval_RestoreThread, is_cast,
               to_capsule != Py_None ? handle_of : NULL);
}

/* open(path of the library, Tensor, Parameter, is_grad_enabled, is_any_autocast_enabled,
 * ((function, None, value) or (globals, name, value), ...), to_capsule, transforms, their keys,
 * traces): whether this PyTorch can be called so. to_capsule may be None where PyTorch has stable
 * functions, and the keys may be 0. */
static PyObject* open_library(PyObject* self, PyObject* args) {
  const char* path;
  PyObject *tensor, *parameter, *recording, *casting, *given, *to, *transforming, *tracing;
  unsigned long long keys;
  if (!PyArg_ParseTuple(args, "sOOOOO!OOKO", &path, &tensor, &parameter, &recording, &casting,
                        &PyTuple_Type, &given, &to, &transforming, &keys, &tracing)) {
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
  Py_INCREF(to), Py_INCREF(transforming), Py_INCREF(tracing);
  to_capsule = to, transforms = transforming, traces = tracing;
  transform_keys = keys;
  find_quicker_ways();
  if (start(path) != 0) Py_RETURN_FALSE;
  requires_grad_name = PyUnicode_InternFromString("requires_grad");
  if (!requires_grad_name) return NULL;
  Py_INCREF(tensor), Py_INCREF(parameter), Py_INCREF(recording), Py_INCREF(casting);
  tensor_type = tensor, parameter_type = parameter, records = recording, casts = casting;
  num_checks = size;
  Py_RETURN_TRUE;
}

#define FAST(function) (PyCFunction)(void (*)(void)) function, METH_FASTCALL, NULL
static PyMethodDef methods[] = {
    {"softmax", FAST(softmax)},
    {"softmax_backward", FAST(softmax_backward)},
    {"norm", FAST(norm)},
    {"norm_backward", FAST(norm_backward)},
    {"loss", FAST(loss)},
    {"loss_backward", FAST(loss_backward)},
    {"nothing_in_the_way", is_clear, METH_NOARGS, NULL},
    {"open", open_library, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_direct", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__direct(void) { return PyModule_Create(&module); }
