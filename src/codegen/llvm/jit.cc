// SPDX-License-Identifier: Apache-2.0
// Objects linked into this process. The linker of LLVM's ORC is used without its compiler: objects are complete when
// they come.
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h>
#include <llvm/Support/MemoryBuffer.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include "base/error.h"
#include "codegen/codegen.h"
#include "codegen/llvm/machine.h"

namespace treadle::codegen {
namespace {

template <typename T>
T take(llvm::Expected<T> value, const char* what) {
  if (value) return std::move(*value);
  fail(ErrorCode::Internal, "{}: {}", what, llvm::toString(value.takeError()));
}

void require(llvm::Error error, const char* what) {
  if (error) fail(ErrorCode::Internal, "{}: {}", what, llvm::toString(std::move(error)));
}

// Tells Linux perf the names of functions that were linked, through /tmp/perf-PID.map (perf's documented format: start,
// size, name).
class PerfMap : public llvm::orc::ObjectLinkingLayer::Plugin {
 public:
  void modifyPassConfig(llvm::orc::MaterializationResponsibility&, llvm::jitlink::LinkGraph&,
                        llvm::jitlink::PassConfiguration& config) override {
    // References inside an object go by sections, so that the symbols of parallel loops' bodies count as unused.
    config.PrePrunePasses.push_back(llvm::jitlink::markAllSymbolsLive);
    config.PostFixupPasses.push_back([](llvm::jitlink::LinkGraph& graph) {
      static std::mutex mutex;
      const std::lock_guard<std::mutex> lock(mutex);
      if (FILE* file = fopen(fmt::format("/tmp/perf-{}.map", getpid()).c_str(), "a")) {
        for (const llvm::jitlink::Symbol* symbol : graph.defined_symbols()) {
          if (!symbol->hasName() || !symbol->isCallable() || symbol->getSize() == 0) continue;
          fmt::print(file, "{:x} {:x} {}\n", symbol->getAddress().getValue(), symbol->getSize(),
                     (*symbol->getName()).str());
        }
        fclose(file);
      }
      return llvm::Error::success();
    });
  }
  llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey, llvm::orc::ResourceKey) override {}
};

}  // namespace

struct Jit::Impl {
  explicit Impl(std::unique_ptr<llvm::orc::ExecutorProcessControl> control)
      : session(std::move(control)), linker(session), library(&session.createBareJITDylib("model")) {}
  ~Impl() {
    if (auto error = session.endSession()) llvm::consumeError(std::move(error));
  }
  llvm::orc::ExecutionSession session;
  llvm::orc::ObjectLinkingLayer linker;
  llvm::orc::JITDylib* library;
};

Jit::Jit(const Target& target) {
  initialize_llvm();
  const llvm::Triple triple(target.triple);
  auto control = take(llvm::orc::SelfExecutorProcessControl::Create(), "cannot start the JIT");
  if (control->getTargetTriple().getArch() != triple.getArch()) {
    fail(ErrorCode::CodegenUnsupported, "code for {} cannot run on this machine", target.triple);
  }
  impl_ = std::make_unique<Impl>(std::move(control));
  impl_->session.setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });  // lookup reports
  if (std::getenv("TREADLE_PERF") != nullptr) impl_->linker.addPlugin(std::make_shared<PerfMap>());
}

Jit::~Jit() = default;
Jit::Jit(Jit&&) noexcept = default;

void Jit::add(Bytes object) {
  auto memory = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "kernels");
  require(impl_->linker.add(*impl_->library, std::move(memory)), "cannot add an object");
}

void* Jit::lookup(const std::string& name) {
  auto symbol = impl_->session.lookup({impl_->library}, name);
  if (!symbol)
    fail(ErrorCode::InvalidArgument, "cannot find \"{}\" in the compiled code: {}", name,
         llvm::toString(symbol.takeError()));
  return symbol->getAddress().toPtr<void*>();
}

}  // namespace treadle::codegen
