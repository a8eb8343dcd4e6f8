// SPDX-License-Identifier: Apache-2.0
// Runs a compiled model: checks the inputs, binds the symbols of their shapes, gives memory and calls main.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/executable.h"
#include "runtime/extent.h"
#include "runtime/run_state.h"
#include "runtime/tensor.h"
#include "treadle/abi.h"

namespace treadle {

// The extent of an output's axis that is known only when the model has run, without a bound.
inline constexpr int64_t kUnbounded = -1;

struct RunOptions {
  int max_threads = 0;                         // 0: all of the pool
  std::vector<KernelTime>* profile = nullptr;  // one entry per kernel of the manifest (resized); times are added
};

// Memory of the caller for one output, dense and row-major, aligned to its element.
struct OutputBuffer {
  void* data;
  int64_t*
      shape;  // in: the extents for which there is room, as Session::output_shapes gives them; out: the true extents
  int32_t rank;
  DType dtype;
  Tensor* value = nullptr;  // out: an output whose size nobody knows before the run; `data` is null then
};

// Thread safe: concurrent runs use separate memory, which is kept for the next runs. Results do not depend on the
// number of threads.
class Session {
 public:
  // Errors: ArtifactInvalid for a manifest whose symbols its inputs cannot bind, or with a broken extent.
  explicit Session(std::shared_ptr<const Executable> executable);
  ~Session();

  const Manifest& manifest() const { return executable_->manifest(); }
  const Executable& executable() const { return *executable_; }

  // `inputs` in the order of the manifest; gives the outputs likewise.
  // Errors: RuntimeInput naming the input, what was expected and what came; RuntimeKernel with the kernel's reason;
  // Limit when memory is short.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const RunOptions& options = {});
  // By name. Errors: also RuntimeInput for a missing or an unknown name.
  std::vector<Tensor> run_named(const std::map<std::string, Tensor>& inputs, const RunOptions& options = {});
  // Into memory of the caller; a model without symbols then allocates nothing once it has run as often at the same time
  // before. An output must not overlap an input or another output. Errors: also InvalidArgument for an output that does
  // not fit.
  void run(std::span<const TreadleTensorRef> inputs, std::span<const OutputBuffer> outputs,
           const RunOptions& options = {});

  // Shapes of the outputs for these inputs; upper bounds where the extent depends on data, kUnbounded where there is no
  // bound. Errors: RuntimeInput.
  std::vector<std::vector<int64_t>> output_shapes(std::span<const TreadleTensorRef> inputs) const;
  // Floating-point operations of each kernel for these inputs, one call each; the bound where an extent depends on
  // data.
  std::vector<int64_t> kernel_flops(std::span<const TreadleTensorRef> inputs) const;

 private:
  struct Port {  // an input or output
    std::vector<Extent> shape;
    std::vector<bool> unbounded;  // per axis: the extent is known only when the model has run, without a bound
    bool any_unbounded = false;
  };
  struct Binding {  // where a symbol's value comes from
    size_t symbol, input, axis;
  };

  std::vector<Port> parse_ports(const std::vector<Manifest::TensorInfo>& infos);
  void plan_bindings();
  void bind(std::span<const TreadleTensorRef> inputs, std::vector<int64_t>& values) const;
  void check_input(size_t i, const TreadleTensorRef& input) const;
  int64_t solve(const Binding& binding, int64_t extent, std::vector<int64_t>& values) const;
  int64_t output_extent(size_t output, size_t axis, std::span<const int64_t> values) const;
  void check_output(size_t i, const OutputBuffer& output, std::span<const int64_t> values) const;
  void call_main(RunState& state, std::span<const TreadleTensorRef> inputs, std::span<const OutputBuffer> outputs);
  void read_results(RunState& state) const;
  void read_output(RunState& state, size_t i, const OutputBuffer& output) const;
  std::unique_ptr<RunState> take_state();
  void give_back(std::unique_ptr<RunState> state);

  std::shared_ptr<const Executable> executable_;
  std::vector<std::string> symbols_;
  std::vector<Port> inputs_, outputs_;
  std::vector<Binding> bindings_;                  // in an order in which each can be solved
  std::vector<std::pair<size_t, Extent>> bounds_;  // symbols whose values depend on data, and their upper bounds
  Extent arena_bytes_;
  std::vector<Extent> flops_;

  std::mutex mutex_;  // of idle_
  std::vector<std::unique_ptr<RunState>> idle_;
};

// A view of a tensor as compiled code and the runtime's kernels take it; lives as long as the tensor.
TreadleTensorRef tensor_ref(const Tensor& tensor);

}  // namespace treadle
