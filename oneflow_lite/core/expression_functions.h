// SPDX-License-Identifier: Apache-2.0
//
// The functions of expressions (expression.h): those that are a step, and those that are texts.
#pragma once

#include "oneflow_lite/core/expression.h"

namespace oneflow_lite::internal {

// A function that stands for a text of others.
struct ComposedFunction {
  const char* name;
  const char* text;  // "a, b: ..."
};

absl::Span<const ElementFunction> StepFunctions();
absl::Span<const ComposedFunction> ComposedFunctions();
// The expression of a composed function or of a slope, parsed once; its text is ours.
const Expression& ParsedOnce(const char* text);

}  // namespace oneflow_lite::internal
