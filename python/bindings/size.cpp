// SPDX-License-Identifier: Apache-2.0
//
// A Size is a tuple of another type: it is made by PyTuple_New and becomes a tuple again before it
// is freed, so that Python's free lists serve it. That needs a class of its own size, without
// subclasses.
#include "python/bindings/size.h"

#include "python/bindings/arguments.h"
#include "python/bindings/items.h"

namespace oneflow_lite::python {
namespace {

extern PyTypeObject size_type;

// What Python's tuple gave, as a Size. Steals the reference; null stays null.
PyObject* AsSize(PyObject* tuple) {
  if (tuple && PyTuple_CheckExact(tuple) && Py_REFCNT(tuple) == 1) {
    Py_SET_TYPE(tuple, &size_type);
    return tuple;
  }
  if (!tuple || Py_TYPE(tuple) == &size_type) return tuple;
  const PyRef shared(tuple);  // the empty tuple is one object, and Python itself may hold others
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  // By tuple's own constructor, which also says that the hash is not known yet (Python 3.14).
  if (n == 0) return PyTuple_Type.tp_new(&size_type, tuple, nullptr);
  const Items items(tuple);
  PyRef copy(PyTuple_New(n));
  if (!copy) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyTuple_SET_ITEM(copy.get(), i, items[i].Give());
  }
  Py_SET_TYPE(copy.get(), &size_type);
  return copy.Give();
}

void DeallocSize(PyObject* self) {
  if (PyTuple_GET_SIZE(self) > 0) Py_SET_TYPE(self, &PyTuple_Type);
  PyTuple_Type.tp_dealloc(self);
}

// False: a TypeError that names the first item which is no int is set.
bool AreSizes(PyObject* tuple) {
  const Items items(tuple);
  for (Py_ssize_t i = 0; i < items.size(); ++i) {
    const PyRef item = items[i];
    if (PyLong_Check(item.get())) continue;
    PyErr_Format(PyExc_TypeError, "Size(): item %zd must be int, not %s", i,
                 Py_TYPE(item.get())->tp_name);
    return false;
  }
  return true;
}

PyObject* NewSize(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  PyObject* given = nullptr;
  static const char* names[] = {"", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Size", const_cast<char**>(names), &given)) {
    return nullptr;
  }
  // A list of our own: __index__ of an item may run anything.
  const bool has_length = given && PySequence_Check(given);  // a generator has none
  const PyRef items(has_length ? OwnList("Size", "sizes", given).Give()
                    : given    ? PySequence_List(given)
                               : PyList_New(0));
  if (!items) return nullptr;
  const Items each(items.get());
  for (Py_ssize_t i = 0; i < each.size(); ++i) {
    const PyRef item = each[i];
    if (!item) return RaiseChanged("Size", "sizes"), nullptr;
    if (PyLong_Check(item.get()) || !PyIndex_Check(item.get())) continue;
    PyObject* n = PyNumber_Index(item.get());
    if (!n || PyList_SetItem(items.get(), i, n) != 0) return nullptr;
  }
  PyRef tuple(PyList_AsTuple(items.get()));
  return tuple && AreSizes(tuple.get()) ? AsSize(tuple.Give()) : nullptr;
}

PyObject* ReprSize(PyObject* self) {
  const PyRef list(PySequence_List(self));
  return list ? PyUnicode_FromFormat("oneflow_lite.Size(%R)", list.get()) : nullptr;
}

// A slice of a Size and a sum with a tuple of ints, on either side, are Sizes.
PyObject* SubscriptSize(PyObject* self, PyObject* index) {
  PyObject* found = PyTuple_Type.tp_as_mapping->mp_subscript(self, index);
  return PySlice_Check(index) ? AsSize(found) : found;
}
PyObject* ConcatSizes(PyObject* a, PyObject* b) {
  PyRef sum(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
  return sum && AreSizes(sum.get()) ? AsSize(sum.Give()) : nullptr;
}
PyObject* AddSizes(PyObject* a, PyObject* b) {
  if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return ConcatSizes(a, b);
}
PyObject* RepeatSize(PyObject* self, Py_ssize_t n) {
  return AsSize(PyTuple_Type.tp_as_sequence->sq_repeat(self, n));
}

PyObject* SizeNumel(PyObject* self, PyObject*) {
  PyRef product(PyLong_FromLong(1));
  const Items items(self);
  for (Py_ssize_t i = 0; product && i < items.size(); ++i) {
    product = PyRef(PyNumber_Multiply(product.get(), items[i].get()));
  }
  return product.Give();
}

PyObject* SizeReduce(PyObject* self, PyObject*) {
  PyObject* items = PySequence_Tuple(self);
  return items ? Py_BuildValue("(O(N))", &size_type, items) : nullptr;
}

PyMethodDef size_methods[] = {{"__reduce__", SizeReduce, METH_NOARGS, nullptr},
                              {"numel", SizeNumel, METH_NOARGS,
                               "numel($self, /)\n--\n\nHow many elements a tensor of it has."},
                              {nullptr, nullptr, 0, nullptr}};
PyNumberMethods size_as_number = {.nb_add = AddSizes};
PySequenceMethods size_as_sequence = {.sq_concat = ConcatSizes, .sq_repeat = RepeatSize};
PyMappingMethods size_as_mapping = {.mp_subscript = SubscriptSize};
constexpr char kSizeDoc[] =
    "Size(sizes=(), /)\n--\n\nThe sizes of a tensor's dims: a tuple of ints. Its slices and its "
    "sums with such tuples are\nSizes, too.";
PyTypeObject size_type = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "oneflow_lite.Size",
    .tp_dealloc = DeallocSize,
    .tp_repr = ReprSize,
    .tp_as_number = &size_as_number,
    .tp_as_sequence = &size_as_sequence,
    .tp_as_mapping = &size_as_mapping,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = kSizeDoc,
    .tp_methods = size_methods,
    .tp_base = &PyTuple_Type,
    .tp_new = NewSize,
};

}  // namespace

bool IsSize(PyObject* o) { return Py_TYPE(o) == &size_type; }

PyObject* WrapSize(absl::Span<const int64_t> dims) { return AsSize(WrapDims(dims)); }

bool AddSizeType(PyObject* module) {
  return PyType_Ready(&size_type) == 0 &&
         PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(&size_type)) == 0;
}

}  // namespace oneflow_lite::python
