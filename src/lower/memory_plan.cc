// SPDX-License-Identifier: Apache-2.0
#include "lower/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "runtime/tensor.h"

namespace treadle::lower {
namespace {

constexpr int64_t kAlign = static_cast<int64_t>(kAlignment);

int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
Dim aligned(const Dim& bytes) { return bytes.is_const() ? Dim(aligned(bytes.value())) : Dim(kAlign) * ceildiv(bytes, kAlign); }

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// Buffers already placed, by the step at which they begin, so that a query looks only at those that can be alive.
class Placed {
 public:
  void add(const Lifetime& lifetime, int64_t offset) {
    by_first_.emplace(lifetime.first, Item{lifetime, offset});
    longest_ = std::max(longest_, lifetime.last - lifetime.first);
  }

  // Lowest offset at which `bytes` fit beside everything alive during `lifetime`.
  int64_t lowest_gap(const Lifetime& lifetime, int64_t bytes) const {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (auto it = by_first_.lower_bound(lifetime.first - longest_); it != by_first_.end() && it->first <= lifetime.last; ++it) {
      const Item& item = it->second;
      if (overlap(item.lifetime, lifetime)) taken.emplace_back(item.offset, item.offset + aligned(item.lifetime.bytes.value()));
    }
    std::sort(taken.begin(), taken.end());
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - offset >= bytes) break;
      offset = std::max(offset, end);
    }
    return offset;
  }

 private:
  struct Item {
    Lifetime lifetime;
    int64_t offset;
  };
  std::multimap<int, Item> by_first_;
  int longest_ = 0;
};

struct Slot {
  Dim bytes;
  std::vector<const Lifetime*> members;

  bool free_for(const Lifetime& lifetime) const {
    return std::none_of(members.begin(), members.end(), [&](const Lifetime* member) { return overlap(*member, lifetime); });
  }
};

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> fixed, symbolic;
  for (size_t i = 0; i < lifetimes.size(); ++i) (lifetimes[i].bytes.is_const() ? fixed : symbolic).push_back(i);

  std::stable_sort(fixed.begin(), fixed.end(), [&](size_t a, size_t b) { return lifetimes[a].bytes.value() > lifetimes[b].bytes.value(); });
  Placed placed;
  int64_t total = 0;
  for (size_t i : fixed) {
    const int64_t bytes = aligned(lifetimes[i].bytes.value());
    const int64_t offset = placed.lowest_gap(lifetimes[i], bytes);
    placed.add(lifetimes[i], offset);
    plan.offsets[i] = offset;
    total = std::max(total, offset + bytes);
  }

  std::vector<Slot> slots;
  std::vector<size_t> slot_of(lifetimes.size());
  for (size_t i : symbolic) {
    const Lifetime& lifetime = lifetimes[i];
    size_t best = slots.size();
    for (size_t s = 0; s < slots.size(); ++s) {
      if (!slots[s].free_for(lifetime)) continue;
      const bool equal = slots[s].bytes == lifetime.bytes;
      if (best == slots.size() || equal) best = s;
      if (equal) break;
    }
    if (best == slots.size()) slots.push_back({lifetime.bytes, {}});
    slots[best].bytes = max(slots[best].bytes, lifetime.bytes);
    slots[best].members.push_back(&lifetime);
    slot_of[i] = best;
  }
  std::vector<Dim> slot_offset;
  plan.total = total;
  for (const Slot& slot : slots) {
    slot_offset.push_back(plan.total);
    plan.total = plan.total + aligned(slot.bytes);
  }
  for (size_t i : symbolic) plan.offsets[i] = slot_offset[slot_of[i]];
  return plan;
}

}  // namespace treadle::lower
