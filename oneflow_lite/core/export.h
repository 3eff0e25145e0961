// SPDX-License-Identifier: Apache-2.0
//
// Symbol visibility. The libraries are built with -fvisibility=hidden; what another library may
// call carries OFL_API.
#pragma once

#define OFL_API __attribute__((visibility("default")))

#define OFL_CONCAT_INNER(a, b) a##b
#define OFL_CONCAT(a, b) OFL_CONCAT_INNER(a, b)
