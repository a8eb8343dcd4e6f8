/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of the runtime: loads a model that `treadle compile` exported and runs it. C11 and C++.
 *
 * Every function that can fail gives a treadle_status; what went wrong is then in treadle_last_error of the same
 * thread. No exception leaves the library. All functions are thread safe; a model may run in several threads at once.
 *
 *     treadle_model* model;
 *     if (treadle_model_load("net.so", &model) != TREADLE_OK) { puts(treadle_last_error()); exit(1); }
 *     treadle_run(model, inputs, 1, outputs, 1);
 */
#ifndef TREADLE_RUNTIME_H_
#define TREADLE_RUNTIME_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TREADLE_API __attribute__((visibility("default")))
#else
#define TREADLE_API
#endif

typedef enum treadle_status {
  TREADLE_OK = 0,
  TREADLE_NOT_FOUND = 1,        /* a file cannot be read */
  TREADLE_INVALID_MODEL = 2,    /* not a compiled model, of another ABI version, or its constants do not fit */
  TREADLE_INVALID_ARGUMENT = 3, /* an argument is null, out of range, or an output's memory does not fit */
  TREADLE_INVALID_INPUT = 4,    /* an input's dtype or shape is not what the model expects */
  TREADLE_RUN_FAILED = 5,       /* a kernel refused its data, for example an index out of range */
  TREADLE_OUT_OF_MEMORY = 6,    /* memory is short, or a size is beyond all limits */
  TREADLE_INTERNAL = 7          /* a defect of Treadle or of the compiled model */
} treadle_status;

/* Type codes of treadle_dtype; DLPack's. */
enum { TREADLE_INT = 0, TREADLE_UINT = 1, TREADLE_FLOAT = 2, TREADLE_BFLOAT = 4, TREADLE_BOOL = 6 };

/* The type of an element: float32 is {TREADLE_FLOAT, 32, 1}. Laid out as DLPack's DLDataType. */
typedef struct treadle_dtype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes; /* 1 */
} treadle_dtype;

/* A tensor in host memory, laid out as DLPack's DLTensor, so that a pointer to one may be given for the other. */
typedef struct treadle_tensor {
  void* data;          /* of the first element, less byte_offset; aligned to the element */
  int32_t device_type; /* DLPack's kDLCPU = 1; 0 is taken for it */
  int32_t device_id;
  int32_t ndim;
  treadle_dtype dtype;
  int64_t* shape;   /* ndim extents; may be null when ndim is 0 */
  int64_t* strides; /* null, or the strides of a dense row-major tensor in elements */
  uint64_t byte_offset;
} treadle_tensor;

/* What a model says of an input or output. Pointers live as long as the model. */
typedef struct treadle_tensor_info {
  const char* name;
  treadle_dtype dtype;
  int32_t ndim;
  const int64_t* shape;          /* ndim extents; -1 where the extent is known only when the model runs */
  const char* const* shape_text; /* the same as text: "3", "N", "2*N - 1" */
} treadle_tensor_info;

typedef struct treadle_model treadle_model;

/* Loads an exported model. *model owns it: give it back with treadle_model_release; null on error.
 * Errors: NOT_FOUND, INVALID_MODEL, OUT_OF_MEMORY. */
TREADLE_API treadle_status treadle_model_load(const char* path, treadle_model** model);

/* Frees a model that no thread runs; null is allowed. */
TREADLE_API void treadle_model_release(treadle_model* model);

TREADLE_API size_t treadle_model_num_inputs(const treadle_model* model);
TREADLE_API size_t treadle_model_num_outputs(const treadle_model* model);

/* Errors: INVALID_ARGUMENT index out of range. */
TREADLE_API treadle_status treadle_model_input(const treadle_model* model, size_t index, treadle_tensor_info* info);
TREADLE_API treadle_status treadle_model_output(const treadle_model* model, size_t index, treadle_tensor_info* info);

/* Runs the model.
 *   inputs   dense, row-major, in the model's order; dtype and shape as treadle_model_input says, equal symbols with
 * equal values outputs  in the model's order. Where data is null, the library allocates data and shape and fills the
 * struct: give it back with treadle_tensor_release. Else data has room for dtype, ndim and shape, which must be those
 * of treadle_output_shape, and overlaps no other tensor; shape then receives the true extents. A model with fixed
 * shapes allocates nothing in this way. On error the outputs that the library would have allocated keep null data; the
 * contents of others are undefined. Errors: INVALID_INPUT, INVALID_ARGUMENT, RUN_FAILED, OUT_OF_MEMORY. */
TREADLE_API treadle_status treadle_run(treadle_model* model, const treadle_tensor* inputs, size_t num_inputs,
                                       treadle_tensor* outputs, size_t num_outputs);

/* Writes the extents that output `index` has for these inputs, upper bounds where they depend on data, to shape (room
 * for the info's ndim). -1: there is no bound before the model has run; treadle_run then wants null data. Inputs' data
 * are not read. Errors: INVALID_INPUT, INVALID_ARGUMENT. */
TREADLE_API treadle_status treadle_output_shape(const treadle_model* model, const treadle_tensor* inputs,
                                                size_t num_inputs, size_t index, int64_t* shape);

/* Frees data and shape of an output that treadle_run allocated, and sets them null; nothing for one with null data. */
TREADLE_API void treadle_tensor_release(treadle_tensor* tensor);

/* Threads of the pool that all models of the process share, the calling thread included. 0: the default, which is the
 * environment variable TREADLE_NUM_THREADS, else the CPUs that affinity mask and cgroup quota allow. Results do not
 * depend on it. */
TREADLE_API void treadle_set_num_threads(int32_t count);
TREADLE_API int32_t treadle_get_num_threads(void);
/* The most threads that a run of this model uses; 0: all. */
TREADLE_API void treadle_model_set_max_threads(treadle_model* model, int32_t count);

/* Why the last call of this thread that failed did so, a text of one or more lines ("error TRD-RUN-001: input ..."),
 * and its code
 * ("TRD-RUN-001"). Empty before the first failure. Valid until the next failure in this thread. */
TREADLE_API const char* treadle_last_error(void);
TREADLE_API const char* treadle_last_error_code(void);

/* "0.1.0" */
TREADLE_API const char* treadle_version(void);

#ifdef __cplusplus
}
#endif

#endif /* TREADLE_RUNTIME_H_ */
