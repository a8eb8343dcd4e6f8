// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/onnx.h"

#include "import/onnx/graph_importer.h"
#include "import/onnx/model.h"
#include "import/onnx/rules.h"

namespace treadle::onnx {

Imported import_onnx_file(const std::string& path, const ImportOptions& options) {
  const std::unique_ptr<Model> model = read_model_file(path);
  return GraphImporter(*model, options, nullptr).run();
}

Imported import_onnx(std::string_view bytes, const std::string& source_name, const std::string& external_folder,
                     const ImportOptions& options) {
  const std::unique_ptr<Model> model = read_model(bytes, source_name, external_folder);
  return GraphImporter(*model, options, nullptr).run();
}

std::vector<Unsupported> check_onnx_file(const std::string& path, const ImportOptions& options) {
  const std::unique_ptr<Model> model = read_model_file(path);
  std::vector<Unsupported> unsupported;
  GraphImporter(*model, options, &unsupported).run();
  return unsupported;
}

std::vector<std::string> input_names(const std::string& path) {
  const std::unique_ptr<Model> model = read_model_file(path);
  std::set<std::string> initialisers;
  for (const auto& tensor : model->proto.graph().initializer()) initialisers.insert(tensor.name());
  std::vector<std::string> names;
  for (const auto& input : model->proto.graph().input()) {
    if (!initialisers.count(input.name())) names.push_back(input.name());
  }
  return names;
}

std::vector<RuleName> supported_operators() {
  std::vector<RuleName> result;
  for (const auto& [name, since] : RuleTable::instance().all()) result.push_back({name.first, name.second, since});
  return result;
}

}  // namespace treadle::onnx
