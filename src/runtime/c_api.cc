// SPDX-License-Identifier: Apache-2.0
// The C interface over Session: status codes, and errors kept per thread.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/session.h"
#include "runtime/thread_pool.h"
#include "treadle/runtime.h"

#ifndef TREADLE_VERSION
#error "the build defines TREADLE_VERSION"
#endif

namespace {

using treadle::DType;
using treadle::Error;
using treadle::ErrorCode;
using treadle::Manifest;

thread_local std::string last_error, last_error_code;

treadle_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::Io:
      return TREADLE_NOT_FOUND;
    case ErrorCode::ArtifactInvalid:
      return TREADLE_INVALID_MODEL;
    case ErrorCode::InvalidArgument:
      return TREADLE_INVALID_ARGUMENT;
    case ErrorCode::RuntimeInput:
      return TREADLE_INVALID_INPUT;
    case ErrorCode::RuntimeKernel:
      return TREADLE_RUN_FAILED;
    case ErrorCode::Limit:
      return TREADLE_OUT_OF_MEMORY;
    default:
      return TREADLE_INTERNAL;
  }
}

treadle_status keep(const Error& error) noexcept {
  try {
    last_error = error.what();
    last_error_code = treadle::code_text(error.code());
  } catch (...) {  // no memory for the text
    last_error.clear();
    last_error_code.clear();
  }
  return status_of(error.code());
}

// Runs f; what it throws becomes a status.
template <typename F>
treadle_status guarded(F&& f) noexcept {
  try {
    f();
    return TREADLE_OK;
  } catch (const Error& error) {
    return keep(error);
  } catch (const std::bad_alloc&) {
    try {
      return keep(Error(ErrorCode::Limit, "out of memory"));
    } catch (...) {
      return TREADLE_OUT_OF_MEMORY;
    }
  } catch (const std::exception& error) {
    try {
      return keep(Error(ErrorCode::Internal, error.what()));
    } catch (...) {
      return TREADLE_INTERNAL;
    }
  } catch (...) {
    return TREADLE_INTERNAL;
  }
}

void require(bool condition, const char* what) {
  if (!condition) treadle::fail(ErrorCode::InvalidArgument, "{}", what);
}

// A tensor of the manifest as C sees it.
struct Port {
  const Manifest::TensorInfo* info;
  std::vector<int64_t> shape;
  std::vector<const char*> shape_text;
};

std::vector<Port> ports_of(const std::vector<Manifest::TensorInfo>& infos) {
  std::vector<Port> ports;
  for (const Manifest::TensorInfo& info : infos) {
    Port port{&info, {}, {}};
    for (const std::string& text : info.shape) {
      char* end = nullptr;
      const long long extent = std::strtoll(text.c_str(), &end, 10);
      port.shape.push_back(*end == '\0' ? extent : -1);
      port.shape_text.push_back(text.c_str());
    }
    ports.push_back(std::move(port));
  }
  return ports;
}

treadle_dtype c_dtype(DType dtype) { return {static_cast<uint8_t>(dtype.code), dtype.bits, 1}; }

// Errors: InvalidArgument for another device, or strides that are not dense row-major; extents of 1 may have any
// stride.
void check_layout(const treadle_tensor& tensor, size_t index, const char* kind) {
  auto refuse = [&](const char* what) { treadle::fail(ErrorCode::InvalidArgument, "{} {}: {}", kind, index, what); };
  if (tensor.device_type > 1 || tensor.device_type < 0) refuse("the tensor is not in host memory");
  if (tensor.dtype.lanes != 1) refuse("lanes of the dtype must be 1");
  if (tensor.ndim < 0 || (tensor.ndim > 0 && !tensor.shape)) refuse("the tensor has no shape");
  if (!tensor.strides) return;
  int64_t dense = 1;
  bool empty = false;
  for (int32_t axis = 0; axis < tensor.ndim; ++axis) empty = empty || tensor.shape[axis] == 0;
  for (int32_t axis = tensor.ndim - 1; axis >= 0 && !empty; --axis) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != dense) refuse("the tensor is not dense and row-major");
    if (__builtin_mul_overflow(dense, tensor.shape[axis], &dense)) refuse("the shape is too large");
  }
}

