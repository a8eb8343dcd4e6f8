// SPDX-License-Identifier: Apache-2.0
#include "driver/package.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <thread>

#include "base/hash.h"
#include "driver/build.h"
#include "driver/output_file.h"
#include "runtime/cpu_features.h"
#include "treadle/abi.h"

namespace treadle::driver {
namespace {

constexpr int64_t kAlign = static_cast<int64_t>(kAlignment);
// Functions per object: few, so that threads share the work evenly; more than one, since an object costs a fixed time.
constexpr size_t kGroup = 4;
// LLVM keeps arguments in registers or finds them places on the stack, in a time that grows with their square.
constexpr size_t kMaxOptimizedArguments = 256;
constexpr const char* kAbiSymbol = "treadle_abi_version";
constexpr const char* kMainSymbol = "treadle_main";

int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

std::vector<std::string> extent_texts(const Shape& shape) {
  std::vector<std::string> texts;
  for (const Dim& dim : shape) texts.push_back(to_string(dim));
  return texts;
}

// Upper bound of a late symbol that some output with a bound has.
std::string late_bound(const lower::Program& program, const std::string& symbol) {
  for (const lower::Port& port : program.outputs) {
    if (!port.bounded) continue;
    for (const Dim& dim : port.shape) {
      if (dim.symbols().count(symbol)) return to_string(program.late_bounds.at(symbol));
    }
  }
  return kInternalSymbol;
}

}  // namespace

std::vector<const loop::Function*> functions_of(const lower::Program& program) {
  std::vector<const loop::Function*> functions;
  for (const loop::Function& kernel : program.kernels) functions.push_back(&kernel);
  for (const loop::Function& part : program.main_parts) functions.push_back(&part);
  functions.push_back(&program.main);
  return functions;
}

std::vector<codegen::Bytes> compile(const lower::Program& program, const Target& target, int opt_level, int threads) {
  struct Group {
    std::vector<loop::Function> functions;
    codegen::Options options;
  };
  std::vector<Group> groups;
  codegen::Options kernel_options, straight_options;
  // Also at level 0, where schedules are off: without registers for its variables a plain loop nest takes minutes on a
  // net.
  kernel_options.opt_level = std::clamp(opt_level, 1, 3);
  // Main is calls one behind the other: optimising them costs time and gains none.
  straight_options.opt_level = 0;
  groups.push_back({program.main_parts, straight_options});
  groups.back().functions.push_back(program.main);
  groups.back().functions.back().name = kMainSymbol;
  Group wide{{}, straight_options};
  size_t taken_kernels = 0;
  for (const loop::Function& kernel : program.kernels) {
    if (kernel.buffers.size() + kernel.scalars.size() > kMaxOptimizedArguments) {
      wide.functions.push_back(kernel);
    } else {
      if (taken_kernels++ % kGroup == 0) groups.push_back({{}, kernel_options});
      groups.back().functions.push_back(kernel);
    }
  }
  if (!wide.functions.empty()) groups.push_back(std::move(wide));

  std::vector<codegen::Bytes> objects(groups.size());
  std::atomic<size_t> taken{0};
  std::mutex mutex;
  std::exception_ptr failure;
  auto work = [&] {
    for (size_t i; (i = taken++) < groups.size();) {
      try {
        objects[i] = codegen::emit_object(groups[i].functions, target, groups[i].options);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  const size_t count =
      std::min<size_t>(groups.size(), threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> pool;
  for (size_t i = 1; i < count; ++i) pool.emplace_back(work);
  work();
  for (std::thread& thread : pool) thread.join();
  if (failure) std::rethrow_exception(failure);
  return objects;
}

Manifest make_manifest(const lower::Program& program, const Target& target, const std::string& constants_file) {
  Manifest manifest;
  manifest.abi_version = TREADLE_ABI_VERSION;
  manifest.name = "main";
  manifest.target = target.text;
  std::copy_if(target.required.begin(), target.required.end(), std::back_inserter(manifest.cpu_features),
               is_cpu_feature);
  for (const lower::Port& port : program.inputs)
    manifest.inputs.push_back({port.name, port.dtype, extent_texts(port.shape)});
  for (const lower::Port& port : program.outputs)
    manifest.outputs.push_back({port.name, port.dtype, extent_texts(port.shape)});
  for (const std::string& symbol : program.symbols) manifest.symbols.push_back({symbol, ""});
  for (const std::string& symbol : program.late_symbols)
    manifest.symbols.push_back({symbol, late_bound(program, symbol)});
  int64_t offset = 0;
  for (size_t i = 0; i < program.constants.size(); ++i) {
    const Tensor& constant = program.constants[i];
    manifest.constants.push_back({fmt::format("c{}", i), offset, constant.dtype(), constant.shape()});
    offset = aligned(offset + static_cast<int64_t>(constant.bytes()));
  }
  manifest.constants_bytes = offset;
  manifest.constants_file = constants_file;
  manifest.arena_bytes = to_string(program.arena);
  manifest.slots = program.slots;
  for (const lower::KernelInfo& call : program.calls) {
    manifest.kernels.push_back({call.name, call.source, to_string(call.operations)});
  }
  return manifest;
}

Tensor pack_constants(std::vector<Tensor>&& constants) {
  int64_t bytes = 0;
  for (const Tensor& constant : constants) bytes = aligned(bytes + static_cast<int64_t>(constant.bytes()));
  Tensor packed(dtype::uint8_, {bytes});
  auto* base = static_cast<char*>(packed.data());
  int64_t offset = 0;
  for (Tensor& constant : constants) {
    const auto size = static_cast<int64_t>(constant.bytes());
    std::memcpy(base + offset, constant.data(), constant.bytes());
    std::memset(base + offset + size, 0, static_cast<size_t>(aligned(offset + size) - offset - size));
    offset = aligned(offset + size);
    constant = Tensor();
  }
  return packed;
}

Tensor pack_constants(const std::vector<Tensor>& constants) { return pack_constants(std::vector<Tensor>(constants)); }

std::shared_ptr<const Executable> load(lower::Program program, std::vector<codegen::Bytes> objects,
                                       const Target& target) {
  struct Owner {
    explicit Owner(const Target& target) : jit(target) {}
    codegen::Jit jit;
    Tensor constants;
  };
  auto owner = std::make_shared<Owner>(target);
  for (codegen::Bytes& object : objects) owner->jit.add(std::move(object));
  const auto main = reinterpret_cast<TreadleKernel>(owner->jit.lookup(kMainSymbol));
  const Manifest manifest = make_manifest(program, target);
  owner->constants = pack_constants(std::move(program.constants));
  return Executable::in_process(manifest, main, owner->constants.data(), owner);
}

void write_shared(const lower::Program& program, std::vector<codegen::Bytes> objects, const Target& target,
                  const std::string& path) {
  const Tensor constants = pack_constants(program.constants);
  const bool side_file = static_cast<int64_t>(constants.bytes()) > kSideFileBytes;
  const std::string side_path = path + ".constants";
  Manifest manifest =
      make_manifest(program, target, side_file ? std::filesystem::path(side_path).filename().string() : "");
  if (side_file) {
    manifest.constants_hash = hash_bytes(constants.data(), constants.bytes());
    write_file(side_path, constants.data(), constants.bytes());
  } else {
    std::error_code ignored;
    std::filesystem::remove(side_path, ignored);  // of an earlier model of this name
  }
  const std::string json = to_json(manifest);
  const uint32_t abi = TREADLE_ABI_VERSION;
  std::vector<std::pair<std::string, std::string_view>> data = {
      {kAbiSymbol, {reinterpret_cast<const char*>(&abi), sizeof abi}}, {"treadle_manifest", json}};
  if (!side_file)
    data.emplace_back("treadle_constants",
                      std::string_view(static_cast<const char*>(constants.data()), constants.bytes()));
  objects.push_back(codegen::emit_data_object(data, target));
  std::vector<std::string> exported = {kMainSymbol};
  for (const auto& [name, bytes] : data) {
    exported.push_back(name);
    exported.push_back(name + "_size");
  }
  const codegen::Bytes linked = codegen::link_shared(objects, exported, target);
  write_file(path, linked.data(), linked.size());
}

}  // namespace treadle::driver
