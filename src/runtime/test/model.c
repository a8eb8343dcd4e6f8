/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiled models by hand, with the symbols of exported ones. y[i] = x[i] + w[i % 4], x of N floats, with the constants
 * inside and (MODEL_SIDE_FILE) in a file beside it; and (MODEL_UNBOUNDED) y that repeats x[0] as often as it says,
 * which nothing bounds. */
#include "treadle/abi.h"

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)

#define INPUTS "\"inputs\": [{\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [\"N\"]}],"
#ifdef MODEL_UNBOUNDED
#define OUTPUTS "\"outputs\": [{\"name\": \"y\", \"dtype\": \"float32\", \"shape\": [\"K\"]}],"
#define SYMBOLS "\"symbols\": [{\"name\": \"N\"}, {\"name\": \"K\", \"bound\": \"-\"}], \"slots\": 1,"
#else
#define OUTPUTS "\"outputs\": [{\"name\": \"y\", \"dtype\": \"float32\", \"shape\": [\"N\"]}],"
#define SYMBOLS "\"symbols\": [{\"name\": \"N\"}],"
#endif
#define CONSTANTS                                                                                                    \
  "\"constants\": [{\"name\": \"w\", \"offset\": 0, \"dtype\": \"float32\", \"shape\": [4]}], \"constants_bytes\": " \
  "16,"
#ifdef MODEL_SIDE_FILE
#define SIDE_FILE "\"constants_file\": \"model.constants\", \"constants_hash\": \"" MODEL_SIDE_FILE "\","
#else
#define SIDE_FILE
__attribute__((aligned(64))) const float treadle_constants[4] = {10, 20, 30, 40};
const uint64_t treadle_constants_size = sizeof treadle_constants;
#endif

const uint32_t treadle_abi_version = TREADLE_ABI_VERSION;
const char treadle_manifest[] = "{\"abi_version\": " TEXT_OF(
    TREADLE_ABI_VERSION) ", \"name\": \"model\", \"target\": \"c\"," INPUTS OUTPUTS SYMBOLS CONSTANTS SIDE_FILE
                         "\"arena_bytes\": \"0\", \"kernels\": []}";
const uint64_t treadle_manifest_size = sizeof treadle_manifest - 1;

#ifdef MODEL_UNBOUNDED
int32_t treadle_main(TreadleContext* ctx, void* const* buffers, const int64_t* scalars) {
  const float* x = buffers[0];
  int64_t* results = buffers[4];
  void** slot = (void**)&results[1];
  (void)scalars;
  results[0] = 0;
  while (results[0] < x[0]) {
    int32_t code = ctx->reserve(ctx, slot, (results[0] + 1) * (int64_t)sizeof(float), 1);
    if (code) return code;
    ((float*)*slot)[results[0]++] = x[0];
  }
  TreadleTensorRef y = {*slot, results, 1, 2, 32};
  return ctx->give_output(ctx, 0, &y);
}
#else
int32_t treadle_main(TreadleContext* ctx, void* const* buffers, const int64_t* scalars) {
  const float* x = buffers[0];
  float* y = buffers[1];
  const float* w = buffers[2];
  for (int64_t i = 0; i < scalars[0]; ++i) {
    if (x[i] < 0) return ctx->fail(ctx, "x holds a negative number");
    y[i] = x[i] + w[i % 4];
  }
  return 0;
}
#endif
