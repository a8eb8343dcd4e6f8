// SPDX-License-Identifier: Apache-2.0
// A program for the tests of the ONNX importer. Exit status 0, or 1 with the error as text.
//   treadle_onnx_tool import MODEL           prints the module
//   treadle_onnx_tool check MODEL            lists nodes that cannot be imported
//   treadle_onnx_tool ops                    every rule: domain operator opset
//   treadle_onnx_tool run MODEL FOLDER [fixed]   evaluates by the reference interpreter: reads input_0, input_1, … and
//   writes
//                                            output_0, …; fixed: the inputs' values are known at import
// A tensor file begins with a line "dtype extent extent …"; its bytes follow.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "import/onnx/onnx.h"
#include "ir/text.h"
#include "pass/interpreter.h"

namespace treadle {
namespace {

Tensor read_tensor(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorCode::Io, "cannot open {}", path);
  std::string line, name;
  std::getline(file, line);
  std::istringstream header(line);
  header >> name;
  std::vector<int64_t> shape;
  for (int64_t extent; header >> extent;) shape.push_back(extent);
  const auto dtype = parse_dtype(name);
  if (!dtype) fail(ErrorCode::InvalidArgument, "dtype {}", name);
  Tensor tensor(*dtype, shape);
  file.read(static_cast<char*>(tensor.data()), static_cast<std::streamsize>(tensor.bytes()));
  return tensor;
}

void write_tensor(const std::string& path, const Tensor& tensor) {
  std::ofstream file(path, std::ios::binary);
  file << to_string(tensor.dtype());
  for (const int64_t extent : tensor.shape()) file << ' ' << extent;
  file << '\n';
  file.write(static_cast<const char*>(tensor.data()), static_cast<std::streamsize>(tensor.bytes()));
}

void run(const std::string& model, const std::string& folder, bool fixed) {
  onnx::ImportOptions options;
  if (fixed) {
    const std::vector<std::string> names = onnx::input_names(model);
    for (size_t i = 0; i < names.size(); ++i)
      options.input_values[names[i]] = read_tensor(fmt::format("{}/input_{}", folder, i));
  }
  const onnx::Imported imported = onnx::import_onnx_file(model, options);
  const ir::Function& main = imported.module.main();
  pass::Bindings bindings;
  for (size_t i = 0; i < main.params.size(); ++i) {
    bindings[main.params[i].get()] = {read_tensor(fmt::format("{}/input_{}", folder, i))};
  }
  const std::vector<Tensor> outputs = pass::interpret(main.body, bindings);
  for (size_t i = 0; i < outputs.size(); ++i) write_tensor(fmt::format("{}/output_{}", folder, i), outputs[i]);
}

int command(const std::vector<std::string>& args) {
  if (args.size() == 1 && args[0] == "ops") {
    for (const auto& rule : onnx::supported_operators())
      std::cout << (rule.domain.empty() ? "ai.onnx" : rule.domain) << ' ' << rule.op_type << ' ' << rule.since << '\n';
    return 0;
  }
  if (args.size() == 2 && args[0] == "import") {
    ir::PrintOptions options;
    options.constants = false;
    std::cout << ir::print(onnx::import_onnx_file(args[1]).module, options) << '\n';
    return 0;
  }
  if (args.size() == 2 && args[0] == "check") {
    const auto unsupported = onnx::check_onnx_file(args[1]);
    for (const auto& node : unsupported) {
      std::cout << fmt::format("\"{}\" ({}{}, opset {}) {}: {}\n", node.node,
                               node.domain.empty() ? "" : node.domain + ".", node.op_type, node.opset,
                               fmt::join(node.inputs, " "), node.reason);
    }
    return unsupported.empty() ? 0 : 1;
  }
  if ((args.size() == 3 || (args.size() == 4 && args[3] == "fixed")) && args[0] == "run") {
    run(args[1], args[2], args.size() == 4);
    return 0;
  }
  std::cerr << "usage: treadle_onnx_tool import|check MODEL | ops | run MODEL FOLDER [fixed]\n";
  return 2;
}

}  // namespace
}  // namespace treadle

int main(int argc, char** argv) {
  try {
    return treadle::command(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const treadle::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
