// SPDX-License-Identifier: Apache-2.0
// The inputs of `run` and `bench`: from files, or filled.
#include <algorithm>
#include <filesystem>
#include <random>

#include "base/nearest.h"
#include "cli/command.h"
#include "runtime/extent.h"

namespace treadle::cli {
namespace {

using Extents = std::map<std::string, int64_t>;

std::string lower_extension(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return extension;
}

size_t input_index(const Manifest& manifest, const std::string& name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < manifest.inputs.size(); ++i) {
    if (manifest.inputs[i].name == name) return i;
    names.push_back(manifest.inputs[i].name);
  }
  throw Error(ErrorCode::RuntimeInput, fmt::format("the model has no input \"{}\"", name))
      .help("its inputs: " + nearest(name, names));
}

std::vector<std::string> symbol_names(const Manifest& manifest) {
  std::vector<std::string> names;
  for (const Manifest::Symbol& symbol : manifest.symbols) names.push_back(symbol.name);
  return names;
}

// Extents of an input; symbols take the values of `symbols`, 1 where they have none.
std::vector<int64_t> extents_of(const Manifest& manifest, size_t input, const Extents& symbols) {
  const std::vector<std::string> names = symbol_names(manifest);
  std::vector<int64_t> values;
  for (const std::string& name : names) {
    auto found = symbols.find(name);
    values.push_back(found == symbols.end() ? 1 : found->second);
  }
  std::vector<int64_t> extents;
  for (const std::string& text : manifest.inputs[input].shape)
    extents.push_back(Extent::parse(text, names).evaluate(values));
  return extents;
}

Tensor filled(DType dtype, const std::vector<int64_t>& shape, const std::string& fill, std::mt19937_64& random) {
  Tensor tensor(dtype, shape);
  std::normal_distribution<double> normal;
  visit(dtype, [&]<typename T>() {
    for (T& value : tensor.values<T>()) {
      if (fill == "random") {
        // Integers are most often indices or masks: 0 and 1 are valid for all of them.
        value = dtype.is_float() ? static_cast<T>(static_cast<float>(normal(random)))
                                 : static_cast<T>(static_cast<float>(random() % 2));
      } else {
        value = static_cast<T>(fill == "ones" ? 1.0f : 0.0f);
      }
    }
  });
  return tensor;
}

}  // namespace

void InputFlags::add_to(CLI::App& command) {
  command.add_option("-i,--input", inputs,
                     "NAME=FILE (.npy, .npz, PNG, JPEG), or FILE alone for the only input; an .npz may hold all");
  command.add_option("--fill", fill, "what inputs without file hold")
      ->check(CLI::IsMember({"random", "zeros", "ones"}))
      ->capture_default_str();
  command.add_option("--seed", seed, "of --fill random")->capture_default_str();
  command.add_option("--symbol", symbols, "NAME=N: extent of a symbol for filled inputs (1 otherwise)");
  command.add_option("--layout", picture.layout, "axes of a picture's input")
      ->check(CLI::IsMember({"NCHW", "NHWC"}))
      ->capture_default_str();
  command.add_option("--mean", picture.mean, "subtracted from a picture's values 0 … 255; one or one per channel")
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--scale", picture.scale, "multiplied afterwards; one or one per channel")
      ->delimiter(',')
      ->capture_default_str();
}

std::vector<Tensor> InputFlags::make(const Manifest& manifest) const {
  Extents extents;
  for (const std::string& text : symbols) {
    const size_t equals = text.find('=');
    char* end = nullptr;
    const int64_t value = equals == std::string::npos ? -1 : std::strtoll(text.c_str() + equals + 1, &end, 10);
    if (value < 0 || *end) fail(ErrorCode::InvalidArgument, "--symbol {} is not NAME=NUMBER", text);
    extents[text.substr(0, equals)] = value;
  }
  for (const auto& [name, value] : extents) {
    const std::vector<std::string> names = symbol_names(manifest);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    throw Error(ErrorCode::InvalidArgument, fmt::format("the model has no symbol \"{}\"", name))
        .help(names.empty() ? "its sizes are fixed" : "its symbols: " + nearest(name, names));
  }
  std::vector<Tensor> tensors(manifest.inputs.size());
  for (const std::string& text : inputs) {
    size_t equals = text.find('=');
    std::string path = equals == std::string::npos ? text : text.substr(equals + 1);
    const std::string extension = lower_extension(path);
    if (equals == std::string::npos && extension == ".npz") {
      for (auto& [name, tensor] : read_npz(path)) tensors[input_index(manifest, name)] = tensor;
      continue;
    }
    if (equals == std::string::npos && manifest.inputs.size() != 1) {
      fail(ErrorCode::InvalidArgument, "the model has {} inputs: say which one, --input NAME={}",
           manifest.inputs.size(), text);
    }
    const size_t i = equals == std::string::npos ? 0 : input_index(manifest, text.substr(0, equals));
    if (tensors[i].defined()) fail(ErrorCode::InvalidArgument, "input \"{}\" is given twice", manifest.inputs[i].name);
    if (extension == ".npy") {
      tensors[i] = read_npy(path);
    } else if (extension == ".npz") {
      std::map<std::string, Tensor> arrays = read_npz(path);
      if (arrays.size() != 1 && !arrays.count(manifest.inputs[i].name))
        fail(ErrorCode::InvalidArgument, "{} holds {} arrays, none named \"{}\"", path, arrays.size(),
             manifest.inputs[i].name);
      tensors[i] = arrays.size() == 1 ? arrays.begin()->second : arrays.at(manifest.inputs[i].name);
    } else {
      std::vector<int64_t> shape = extents_of(manifest, i, extents);
      // A symbolic height or width is the picture's own, unless the user chose it.
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        const std::optional<size_t> symbol =
            Extent::parse(manifest.inputs[i].shape[axis], symbol_names(manifest)).symbol();
        if (symbol && !extents.count(manifest.symbols[*symbol].name) && axis != 0) shape[axis] = -1;
      }
      tensors[i] = read_picture(path, manifest.inputs[i].dtype, shape, picture);
    }
  }
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined())
      tensors[i] = filled(manifest.inputs[i].dtype, extents_of(manifest, i, extents), fill, random);
  }
  return tensors;
}

}  // namespace treadle::cli