void* first_element(const treadle_tensor& tensor) {
  return tensor.data ? static_cast<char*>(tensor.data) + tensor.byte_offset : nullptr;
}

using InputRefs = std::vector<TreadleTensorRef>;

// Fills `refs`, whose memory is kept between calls of a thread, so that a run allocates nothing.
void read_inputs(const treadle_tensor* inputs, size_t count, InputRefs& refs) {
  require(inputs || count == 0, "inputs is null");
  refs.clear();
  for (size_t i = 0; i < count; ++i) {
    check_layout(inputs[i], i, "input");
    refs.push_back(
        {first_element(inputs[i]), inputs[i].shape, inputs[i].ndim, inputs[i].dtype.code, inputs[i].dtype.bits});
  }
}

// Memory for one output, data and shape; freed unless it is handed over.
struct Allocation {
  void* data = nullptr;
  int64_t* shape = nullptr;
  Allocation() = default;
  Allocation(Allocation&& other) noexcept
      : data(std::exchange(other.data, nullptr)), shape(std::exchange(other.shape, nullptr)) {}
  Allocation& operator=(Allocation&& other) noexcept {
    std::swap(data, other.data);
    std::swap(shape, other.shape);
    return *this;
  }
  ~Allocation() {
    std::free(data);
    std::free(shape);
  }
};

Allocation allocate(const std::vector<int64_t>& shape, DType dtype) {
  Allocation allocation;
  size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<size_t>(treadle::element_count(shape)), dtype.bytes(), &bytes) ||
      bytes > SIZE_MAX / 2) {
    treadle::fail(ErrorCode::Limit, "an output does not fit into memory");
  }
  bytes = (bytes + treadle::kAlignment) / treadle::kAlignment * treadle::kAlignment;
  allocation.data = std::aligned_alloc(treadle::kAlignment, bytes);
  allocation.shape = static_cast<int64_t*>(std::malloc(std::max<size_t>(shape.size(), 1) * sizeof(int64_t)));
  if (!allocation.data || !allocation.shape)
    treadle::fail(ErrorCode::Limit, "out of memory for an output of {} bytes", bytes);
  std::copy(shape.begin(), shape.end(), allocation.shape);
  return allocation;
}

}  // namespace

struct treadle_model {
  explicit treadle_model(const char* path)
      : session(treadle::Executable::load(path)),
        inputs(ports_of(session.manifest().inputs)),
        outputs(ports_of(session.manifest().outputs)) {}
  treadle::Session session;
  std::vector<Port> inputs, outputs;
  std::atomic<int32_t> max_threads{0};
};

