// SPDX-License-Identifier: Apache-2.0
//
// core/private_folder.h for utils/extension.py. Paths are bytes, as the file system has them.
#include "oneflow_lite/core/private_folder.h"

#include "python/bindings/classes.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

// f() without the lock: disks may be slow.
template <class F>
auto WithoutLock(F f) {
  const py::gil_scoped_release unlocked;
  return f();
}

}  // namespace

void AddPrivateFolder(py::module_& m) {
  m.def(
      "make_private_folder",
      [](const py::bytes& folder) {
        const std::string path = folder;
        return py::bytes(ValueOrThrow(WithoutLock([&] { return MakePrivateFolder(path); })));
      },
      py::arg("folder"),
      "Makes the folder, of mode 700, where it is not there, and checks that nobody else writes to "
      "it. Gives it without symbolic links. ValueError: it, or what it lies in, belongs to or may "
      "be changed by another user. RuntimeError: it cannot be made.");
  m.def(
      "read_private",
      [](const py::bytes& file) {
        const std::string path = file;
        return py::bytes(ValueOrThrow(WithoutLock([&] { return ReadPrivate(path); })));
      },
      py::arg("file"),
      "The content of a regular file of the user's own. ValueError: it is a symbolic link or no "
      "file, or another user owns it or may write to it. RuntimeError: it cannot be read.");
  m.def(
      "write_whole",
      [](const py::bytes& file, const py::bytes& content) {
        const std::string path = file, bytes = content;
        ThrowIfError(WithoutLock([&] { return WriteWhole(path, bytes); }));
      },
      py::arg("file"), py::arg("content"),
      "Puts a file of mode 600 with that content in place, at once: nobody sees a part of it.");
}

}  // namespace oneflow_lite::python
