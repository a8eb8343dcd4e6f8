// SPDX-License-Identifier: Apache-2.0
// Target texts: "llvm -mcpu=… -mtriple=… -mattr=…" to a Target, and the machine that this process runs on.
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/nearest.h"
#include "codegen/codegen.h"
#include "codegen/llvm/machine.h"

namespace treadle::codegen {
namespace {

// Bytes of a data cache of this machine; 0 when the system does not say.
int64_t cache_bytes(int level) {
  const int name = level == 1 ? _SC_LEVEL1_DCACHE_SIZE : level == 2 ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL3_CACHE_SIZE;
  const int64_t from_sysconf = sysconf(name);
  if (from_sysconf > 0) return from_sysconf;
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    std::ifstream level_file(folder + "level"), type_file(folder + "type"), size_file(folder + "size");
    int found = 0;
    std::string type;
    int64_t size = 0;
    std::string unit;
    if (!(level_file >> found) || !(type_file >> type) || !(size_file >> size)) continue;
    size_file >> unit;
    if (found == level && type != "Instruction") return unit == "M" ? size << 20 : unit == "K" ? size << 10 : size;
  }
  return 0;
}

void set_host_caches(Target& target) {
  // A virtual machine may report the whole socket's cache or nonsense: keep within what processors have.
  if (const int64_t bytes = cache_bytes(1)) target.l1_bytes = std::clamp<int64_t>(bytes, 16 << 10, 256 << 10);
  if (const int64_t bytes = cache_bytes(2)) target.l2_bytes = std::clamp<int64_t>(bytes, 128 << 10, 32 << 20);
  if (const int64_t bytes = cache_bytes(3)) target.l3_bytes = std::clamp<int64_t>(bytes, 1 << 20, 1 << 30);
}

// Generated code passes floats in vector registers. Errors: TargetUnknown for a processor that lacks these.
void require_base(const Target& target, const llvm::MCSubtargetInfo& subtarget) {
  const bool x86 = llvm::Triple(target.triple).isX86();
  const std::vector<std::string> needed =
      x86 ? std::vector<std::string>{"+64bit", "+sse2", "+x87"} : std::vector<std::string>{"+neon"};
  for (const std::string& feature : needed) {
    if (!subtarget.checkFeatures(feature)) {
      fail(ErrorCode::TargetUnknown, "target \"{}\" lacks the feature {}, which all code here needs", target.text,
           feature.substr(1));
    }
  }
  if (x86 && subtarget.checkFeatures("+soft-float"))
    fail(ErrorCode::TargetUnknown, "target \"{}\" has floats in software, which no code here supports", target.text);
}

// Sets what follows from triple, cpu and features. Errors: TargetUnknown.
void derive(Target& target) {
  Target probe = target;
  probe.cpu = llvm::Triple(target.triple).isX86() ? "x86-64" : "generic";
  probe.features.clear();
  const auto base = make_machine(probe, 0);
  const llvm::MCSubtargetInfo& info = *base->getMCSubtargetInfo();
  if (!info.isCPUStringValid(target.cpu)) {
    std::vector<std::string> names{"native"};
    for (const llvm::SubtargetSubTypeKV& processor : info.getAllProcessorDescriptions())
      names.emplace_back(processor.Key);
    Error error(ErrorCode::TargetUnknown, fmt::format("unknown processor \"{}\" for {}", target.cpu, target.triple));
    throw error.help("near: " + nearest(target.cpu, names));
  }
  for (const std::string& feature : target.features) {
    const auto known = info.getAllProcessorFeatures();
    const bool found = std::any_of(known.begin(), known.end(),
                                   [&](const llvm::SubtargetFeatureKV& f) { return feature.substr(1) == f.Key; });
    if (found) continue;
    std::vector<std::string> names;
    for (const llvm::SubtargetFeatureKV& f : known) names.emplace_back(f.Key);
    Error error(ErrorCode::TargetUnknown,
                fmt::format("unknown feature \"{}\" in -mattr for {}", feature, target.triple));
    throw error.help("near: " + nearest(feature.substr(1), names));
  }
  const auto machine = make_machine(target, 0);
  const llvm::MCSubtargetInfo& subtarget = *machine->getMCSubtargetInfo();
  require_base(target, subtarget);
  const Features features = features_of(*machine);
  for (const llvm::SubtargetFeatureKV& feature : subtarget.getEnabledProcessorFeatures())
    target.required.emplace_back(feature.Key);
  target.fma = features.fma;
  if (features.avx512) {
    target.vector_bytes = 64;
    target.vector_registers = 32;
    target.masked_memory = true;
  } else if (features.x86 && subtarget.checkFeatures("+avx")) {
    target.vector_bytes = 32;
    target.vector_registers = 16;
    target.masked_memory = subtarget.checkFeatures("+avx2");
  } else {
    target.vector_bytes = 16;
    target.vector_registers = features.aarch64 ? 32 : 16;
    target.masked_memory = false;
  }
}

// What a target text says.
struct TargetText {
  std::string cpu, triple, attributes;
};

// "llvm -mcpu=znver3", in every spelling that TVM takes: "-mcpu=znver3", "-mcpu znver3", "--mcpu=znver3". Errors:
// TargetUnknown.
TargetText read_text(const std::string& text) {
  std::stringstream stream(text);
  std::string kind;
  stream >> kind;
  if (kind != "llvm") {
    Error error(ErrorCode::TargetUnknown,
                kind.empty() ? "the target is empty" : fmt::format("unknown target kind \"{}\"", kind));
    throw error.help("the kind is \"llvm\", as in \"llvm -mcpu=native\"");
  }
  TargetText result;
  // The last four tell TVM which of its schedules and tuning records to look for; they do not change what code may be
  // generated.
  std::string other;
  const std::map<std::string, std::string*> options = {
      {"-mcpu", &result.cpu}, {"-mtriple", &result.triple}, {"-mattr", &result.attributes}, {"-keys", &other},
      {"-device", &other},    {"-model", &other},           {"-num-cores", &other}};
  for (std::string option; stream >> option;) {
    const size_t equals = option.find('=');
    std::string name = option.substr(0, equals);
    if (name.starts_with("--")) name.erase(0, 1);
    const auto found = options.find(name);
    if (found == options.end()) {
      std::vector<std::string> names;
      for (const auto& entry : options) names.push_back(entry.first);
      Error error(ErrorCode::TargetUnknown, fmt::format("unknown option \"{}\" in target \"{}\"", name, text));
      throw error.help("near: " + nearest(name, names));
    }
    std::string value;
    if (equals != std::string::npos)
      value = option.substr(equals + 1);
    else
      stream >> value;
    if (name != "-mattr" && value.starts_with('-')) value.clear();  // the next option
    if (value.empty()) fail(ErrorCode::TargetUnknown, "option {} has no value in target \"{}\"", name, text);
    *found->second = value;
  }
  return result;
}

// "+avx2,-fma" to its parts; a part without a sign is an error.
std::vector<std::string> split_features(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    if (part.size() < 2 || (part[0] != '+' && part[0] != '-')) {
      fail(ErrorCode::TargetUnknown, "-mattr wants features with a sign, as in \"+avx2,-fma\", not \"{}\"", part);
    }
    parts.push_back(part);
  }
  return parts;
}

