/* SPDX-License-Identifier: Apache-2.0
 *
 * Classifies with a compiled model, without any framework:
 *
 *     treadle compile examples/digits/digits.onnx -o digits.so
 *     cc -std=c11 examples/c/classify.c -ltreadle_runtime -o classify
 *     ./classify digits.so picture.f32
 *
 * picture.f32 holds the model's input as raw float32 numbers in row-major order, for digits.onnx 64 grey values from 0
 * to 255; without it the input is zeros. Extents that the model leaves open are taken as 1. Prints the three best
 * classes with the numbers that the model gives them: probabilities when it ends in Softmax, as this one does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <treadle/runtime.h>

static void check(treadle_status status) {
  if (status == TREADLE_OK) return;
  fprintf(stderr, "%s\n", treadle_last_error());
  exit(1);
}

/* A tensor for the model's input: the numbers of the file, or zeros without one. */
static treadle_tensor read_input(const treadle_tensor_info* info, const char* path) {
  treadle_tensor input = {0};
  size_t count = 1;
  input.ndim = info->ndim;
  input.dtype = info->dtype;
  input.shape = malloc((size_t)info->ndim * sizeof(int64_t) + 1);
  for (int32_t axis = 0; axis < info->ndim; ++axis) {
    input.shape[axis] = info->shape[axis] < 0 ? 1 : info->shape[axis];
    count *= (size_t)input.shape[axis];
  }
  input.data = calloc(count + 1, sizeof(float));
  FILE* file = path ? fopen(path, "rb") : NULL;
  if (path && (!file || fread(input.data, sizeof(float), count, file) != count)) {
    fprintf(stderr, "%s: cannot read %zu float32 numbers\n", path, count);
    exit(1);
  }
  if (file) fclose(file);
  return input;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL.so [INPUT.f32]\n", argv[0]);
    return 1;
  }
  treadle_model* model;
  check(treadle_model_load(argv[1], &model));
  treadle_tensor_info info;
  check(treadle_model_input(model, 0, &info));
  if (info.dtype.code != TREADLE_FLOAT || info.dtype.bits != 32) {
    fprintf(stderr, "input \"%s\" is not float32\n", info.name);
    return 1;
  }
  treadle_tensor input = read_input(&info, argc > 2 ? argv[2] : NULL);
  treadle_tensor output = {0}; /* null data: the library allocates it */
  check(treadle_run(model, &input, 1, &output, 1));
  if (output.dtype.code != TREADLE_FLOAT || output.dtype.bits != 32) {
    fprintf(stderr, "the output is not float32\n");
    return 1;
  }

  int64_t classes = 1;
  for (int32_t axis = 0; axis < output.ndim; ++axis) classes *= output.shape[axis];
  float* score = output.data;
  for (int place = 0; place < 3 && place < classes; ++place) {
    int64_t top = 0;
    for (int64_t i = 1; i < classes; ++i) top = score[i] > score[top] ? i : top;
    printf("class %lld  %.6g\n", (long long)top, score[top]);
    score[top] = -INFINITY;
  }

  treadle_tensor_release(&output);
  free(input.data);
  free(input.shape);
  treadle_model_release(model);
  return 0;
}
