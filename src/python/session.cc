// SPDX-License-Identifier: Apache-2.0
#include "python/session.h"

#include <nanobind/stl/string.h>

#include <chrono>

#include "python/background.h"

namespace nb = nanobind;

namespace treadle::python {
namespace {

// A run this short need not look for signals.
constexpr auto kShort = std::chrono::milliseconds(50);

// Whole numbers and names as they are; other expressions as the IR prints them.
nb::object extent_object(const std::string& text) {
  const auto value = parse_dim(text).as_const();
  return value ? nb::object(nb::int_(*value)) : nb::object(to_str(text));
}

onnx::Metadata metadata_of(const Source& source, const Manifest& manifest) {
  try {
    if (source.path.empty()) return onnx::read_metadata(source.bytes, "the model");
    if (model_kind(source.path) == ModelKind::Onnx) return onnx::read_metadata_file(source.path);
  } catch (const Error&) {
    // A Relay text in memory.
  }
  onnx::Metadata metadata;
  metadata.graph_name = manifest.name;
  return metadata;
}

// The extents of all inputs whose shapes hold one of the symbols, with these replaced.
std::map<std::string, Shape> fixed_shapes(const ir::Module& module, const std::map<std::string, int64_t>& dimensions) {
  std::map<std::string, Dim> values(dimensions.begin(), dimensions.end());
  const ir::Function& main = module.main();
  const auto names = main.attrs.find("input_names");
  std::map<std::string, Shape> shapes;
  for (size_t i = 0; names != main.attrs.end() && i < main.params.size(); ++i) {
    Shape shape = main.params[i].tensor_type().shape;
    bool changed = false;
    for (Dim& extent : shape) {
      if (extent.is_const()) continue;
      extent = extent.substitute(values);
      changed = true;
    }
    if (changed) shapes.emplace(std::get<ir::Strings>(names->second).at(i), std::move(shape));
  }
  return shapes;
}

ir::Module import_once(const Source& source, const std::map<std::string, Shape>& shapes) {
  return source.path.empty() ? import_bytes(source.bytes, "the model", shapes) : import_model(source.path, shapes);
}

size_t total_bytes(const std::vector<Tensor>& tensors) {
  size_t bytes = 0;
  for (const Tensor& tensor : tensors) bytes += tensor.bytes();
  return bytes;
}

}  // namespace

Source::Source(const ModelSource& model) {
  if (const auto* name = std::get_if<std::string>(&model)) {
    path = *name;
  } else {
    const auto& content = std::get<nb::bytes>(model);
    bytes.assign(content.c_str(), content.size());
  }
}

std::map<std::string, Shape> to_shapes(const InputShapes& input_shapes) {
  std::map<std::string, Shape> shapes;
  for (const auto& [name, extents] : input_shapes) {
    Shape shape;
    for (const auto& extent : extents) {
      const auto* value = std::get_if<int64_t>(&extent);
      shape.push_back(value ? Dim(*value) : parse_dim(std::get<std::string>(extent)));
    }
    shapes.emplace(name, std::move(shape));
  }
  return shapes;
}

ir::Module import_source(const Source& source, const std::map<std::string, Shape>& shapes,
                         const std::map<std::string, int64_t>& dimensions) {
  ir::Module module = import_once(source, shapes);
  if (dimensions.empty()) return module;
  // Types follow from the inputs' while the model is imported, so that it is imported once more.
  const std::map<std::string, Shape> fixed = fixed_shapes(module, dimensions);
  return fixed.empty() ? module : import_once(source, fixed);
}

PySession::PySession(const ModelSource& model, const BuildOptions& options, const InputShapes& input_shapes,
                     const std::map<std::string, int64_t>& dimensions) {
  struct Work {
    Source source;
    std::shared_ptr<Session> session;
    onnx::Metadata metadata;
  };
  const auto work = std::make_shared<Work>(Work{Source(model), nullptr, {}});
  run_interruptible([work, options, dimensions, shapes = to_shapes(input_shapes)] {
    const bool is_artifact = !work->source.path.empty() && model_kind(work->source.path) == ModelKind::Artifact;
    const Artifact artifact = is_artifact ? load_artifact(work->source.path)
                                          : build(import_source(work->source, shapes, dimensions), options);
    work->session = std::make_shared<Session>(artifact.executable());
    work->metadata = metadata_of(work->source, work->session->manifest());
  });
  session_ = work->session;
  metadata_ = work->metadata;
}

nb::typed<nb::list, nb::tuple> PySession::describe(const std::vector<Manifest::TensorInfo>& infos) {
  nb::list list;
  for (const Manifest::TensorInfo& info : infos) {
    nb::list shape;
    for (const std::string& extent : info.shape) shape.append(extent_object(extent));
    list.append(nb::make_tuple(to_str(info.name), to_string(info.dtype), shape));
  }
  return list;
}

nb::typed<nb::dict, nb::str, nb::any> PySession::metadata() const {
  nb::dict properties, all;
  for (const auto& [key, value] : metadata_.properties) properties[to_str(key)] = to_str(value);
  all["producer_name"] = to_str(metadata_.producer_name);
  all["graph_name"] = to_str(metadata_.graph_name);
  all["domain"] = to_str(metadata_.domain);
  all["description"] = to_str(metadata_.description);
  all["graph_description"] = to_str(metadata_.graph_description);
  all["version"] = metadata_.version;
  all["custom_metadata_map"] = properties;
  return all;
}

nb::typed<nb::list, nb::any> PySession::run(const std::vector<Array>& arrays, const std::vector<size_t>& wanted,
                                            int threads) {
  struct Work {
    std::shared_ptr<Session> session;
    std::vector<Tensor> inputs, outputs;
  };
  const auto work = std::make_shared<Work>(Work{session_, {}, {}});
  const auto& infos = session_->manifest().inputs;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const bool known = i < infos.size();
    work->inputs.push_back(to_tensor(known ? infos[i].name : "", arrays[i], known ? infos[i].dtype : DType{}));
  }
  const size_t bytes = total_bytes(work->inputs);
  const auto start = std::chrono::steady_clock::now();
  auto call = [work, threads] {
    RunOptions options;
    options.max_threads = threads;
    work->outputs = work->session->run(work->inputs, options);
  };
  if (bytes <= short_bytes_) {
    const nb::gil_scoped_release release;
    call();
  } else {
    run_interruptible(std::move(call));
    if (std::chrono::steady_clock::now() - start < kShort) short_bytes_ = bytes;
  }
  nb::list outputs;
  for (size_t place : wanted) outputs.append(to_numpy(work->outputs.at(place)));
  return outputs;
}

}  // namespace treadle::python
