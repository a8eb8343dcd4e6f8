/* SPDX-License-Identifier: Apache-2.0
 * count_allocations MODEL RUNS: loads a compiled model of float32 inputs of fixed shapes, runs it once, then RUNS times
 * into the same memory, and prints how many allocations these runs made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <treadle/runtime.h>

static atomic_long allocations;

extern void* __libc_malloc(size_t);
extern void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) {
  atomic_fetch_add(&allocations, 1);
  return __libc_malloc(bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
  atomic_fetch_add(&allocations, 1);
  return __libc_memalign(alignment, bytes);
}

static void check(treadle_status status) {
  if (status == TREADLE_OK) return;
  fprintf(stderr, "%s\n", treadle_last_error());
  exit(1);
}

/* Memory for a tensor of fixed shape; every element 1. */
static treadle_tensor tensor_of(const treadle_tensor_info* info) {
  treadle_tensor tensor = {0};
  size_t elements = 1;
  tensor.ndim = info->ndim;
  tensor.dtype = info->dtype;
  tensor.shape = malloc(sizeof(int64_t) * (size_t)info->ndim);
  for (int axis = 0; axis < info->ndim; ++axis) {
    tensor.shape[axis] = info->shape[axis];
    elements *= (size_t)info->shape[axis];
  }
  float* data = aligned_alloc(64, (elements * sizeof(float) + 63) / 64 * 64);
  for (size_t i = 0; i < elements; ++i) data[i] = 1;
  tensor.data = data;
  return tensor;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  treadle_model* model;
  check(treadle_model_load(argv[1], &model));
  treadle_tensor_info info;
  check(treadle_model_input(model, 0, &info));
  treadle_tensor input = tensor_of(&info);
  check(treadle_model_output(model, 0, &info));
  treadle_tensor output = tensor_of(&info);
  check(treadle_run(model, &input, 1, &output, 1));
  const long before = allocations;
  for (int i = 0; i < atoi(argv[2]); ++i) check(treadle_run(model, &input, 1, &output, 1));
  printf("%ld\n", (long)allocations - before);
  return 0;
}
