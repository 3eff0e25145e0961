// SPDX-License-Identifier: Apache-2.0
//
// Threads that the interpreter ends while they are in here.
//
// Once the interpreter finalizes, it lets no other thread have its lock again: up to Python 3.13 a
// daemon thread that asks for it, be it at the end of a long op or in a Python function that an op
// calls, ends by pthread_exit, which unwinds its stack by force. In C++ that runs destructors,
// which drop references without the lock, and std::terminate where a frame is noexcept or catches
// all. From 3.14 on the thread sleeps instead until the process has gone. Here it does so in every
// version.
//
// The personality routine is what the unwinder calls for each C++ frame before anything in it runs.
// The linker puts this one before that of the C++ library (--wrap, in CMakeLists.txt).
#include <unistd.h>
#include <unwind.h>

// The names are the linker's: __wrap_X is called for X, __real_X is X.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions,
                                                _Unwind_Exception_Class exception_class,
                                                _Unwind_Exception* exception,
                                                _Unwind_Context* context);

__attribute__((visibility("hidden"))) _Unwind_Reason_Code __wrap___gxx_personality_v0(
    int version, _Unwind_Action actions, _Unwind_Exception_Class exception_class,
    _Unwind_Exception* exception, _Unwind_Context* context) {
  while (actions & _UA_FORCE_UNWIND) pause();
  return __real___gxx_personality_v0(version, actions, exception_class, exception, context);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
