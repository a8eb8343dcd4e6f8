// SPDX-License-Identifier: Apache-2.0
// Model files of every kind that the compiler reads.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "driver/build.h"

namespace treadle {

enum class ModelKind { Onnx, Relay, Artifact };

// What `path` holds, by its contents. Errors: Io; ImportFormat when it is none of them.
ModelKind model_kind(const std::string& path);

// The module of an ONNX model or a Relay text. `input_shapes`: extents of inputs by name, instead of what the model
// declares. Errors: those of the importers; InvalidArgument for an artifact, which has no module any more, and for
// unknown input names.
ir::Module import_model(const std::string& path, const std::map<std::string, Shape>& input_shapes = {});
// The same from memory; no external data. Errors as above.
ir::Module import_bytes(std::string_view bytes, const std::string& source_name,
                        const std::map<std::string, Shape>& input_shapes = {});

// Ready to run: an artifact is loaded, anything else imported and built.
Artifact load_model(const std::string& path, const BuildOptions& options = {},
                    const std::map<std::string, Shape>& input_shapes = {});

}  // namespace treadle
