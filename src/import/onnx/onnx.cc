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

Imported import_onnx(std::string_view bytes, const std::string& source_name, const std::string& external_folder, const ImportOptions& options) {
  const std::unique_ptr<Model> model = read_model(bytes, source_name, external_folder);
  return GraphImporter(*model, options, nullptr).run();
}

std::vector<Unsupported> check_onnx_file(const std::string& path, const ImportOptions& options) {
  const std::unique_ptr<Model> model = read_model_file(path);
  std::vector<Unsupported> unsupported;
  GraphImporter(*model, options, &unsupported).run();
  return unsupported;
}

std::vector<RuleName> supported_operators() {
  std::vector<RuleName> result;
  for (const auto& [name, since] : RuleTable::instance().all()) result.push_back({name.first, name.second, since});
  return result;
}

}  // namespace treadle::onnx
