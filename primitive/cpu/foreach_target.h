// SPDX-License-Identifier: Apache-2.0
//
// Includes HWY_TARGET_INCLUDE once per instruction set, as Highway's header of this name does, also
// where Highway itself came with the precompiled header (precompiled.h). Whatever needs Highway
// includes primitive/cpu/highway.h after this.
#pragma once

#ifndef HWY_TARGET_INCLUDE  // then HWY_EXPORT does not compile
#define HWY_TARGET_INCLUDE "primitive/cpu/highway.h"
#endif

#ifdef OFL_HIGHWAY_PRECOMPILED
// There it has run: it has to run again, and not to look for what it left behind.
#undef HIGHWAY_HWY_FOREACH_TARGET_H_
#undef HWY_HIGHWAY_INCLUDED
#include "hwy/foreach_target.h"
#define HWY_HIGHWAY_INCLUDED
#else
#include "hwy/foreach_target.h"
#endif
