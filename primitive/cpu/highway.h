// SPDX-License-Identifier: Apache-2.0
//
// Highway for the instruction set in turn: no guard, as it is included once for each. The
// precompiled header (precompiled.h) has the ops of all of them, and only what names the one in
// turn is left to set.
#ifdef OFL_HIGHWAY_PRECOMPILED
#include "hwy/ops/set_macros-inl.h"
#else
#include "hwy/cache_control.h"
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#endif
