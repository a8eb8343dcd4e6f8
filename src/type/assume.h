// SPDX-License-Identifier: Apache-2.0
// What the type relations take for granted of extents that are not numbers: compiled code checks it when it runs.
#pragma once

#include <vector>

#include "type/dim.h"

namespace treadle {

struct Assumption {
  enum class Kind {
    Equal,        // a == b
    AtMost,       // a <= b
    Broadcast,    // a == b, or one of them is 1 and the other at least 1
    BroadcastTo,  // a == b or a == 1
  };
  Kind kind;
  Dim a, b;
};

// Keeps what this thread assumes while it lives; the innermost scope gets it. Without a scope nothing is kept.
class AssumptionScope {
 public:
  AssumptionScope();
  ~AssumptionScope();
  AssumptionScope(const AssumptionScope&) = delete;
  AssumptionScope& operator=(const AssumptionScope&) = delete;
  const std::vector<Assumption>& assumptions() const { return assumptions_; }

 private:
  friend bool assume(Assumption::Kind kind, const Dim& a, const Dim& b);
  std::vector<Assumption> assumptions_;
  AssumptionScope* outer_;
};

// False when it does not hold for any values of the symbols; else true, and kept when it is not proven for all.
bool assume(Assumption::Kind kind, const Dim& a, const Dim& b);
inline bool assume_equal(const Dim& a, const Dim& b) { return assume(Assumption::Kind::Equal, a, b); }
inline bool assume_at_most(const Dim& a, const Dim& b) { return assume(Assumption::Kind::AtMost, a, b); }
// That the divisor (at least 1) divides the extent.
inline bool assume_divides(int64_t divisor, const Dim& extent) { return assume_equal(mod(extent, divisor), 0); }

}  // namespace treadle