namespace {

treadle_status describe(const treadle_model* model, std::vector<Port> treadle_model::* kind, size_t index,
                        treadle_tensor_info* info) {
  return guarded([&] {
    require(model && info, "model or info is null");
    const std::vector<Port>& ports = model->*kind;
    if (index >= ports.size()) treadle::fail(ErrorCode::InvalidArgument, "index {} of {} tensors", index, ports.size());
    const Port& port = ports[index];
    *info = {port.info->name.c_str(), c_dtype(port.info->dtype), static_cast<int32_t>(port.shape.size()),
             port.shape.data(), port.shape_text.data()};
  });
}

void run(treadle_model& model, const treadle_tensor* inputs, size_t num_inputs, treadle_tensor* outputs,
         size_t num_outputs) {
  thread_local InputRefs refs;
  thread_local std::vector<treadle::OutputBuffer> buffers;
  read_inputs(inputs, num_inputs, refs);
  require(outputs || num_outputs == 0, "outputs is null");
  const bool any_null = std::any_of(outputs, outputs + num_outputs, [](const treadle_tensor& t) { return !t.data; });
  std::vector<std::vector<int64_t>> shapes;
  if (any_null) shapes = model.session.output_shapes(refs);
  std::vector<treadle::Tensor> values(shapes.size());  // of outputs whose size is known only now
  std::vector<Allocation> allocations;
  allocations.reserve(any_null ? num_outputs : 0);
  buffers.clear();
  for (size_t i = 0; i < num_outputs; ++i) {
    const bool ours = !outputs[i].data && i < shapes.size();
    if (!ours) {
      check_layout(outputs[i], i, "output");
      const DType dtype{static_cast<treadle::TypeCode>(outputs[i].dtype.code), outputs[i].dtype.bits};
      buffers.push_back({first_element(outputs[i]), outputs[i].shape, outputs[i].ndim, dtype});
      if (any_null) allocations.emplace_back();
      continue;
    }
    const DType dtype = model.outputs[i].info->dtype;
    const bool known = std::find(shapes[i].begin(), shapes[i].end(), treadle::kUnbounded) == shapes[i].end();
    allocations.push_back(known ? allocate(shapes[i], dtype) : Allocation());
    buffers.push_back({allocations[i].data, known ? allocations[i].shape : shapes[i].data(),
                       static_cast<int32_t>(shapes[i].size()), dtype, &values[i]});
  }
  treadle::RunOptions options;
  options.max_threads = model.max_threads.load(std::memory_order_relaxed);
  model.session.run(refs, buffers, options);
  for (size_t i = 0; i < allocations.size(); ++i) {
    if (i < values.size() && values[i].defined()) {
      allocations[i] = allocate(values[i].shape(), values[i].dtype());
      std::memcpy(allocations[i].data, values[i].data(), values[i].bytes());
    }
    if (!allocations[i].data) continue;
    outputs[i] = {std::exchange(allocations[i].data, nullptr),  1,       0, buffers[i].rank, c_dtype(buffers[i].dtype),
                  std::exchange(allocations[i].shape, nullptr), nullptr, 0};
  }
}

}  // namespace

treadle_status treadle_model_load(const char* path, treadle_model** model) {
  return guarded([&] {
    require(model, "model is null");
    *model = nullptr;
    require(path, "path is null");
    *model = new treadle_model(path);
  });
}

void treadle_model_release(treadle_model* model) { delete model; }

size_t treadle_model_num_inputs(const treadle_model* model) { return model ? model->inputs.size() : 0; }
size_t treadle_model_num_outputs(const treadle_model* model) { return model ? model->outputs.size() : 0; }

treadle_status treadle_model_input(const treadle_model* model, size_t index, treadle_tensor_info* info) {
  return describe(model, &treadle_model::inputs, index, info);
}

treadle_status treadle_model_output(const treadle_model* model, size_t index, treadle_tensor_info* info) {
  return describe(model, &treadle_model::outputs, index, info);
}

treadle_status treadle_run(treadle_model* model, const treadle_tensor* inputs, size_t num_inputs,
                           treadle_tensor* outputs, size_t num_outputs) {
  return guarded([&] {
    require(model, "model is null");
    run(*model, inputs, num_inputs, outputs, num_outputs);
  });
}

treadle_status treadle_output_shape(const treadle_model* model, const treadle_tensor* inputs, size_t num_inputs,
                                    size_t index, int64_t* shape) {
  return guarded([&] {
    require(model && shape, "model or shape is null");
    if (index >= model->outputs.size()) {
      treadle::fail(ErrorCode::InvalidArgument, "index {} of {} outputs", index, model->outputs.size());
    }
    InputRefs refs;
    read_inputs(inputs, num_inputs, refs);
    const std::vector<int64_t> extents = model->session.output_shapes(refs)[index];
    std::copy(extents.begin(), extents.end(), shape);
  });
}

void treadle_tensor_release(treadle_tensor* tensor) {
  if (!tensor || !tensor->data) return;
  std::free(tensor->data);
  std::free(tensor->shape);
  tensor->data = nullptr;
  tensor->shape = nullptr;
}

void treadle_set_num_threads(int32_t count) { treadle::thread_pool::set_num_threads(count); }
int32_t treadle_get_num_threads(void) { return treadle::thread_pool::num_threads(); }

void treadle_model_set_max_threads(treadle_model* model, int32_t count) {
  if (model) model->max_threads.store(std::max(count, 0), std::memory_order_relaxed);
}

const char* treadle_last_error(void) { return last_error.c_str(); }
const char* treadle_last_error_code(void) { return last_error_code.c_str(); }
const char* treadle_version(void) { return TREADLE_VERSION; }
