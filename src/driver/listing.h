// SPDX-License-Identifier: Apache-2.0
// The registries as text: what `treadle ops` and `treadle passes` print and docs/operators.md, docs/passes.md hold.
#pragma once

#include <string>

namespace treadle {

// All operators, a line each, by family; or one in full. Errors: InvalidArgument naming the nearest names.
std::string operators_text(const std::string& name = "");
// A list of all operators, or the object of one: name, family, summary, formula, source, inputs, outputs, attributes
// (name, type, default, sentence, bounds), fusion kind, how it is computed, has_gradient, mixed precision. Errors as
// above.
std::string operators_json(const std::string& name = "");
std::string operators_markdown();
std::string passes_text(bool markdown = false);
// Every error code with its meaning.
std::string errors_text(bool markdown = false);
// What code can be generated for, and what this machine is.
std::string targets_text();

}  // namespace treadle
