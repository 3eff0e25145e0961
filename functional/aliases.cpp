// SPDX-License-Identifier: Apache-2.0
//
// The functions that have other names too; python/oneflow_lite/_math.py has those of composed ones.
#include "oneflow_lite/framework/function.h"

namespace oneflow_lite::functional {

OFL_REGISTER_ALIAS("absolute", "abs");
OFL_REGISTER_ALIAS("concat", "cat");
OFL_REGISTER_ALIAS("concatenate", "cat");
OFL_REGISTER_ALIAS("greater", "gt");
OFL_REGISTER_ALIAS("greater_equal", "ge");
OFL_REGISTER_ALIAS("less", "lt");
OFL_REGISTER_ALIAS("less_equal", "le");
OFL_REGISTER_ALIAS("multiply", "mul");
OFL_REGISTER_ALIAS("multiply_", "mul_");
OFL_REGISTER_ALIAS("negative", "neg");
OFL_REGISTER_ALIAS("not_equal", "ne");
OFL_REGISTER_ALIAS("subtract", "sub");
OFL_REGISTER_ALIAS("subtract_", "sub_");
OFL_REGISTER_ALIAS("swapaxes", "transpose");
OFL_REGISTER_ALIAS("swapdims", "transpose");

}  // namespace oneflow_lite::functional
