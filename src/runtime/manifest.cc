// SPDX-License-Identifier: Apache-2.0
#include "runtime/manifest.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "treadle/abi.h"

namespace treadle {
namespace {

constexpr int64_t kMaxSlots = 1 << 24;

using Json = nlohmann::ordered_json;

Json tensor_json(const Manifest::TensorInfo& info) {
  return {{"name", info.name}, {"dtype", to_string(info.dtype)}, {"shape", info.shape}};
}

DType read_dtype(const Json& json) {
  const auto name = json.get<std::string>();
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype) fail(ErrorCode::ArtifactInvalid, "the manifest names an unknown dtype \"{}\"", name);
  return *dtype;
}

std::vector<Manifest::TensorInfo> read_tensors(const Json& list) {
  std::vector<Manifest::TensorInfo> tensors;
  for (const Json& item : list) {
    tensors.push_back(
        {item.at("name"), read_dtype(item.at("dtype")), item.at("shape").get<std::vector<std::string>>()});
  }
  return tensors;
}

Manifest read_manifest(const Json& json) {
  Manifest manifest;
  manifest.abi_version = json.at("abi_version");
  if (manifest.abi_version != TREADLE_ABI_VERSION) {
    fail(ErrorCode::ArtifactInvalid, "the model was compiled for ABI version {}, this runtime has {}",
         manifest.abi_version, TREADLE_ABI_VERSION);
  }
  manifest.name = json.at("name");
  manifest.target = json.at("target");
  manifest.cpu_features = json.value("cpu_features", std::vector<std::string>());
  manifest.inputs = read_tensors(json.at("inputs"));
  manifest.outputs = read_tensors(json.at("outputs"));
  for (const Json& item : json.at("symbols")) manifest.symbols.push_back({item.at("name"), item.value("bound", "")});
  for (const Json& item : json.at("constants")) {
    manifest.constants.push_back({item.at("name"), item.at("offset"), read_dtype(item.at("dtype")),
                                  item.at("shape").get<std::vector<int64_t>>()});
  }
  manifest.constants_bytes = json.at("constants_bytes");
  if (manifest.constants_bytes < 0)
    fail(ErrorCode::ArtifactInvalid, "the manifest gives the constants a negative size");
  manifest.constants_file = json.value("constants_file", "");
  manifest.constants_hash = std::stoull(json.value("constants_hash", "0"), nullptr, 16);
  manifest.arena_bytes = json.at("arena_bytes");
  manifest.slots = json.value("slots", int64_t{0});
  if (manifest.slots < 0 || manifest.slots > kMaxSlots)
    fail(ErrorCode::ArtifactInvalid, "the manifest asks for {} slots", manifest.slots);
  for (const Json& item : json.at("kernels")) {
    manifest.kernels.push_back({item.at("name"), item.at("source"), item.at("flops")});
  }
  return manifest;
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  Json json;
  json["abi_version"] = manifest.abi_version;
  json["name"] = manifest.name;
  json["target"] = manifest.target;
  if (!manifest.cpu_features.empty()) json["cpu_features"] = manifest.cpu_features;
  for (auto [key, tensors] : {std::pair("inputs", &manifest.inputs), std::pair("outputs", &manifest.outputs)}) {
    json[key] = Json::array();
    for (const Manifest::TensorInfo& info : *tensors) json[key].push_back(tensor_json(info));
  }
  json["symbols"] = Json::array();
  for (const Manifest::Symbol& symbol : manifest.symbols) {
    Json item = {{"name", symbol.name}};
    if (!symbol.bound.empty()) item["bound"] = symbol.bound;
    json["symbols"].push_back(item);
  }
  json["constants"] = Json::array();
  for (const Manifest::Constant& constant : manifest.constants) {
    json["constants"].push_back({{"name", constant.name},
                                 {"offset", constant.offset},
                                 {"dtype", to_string(constant.dtype)},
                                 {"shape", constant.shape}});
  }
  json["constants_bytes"] = manifest.constants_bytes;
  if (!manifest.constants_file.empty()) {
    json["constants_file"] = manifest.constants_file;
    json["constants_hash"] = fmt::format("{:016x}", manifest.constants_hash);
  }
  json["arena_bytes"] = manifest.arena_bytes;
  if (manifest.slots) json["slots"] = manifest.slots;
  json["kernels"] = Json::array();
  for (const Manifest::Kernel& kernel : manifest.kernels) {
    json["kernels"].push_back({{"name", kernel.name}, {"source", kernel.source}, {"flops", kernel.flops}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

Manifest parse_manifest(std::string_view json) {
  try {
    return read_manifest(Json::parse(json));
  } catch (const Json::exception& error) {
    fail(ErrorCode::ArtifactInvalid, "the manifest is broken: {}", error.what());
  } catch (const std::logic_error& error) {  // of stoull
    fail(ErrorCode::ArtifactInvalid, "the manifest's constants_hash is no hexadecimal number");
  }
}

}  // namespace treadle
