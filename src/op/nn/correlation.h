// SPDX-License-Identifier: Apache-2.0
// nn.correlation: patches of one picture compared with displaced patches of another.
//
//   y[n, q, i, j] = mean over c, u, v of a[n, c, i*s1 + m + u, j*s1 + m + v] * b[n, c, i*s1 + m + dy + u, j*s1 + m + dx
//   + v] m = max_displacement, r = floor(m / s2), dy = (q / (2r+1) - r)*s2, dx = (q mod (2r+1) - r)*s2, u and v in 0 …
//   kernel_size-1, a and b framed with `padding` zeros; is_multiply=False: |a - b| instead of the product data1, data2
//   (N, C, H, W)    y (N, (2r+1)^2, ceil((H + 2*padding - 2*(m + (k-1)/2)) / s1), …)
// Source: Relay 0.16; FlowNet, Dosovitskiy and others 2015.
#pragma once

#include <string>

#include "ir/expr.h"

namespace treadle::op {

struct CorrelationAttrs : ir::AttrsOf<CorrelationAttrs> {
  int64_t kernel_size, max_displacement, stride1, stride2;
  ir::Ints padding;
  bool is_multiply;
  std::string layout;

  template <typename F>
  static void fields(F& field) {
    using A = CorrelationAttrs;
    field(&A::kernel_size, "kernel_size", 1, "extent of a patch, odd").at_least(1);
    field(&A::max_displacement, "max_displacement", 1, "largest displacement").at_least(0);
    field(&A::stride1, "stride1", 1, "distance between patches of data1").at_least(1);
    field(&A::stride2, "stride2", 1, "distance between displacements").at_least(1);
    field(&A::padding, "padding", ir::Ints{0, 0}, "zeros around the data: all sides, per axis, or begins, then ends")
        .at_least(0);
    field(&A::is_multiply, "is_multiply", true, "compare by the product, or else by the absolute difference");
    field(&A::layout, "layout", "NCHW", "order of the data's axes").one_of({"NCHW"});
  }
};

}  // namespace treadle::op
