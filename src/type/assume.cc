// SPDX-License-Identifier: Apache-2.0
#include "type/assume.h"

#include <algorithm>

namespace treadle {
namespace {

thread_local AssumptionScope* innermost = nullptr;

enum class Truth { Never, Perhaps, Always };

Truth either(Truth a, Truth b) { return std::max(a, b); }
Truth both(Truth a, Truth b) { return std::min(a, b); }

Truth at_most(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return a.value() <= b.value() ? Truth::Always : Truth::Never;
  const Dim room = b - a;
  if (const auto low = room.lower_bound(); low && *low >= 0) return Truth::Always;
  const auto high = room.upper_bound();
  return high && *high < 0 ? Truth::Never : Truth::Perhaps;
}

Truth equal(const Dim& a, const Dim& b) {
  if (a == b) return Truth::Always;
  if (a.is_const() && b.is_const()) return Truth::Never;
  return at_most(a, b) == Truth::Never || at_most(b, a) == Truth::Never ? Truth::Never : Truth::Perhaps;
}

Truth holds(Assumption::Kind kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case Assumption::Kind::Equal:
      return equal(a, b);
    case Assumption::Kind::AtMost:
      return at_most(a, b);
    case Assumption::Kind::Broadcast:
      return either(equal(a, b), either(both(equal(a, 1), at_most(1, b)), both(equal(b, 1), at_most(1, a))));
    case Assumption::Kind::BroadcastTo:
      return either(equal(a, b), equal(a, 1));
  }
  return Truth::Perhaps;
}

}  // namespace

AssumptionScope::AssumptionScope() : outer_(innermost) { innermost = this; }
AssumptionScope::~AssumptionScope() { innermost = outer_; }

bool assume(Assumption::Kind kind, const Dim& a, const Dim& b) {
  const Truth truth = holds(kind, a, b);
  if (truth == Truth::Perhaps && innermost) innermost->assumptions_.push_back({kind, a, b});
  return truth != Truth::Never;
}

}  // namespace treadle
