// SPDX-License-Identifier: Apache-2.0
// Reads ONNX models (operator sets 7 to kNewestOpset of domain ai.onnx).
//
// The graph becomes `main`. Its parameters are the graph's inputs in order; initialisers are constants, also those that
// are graph inputs too (IR version 3 lists all weights there): such an input is no parameter and cannot be overridden.
// The result is the output, or a tuple of the outputs, in order. Attributes of `main`: input_names and output_names,
// lists of the model's own names, which may hold any byte. A named dimension becomes a symbol of its name, in which
// other characters than letters, digits and '_' are replaced by '_'; one without name, "?" or -1 (what Paddle writes) a
// symbol named after the input and the axis.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/expr.h"

namespace treadle::onnx {

inline constexpr int64_t kNewestOpset = 28;

struct ImportOptions {
  // Extents of inputs by name, instead of what the model declares; the rank must agree with a declared one.
  std::map<std::string, Shape> input_shapes;
  // Inputs that become constants and are no parameters: what a shape, an axis or a condition depends on must be known
  // at import.
  std::map<std::string, Tensor> input_values;
};

struct Imported {
  ir::Module module;
  std::vector<std::string> input_names, output_names;
};

// `path` names the model; external data are read from its folder only, and through links in it, when `path` is a
// symbolic link too, from the folder of its target. Weights of external files are mapped where their alignment allows
// it. Errors: Io; ImportFormat for a broken file; ImportUnsupported; ImportPath for external data elsewhere;
// TypeMismatch and TypeAttribute for an ill-typed graph; Limit. The context names the node, its operator and operator
// set, and the file.
Imported import_onnx_file(const std::string& path, const ImportOptions& options = {});
// The same from memory. `source_name` stands in errors; `external_folder` is where external data may lie, empty:
// refused.
Imported import_onnx(std::string_view bytes, const std::string& source_name, const std::string& external_folder,
                     const ImportOptions& options = {});

// A node that cannot be imported.
struct Unsupported {
  std::string node;  // its name; when that is empty, its first output's
  std::string op_type, domain;
  int64_t opset = 0;
  std::vector<std::string> inputs;  // types of the inputs, "?" where they are not known
  std::string reason;
};

// Every node that cannot be imported, in one run: behind such a node types are not known, and what needs them is not
// counted. Errors: as import_onnx_file, for what is not a single node's fault.
std::vector<Unsupported> check_onnx_file(const std::string& path, const ImportOptions& options = {});

// The names of the inputs that would be parameters, in order. Errors: Io, ImportFormat.
std::vector<std::string> input_names(const std::string& path);

// Every (domain, operator, first opset) with a rule, sorted.
struct RuleName {
  std::string domain, op_type;
  int64_t since;
};
std::vector<RuleName> supported_operators();

}  // namespace treadle::onnx
