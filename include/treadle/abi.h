/* SPDX-License-Identifier: Apache-2.0
 *
 * How compiled code and the runtime call each other. Plain C; the version counts every incompatible change. */
#ifndef TREADLE_ABI_H_
#define TREADLE_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TREADLE_ABI_VERSION 2

typedef struct TreadleContext TreadleContext;

/* A kernel and `main`. Gives 0, or a code after ctx->fail was called.
 *   buffers  one pointer per buffer of the loop function: inputs, then outputs
 *   scalars  one int64 per scalar of the loop function */
typedef int32_t (*TreadleKernel)(TreadleContext* ctx, void* const* buffers, const int64_t* scalars);

/* The body of a parallel loop: runs iterations begin … end-1. */
typedef int32_t (*TreadleParallelBody)(TreadleContext* ctx, void* closure, int64_t begin, int64_t end);

/* A tensor as a runtime kernel sees it: dense, row-major. */
typedef struct TreadleTensorRef {
  void* data;
  const int64_t* shape;
  int32_t rank;
  uint8_t type_code; /* DLPack's */
  uint8_t bits;
} TreadleTensorRef;

/* A kernel of the runtime that is no loop nest (sort, top-k, scatter). `params`: its attributes, in the order that the
 * kernel documents. Kernels whose output extent depends on data write the extents to `results`. */
typedef int32_t (*TreadleRuntimeKernel)(TreadleContext* ctx, const TreadleTensorRef* inputs, int32_t num_inputs,
                                        const TreadleTensorRef* outputs, int32_t num_outputs, const int64_t* params,
                                        int32_t num_params, int64_t* results);

/* What compiled code may ask of the runtime. Made by the runtime for each run; compiled code never looks behind
 * `owner`. */
struct TreadleContext {
  uint32_t abi_version;
  uint32_t num_threads;
  void* owner;
  /* Runs the body over 0 … extent-1, split over threads; gives the first code that is not 0. */
  int32_t (*parallel_for)(TreadleContext* ctx, TreadleParallelBody body, void* closure, int64_t extent);
  /* Memory of this run, 64-byte aligned, freed by `release` or at the end of the run. Null: out of memory. */
  void* (*allocate)(TreadleContext* ctx, int64_t bytes);
  void (*release)(TreadleContext* ctx, void* memory);
  /* The runtime kernel of that name; null when unknown. */
  TreadleRuntimeKernel (*runtime_kernel)(TreadleContext* ctx, const char* name);
  /* Records why the run fails; gives the code to return. */
  int32_t (*fail)(TreadleContext* ctx, const char* message);
  /* Null, or called around each kernel call of main with its number in the manifest. */
  void (*profile)(TreadleContext* ctx, int32_t kernel, int32_t begin);
  /* Makes *slot memory of this run of at least `bytes` bytes, 64-byte aligned; null stands for none so far. With `keep`
   * what was there stays, and the memory grows by half or more, so that appending costs linear time. Gives 0, or a code
   * after `fail`. */
  int32_t (*reserve)(TreadleContext* ctx, void** slot, int64_t bytes, int32_t keep);
  /* Gives the value of an output whose size nobody knew before the run. Memory of `reserve` becomes the output's;
   * other memory is copied. Gives 0, or a code after `fail`. */
  int32_t (*give_output)(TreadleContext* ctx, int32_t output, const TreadleTensorRef* value);
};

#ifdef __cplusplus
}
#endif

#endif /* TREADLE_ABI_H_ */
