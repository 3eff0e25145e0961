// SPDX-License-Identifier: Apache-2.0
//
// What Python's garbage collector must know of graphs: the Python objects that C++ keeps in them.
//
//   hook.foreign = ShareInGraph(callable);                // in the graph
//   if (int r = VisitGraph(self, tensor, visit, arg)) return r;  // in tp_traverse of who holds it
#pragma once

#include "oneflow_lite/framework/node.h"
#include "python/bindings/reference.h"

namespace oneflow_lite::python {

struct ParkedObject;  // parked.h

// An object that a graph keeps and the collector shall see there.
SharedObject ShareInGraph(PyObject* borrowed);
// The same for an object that hangs on a tensor otherwise: how many of these there are.
void CountInGraph(int change);

// In the traversal of `object`, which holds the tensor or node: visits the objects that the graph
// keeps and that no reference from elsewhere keeps (owned.h). While the collector counts, that is
// from outside the objects counted so far; later, from outside all of them. Waits for no lock that
// a thread may hold while it waits for the interpreter's; owned.h says why none is needed.
int VisitGraph(PyObject* object, const Tensor& t, visitproc visit, void* arg);
int VisitGraph(PyObject* object, Node& node, visitproc visit, void* arg);
// In the traversal of what is parked for a tensor: visits what is parked for its .grad, if nothing
// else holds that tensor. Each of them then keeps the next alive, as the tensors do.
int VisitParkedGrad(ParkedObject* p, visitproc visit, void* arg);

// Once a process: hears of each collection's start and stop (gc.callbacks).
void AddCollector();

}  // namespace oneflow_lite::python
