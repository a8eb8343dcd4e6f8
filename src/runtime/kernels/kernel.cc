// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/kernel.h"

#include "runtime/tensor.h"

namespace treadle::kernels {
namespace {

constexpr int64_t kParallelCost = 1 << 15;  // element operations below which threads cost more than they give

}  // namespace

int64_t TensorArg::size() const { return element_count(shape()); }

std::vector<int64_t> TensorArg::to_ints() const {
  if (dtype().is_float()) kernel_fail("indices are {}, expected integers", to_string(dtype()));
  std::vector<int64_t> values(static_cast<size_t>(size()));
  visit_element(dtype(), [&]<typename T>() {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(data<T>()[i]);
  });
  return values;
}

void TensorArg::store_ints(std::span<const int64_t> values, int64_t offset, int64_t stride) const {
  visit_element(dtype(), [&]<typename T>() {
    T* out = data<T>() + offset;
    for (size_t i = 0; i < values.size(); ++i) out[static_cast<int64_t>(i) * stride] = static_cast<T>(values[i]);
  });
}

double TensorArg::at(int64_t i) const {
  return visit_element(dtype(), [&]<typename T>() { return static_cast<double>(data<T>()[i]); });
}

Rows rows_along(const TensorArg& tensor, int64_t axis) {
  const auto shape = tensor.shape();
  const auto rank = static_cast<int64_t>(shape.size());
  if (rank == 0 && (axis == 0 || axis == -1)) return {1, 1, 1};
  if (axis < -rank || axis >= rank) kernel_fail("axis {} of a tensor of {} axes", axis, rank);
  if (axis < 0) axis += rank;
  Rows rows{1, shape[axis], 1};
  for (int64_t i = axis + 1; i < rank; ++i) rows.stride *= shape[i];
  rows.count = rows.stride;
  for (int64_t i = 0; i < axis; ++i) rows.count *= shape[i];
  return rows;
}

TensorArg Call::input(size_t i) const {
  if (i >= inputs.size()) kernel_fail("input {} is missing", i);
  return TensorArg(inputs[i]);
}

TensorArg Call::output(size_t i) const {
  if (i >= outputs.size()) kernel_fail("output {} is missing", i);
  return TensorArg(outputs[i]);
}

int64_t Call::param(size_t i) const {
  if (i >= params.size()) kernel_fail("parameter {} is missing", i);
  return params[i];
}

void for_rows(TreadleContext* ctx, int64_t count, int64_t cost, const std::function<void(int64_t)>& f) {
  if (count <= 1 || cost == 0 || count < kParallelCost / cost) {
    for (int64_t row = 0; row < count; ++row) f(row);
    return;
  }
  auto body = [](TreadleContext* context, void* closure, int64_t begin, int64_t end) -> int32_t {
    try {
      for (int64_t row = begin; row < end; ++row) (*static_cast<const std::function<void(int64_t)>*>(closure))(row);
      return 0;
    } catch (const Error& error) {
      return context->fail(context, error.message().c_str());
    } catch (...) {
      return context->fail(context, "out of memory");
    }
  };
  const int32_t code = ctx->parallel_for(ctx, body, const_cast<std::function<void(int64_t)>*>(&f), count);
  if (code != 0) kernel_fail("failed with code {}", code);  // ctx has the first message already
}

int32_t run_kernel(const char* name, const Call& call, void (*body)(const Call&)) {
  try {
    body(call);
    return 0;
  } catch (const Error& error) {
    return call.ctx->fail(call.ctx, (std::string(name) + ": " + error.message()).c_str());
  } catch (...) {
    return call.ctx->fail(call.ctx, "a runtime kernel is out of memory");
  }
}

}  // namespace treadle::kernels
