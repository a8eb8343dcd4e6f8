// SPDX-License-Identifier: Apache-2.0
// The extension module treadle._treadle: what python/treadle builds its classes on. Thin: no decisions are made here.
#include <fmt/ranges.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "driver/emit_kinds.h"
#include "driver/listing.h"
#include "import/onnx/onnx.h"
#include "op/register.h"
#include "python/background.h"
#include "python/session.h"
#include "treadle/runtime.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace treadle::python {
namespace {

nb::list to_strs(const std::vector<std::string>& texts) {
  nb::list list;
  for (const std::string& text : texts) list.append(to_str(text));
  return list;
}

// Raises the class of treadle.errors that the code's group names.
void translate_error(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const Error& error) {
    const nb::object exception =
        nb::module_::import_("treadle.errors")
            .attr("_make")(std::string(code_text(error.code())), to_str(error.what()), to_str(error.message()),
                           to_strs(error.context()), to_strs(error.notes()), to_str(error.hint()));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  }
}

std::vector<std::pair<std::string, std::string>> error_codes() {
  std::vector<std::pair<std::string, std::string>> codes;
#define TREADLE_ERROR(name, code, meaning) codes.emplace_back(code, meaning);
#include "base/error_codes.def"
#undef TREADLE_ERROR
  return codes;
}

std::vector<std::tuple<std::string, std::string, int64_t>> onnx_operators() {
  std::vector<std::tuple<std::string, std::string, int64_t>> rules;
  for (const onnx::RuleName& rule : onnx::supported_operators())
    rules.emplace_back(rule.domain, rule.op_type, rule.since);
  return rules;
}

void compile_model(const ModelSource& model, const std::string& path, const std::string& emit,
                   const BuildOptions& options, const InputShapes& input_shapes) {
  const auto kind = emit_kinds().find(emit);
  if (kind == emit_kinds().end()) {
    std::vector<std::string> names;
    for (const auto& entry : emit_kinds()) names.push_back(entry.first);
    fail(ErrorCode::InvalidArgument, "emit=\"{}\" is none of {}", emit, fmt::join(names, ", "));
  }
  const auto source = std::make_shared<Source>(model);
  run_interruptible([=, shapes = to_shapes(input_shapes), kind = kind->second] {
    export_module(import_source(*source, shapes, {}), path, kind, options);
  });
}

}  // namespace

NB_MODULE(_treadle, module) {
  module.doc() = "The compiler and the runtime of Treadle, as the package treadle uses them.";
  nb::register_exception_translator(translate_error);
  init_background();
  op::register_operators();

  nb::class_<BuildOptions>(module, "BuildOptions", "How a model is compiled.")
      .def(nb::init<>())
      .def_rw("target", &BuildOptions::target, "What to generate code for, as `treadle targets` lists.")
      .def_rw("opt_level", &BuildOptions::opt_level, "0 to 4.")
      .def_rw("threads", &BuildOptions::threads, "Threads of the compiler; 0: one per core.")
      .def_rw("cache", &BuildOptions::cache, "Whether to use and fill the compile cache on disk.")
      .def_rw("disabled_passes", &BuildOptions::disabled_passes, "Names of passes to leave out.");

  nb::class_<PySession>(module, "Session", "A compiled model, ready to run.")
      .def(nb::init<const ModelSource&, const BuildOptions&, const InputShapes&,
                    const std::map<std::string, int64_t>&>(),
           "model"_a, "options"_a, "input_shapes"_a, "dimensions"_a)
      .def_prop_ro("inputs", &PySession::inputs,
                   "Name, dtype and extents of each input; an extent that is not fixed is a text.")
      .def_prop_ro("outputs", &PySession::outputs, "Name, dtype and extents of each output.")
      .def_prop_ro("metadata", &PySession::metadata, "What the model says of itself.")
      .def("run", &PySession::run, "inputs"_a, "wanted"_a, "threads"_a,
           "Runs with the inputs in order; gives the outputs at the places `wanted`.");

  module.def("compile", &compile_model, "model"_a, "path"_a, "emit"_a, "options"_a, "input_shapes"_a,
             "Writes what `emit` names to `path`.");
  module.def("operators_json", &operators_json, "name"_a = "", "All operators, or one, as JSON.");
  module.def("targets_text", &targets_text, "What code can be generated for, and what this machine is.");
  module.def("error_codes", &error_codes, "Every error code with its meaning.");
  module.def("onnx_operators", &onnx_operators,
             "Domain, name and first operator set of each rule of the ONNX importer.");
  module.def("version", [] { return std::string(treadle_version()); }, "The version of the library.");
}

}  // namespace treadle::python