void set_native(Target& target, const std::vector<std::string>& extra) {
  target.cpu = llvm::sys::getHostCPUName().str();
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    target.features.push_back((feature.second ? "+" : "-") + feature.first().str());
  }
  std::sort(target.features.begin(), target.features.end(),
            [](const std::string& a, const std::string& b) { return a.substr(1) < b.substr(1); });
  target.features.insert(target.features.end(), extra.begin(), extra.end());  // later ones win
  set_host_caches(target);
}

}  // namespace

Target parse_target(const std::string& text) {
  initialize_llvm();
  const auto [cpu, triple, attributes] = read_text(text);
  Target target;
  const std::string host = llvm::sys::getProcessTriple();
  target.triple = triple.empty() ? host : llvm::Triple::normalize(triple);
  const llvm::Triple parsed(target.triple);
  const bool known = (parsed.isX86() && parsed.isArch64Bit() && !parsed.isX32()) ||
                     (parsed.getArch() == llvm::Triple::aarch64 && parsed.getEnvironment() != llvm::Triple::GNUILP32);
  if (!known || !parsed.isOSLinux() || !parsed.isOSBinFormatELF()) {
    Error error(ErrorCode::TargetUnknown, fmt::format("no code generator for triple \"{}\"", target.triple));
    throw error.help("known: x86_64-linux-gnu, aarch64-linux-gnu");
  }
  const std::vector<std::string> extra = split_features(attributes);
  if (cpu == "native") {
    if (parsed.getArch() != llvm::Triple(host).getArch()) {
      fail(ErrorCode::TargetUnknown, "-mcpu=native is {}, but the triple is \"{}\"", host, target.triple);
    }
    set_native(target, extra);
  } else {
    target.cpu = !cpu.empty() ? cpu : parsed.isX86() ? "x86-64" : "generic";
    target.features = extra;
  }
  target.text = "llvm";
  if (!cpu.empty()) target.text += " -mcpu=" + cpu;
  if (!triple.empty()) target.text += " -mtriple=" + triple;
  if (!attributes.empty()) target.text += " -mattr=" + attributes;
  derive(target);
  return target;
}

Target host_target() { return parse_target("llvm -mcpu=native"); }

std::vector<std::pair<std::string, std::string>> known_targets() {
  return {
      {"llvm -mcpu=native", "this machine's processor, with all that it can do"},
      {"llvm", "any 64-bit x86 processor (SSE2) on an x86 machine, any AArch64 processor on an Arm machine"},
      {"llvm -mcpu=x86-64-v3", "x86 processors with AVX2, FMA and F16C (since 2013)"},
      {"llvm -mcpu=x86-64-v4", "x86 processors with AVX-512 F, BW, VL and DQ"},
      {"llvm -mcpu=znver3", "one processor by LLVM's name for it"},
      {"llvm -mtriple=aarch64-linux-gnu", "Armv8-A with NEON"},
      {"llvm -mcpu=neoverse-n1 -mtriple=aarch64-linux-gnu", "Arm Neoverse N1"},
  };
}

}  // namespace treadle::codegen
