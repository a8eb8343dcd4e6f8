// SPDX-License-Identifier: Apache-2.0
// A compiled model as Python holds it.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "driver/model.h"
#include "import/onnx/metadata.h"
#include "python/convert.h"
#include "runtime/session.h"

namespace treadle::python {

// A path, or the contents of a model file.
using ModelSource = std::variant<std::string, nanobind::bytes>;
// By input; an extent is a number or the text of a Dim.
using InputShapes = std::map<std::string, std::vector<std::variant<int64_t, std::string>>>;

// Where a model comes from, without Python's objects.
struct Source {
  explicit Source(const ModelSource& model);

  std::string path;  // empty: in memory
  std::string bytes;
};

// Errors: Parse.
std::map<std::string, Shape> to_shapes(const InputShapes& shapes);
// The module, with the symbols of `dimensions` fixed; names that are no symbol of the model have no effect. Errors:
// those of import_model.
ir::Module import_source(const Source& source, const std::map<std::string, Shape>& shapes,
                         const std::map<std::string, int64_t>& dimensions);

class PySession {
 public:
  // Compiles. Errors: those of load_model.
  PySession(const ModelSource& model, const BuildOptions& options, const InputShapes& shapes,
            const std::map<std::string, int64_t>& dimensions);

  nanobind::typed<nanobind::list, nanobind::tuple> inputs() const { return describe(session_->manifest().inputs); }
  nanobind::typed<nanobind::list, nanobind::tuple> outputs() const { return describe(session_->manifest().outputs); }
  nanobind::typed<nanobind::dict, nanobind::str, nanobind::any> metadata() const;
  nanobind::typed<nanobind::list, nanobind::any> run(const std::vector<Array>& inputs,
                                                     const std::vector<size_t>& wanted, int threads);

 private:
  static nanobind::typed<nanobind::list, nanobind::tuple> describe(const std::vector<Manifest::TensorInfo>& infos);

  std::shared_ptr<Session> session_;
  onnx::Metadata metadata_;
  // Bytes of the largest inputs with which a run was short: as many again are not worth a thread of their own.
  std::atomic<size_t> short_bytes_ = 0;
};

}  // namespace treadle::python
