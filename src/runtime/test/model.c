/* SPDX-License-Identifier: Apache-2.0
 *
 * A compiled model by hand, with the symbols of an exported one: y[i] = x[i] + w[i % 4], x of N floats. Built twice,
 * with the constants inside, and (MODEL_SIDE_FILE) in a file beside it. */
#include "treadle/abi.h"

#define INPUTS "\"inputs\": [{\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [\"N\"]}],"
#define OUTPUTS "\"outputs\": [{\"name\": \"y\", \"dtype\": \"float32\", \"shape\": [\"N\"]}],"
#define SYMBOLS "\"symbols\": [{\"name\": \"N\"}],"
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
const char treadle_manifest[] =
    "{\"abi_version\": 1, \"name\": \"model\", \"target\": \"c\"," INPUTS OUTPUTS SYMBOLS CONSTANTS SIDE_FILE
    "\"arena_bytes\": \"0\", \"kernels\": []}";
const uint64_t treadle_manifest_size = sizeof treadle_manifest - 1;

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
