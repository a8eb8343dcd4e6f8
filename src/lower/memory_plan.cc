// SPDX-License-Identifier: Apache-2.0
#include "lower/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "runtime/tensor.h"

namespace treadle::lower {
namespace {

constexpr int64_t kAlign = static_cast<int64_t>(kAlignment);

int64_t aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
Dim aligned(const Dim& bytes) {
  return bytes.is_const() ? Dim(aligned(bytes.value())) : Dim(kAlign) * ceildiv(bytes, kAlign);
}

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

// Greedy by size looks at all pairs of buffers that live at the same time; more buffers than this are placed in order
// of time.
constexpr size_t kMaxGreedy = 4096;

struct Placement {
  std::vector<int64_t> offsets;  // per buffer of `order`
  int64_t total = 0;
};

// Largest first, each at the lowest offset where it fits beside those that live at the same time.
Placement place_by_size(const std::vector<Lifetime>& buffers) {
  std::vector<size_t> order(buffers.size()), placed;
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes.value() > buffers[b].bytes.value(); });
  Placement result{std::vector<int64_t>(buffers.size()), 0};
  for (size_t i : order) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t other : placed) {
      if (overlap(buffers[i], buffers[other]))
        taken.emplace_back(result.offsets[other], result.offsets[other] + aligned(buffers[other].bytes.value()));
    }
    std::sort(taken.begin(), taken.end());
    const int64_t bytes = aligned(buffers[i].bytes.value());
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - offset >= bytes) break;
      offset = std::max(offset, end);
    }
    result.offsets[i] = offset;
    result.total = std::max(result.total, offset + bytes);
    placed.push_back(i);
  }
  return result;
}

// Free stretches of the arena, by offset and by size.
class FreeList {
 public:
  // The smallest stretch that is large enough, else the end of the arena.
  int64_t take(int64_t bytes) {
    auto found = by_size_.lower_bound({bytes, 0});
    if (found == by_size_.end()) {
      const int64_t offset = end_;
      end_ += bytes;
      return offset;
    }
    const auto [size, offset] = *found;
    remove(offset, size);
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }

  void give_back(int64_t offset, int64_t bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      bytes += next->second;
      remove(next->first, next->second);
    }
    next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto [before, size] = *std::prev(next);
      if (before + size == offset) {
        remove(before, size);
        offset = before;
        bytes += size;
      }
    }
    add(offset, bytes);
  }

  int64_t end() const { return end_; }

 private:
  void add(int64_t offset, int64_t size) {
    by_offset_[offset] = size;
    by_size_.insert({size, offset});
  }
  void remove(int64_t offset, int64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  std::map<int64_t, int64_t> by_offset_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t end_ = 0;
};

// In order of time, each in the smallest stretch that is free then.
Placement place_by_time(const std::vector<Lifetime>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return buffers[a].first < buffers[b].first; });
  Placement result{std::vector<int64_t>(buffers.size()), 0};
  FreeList free;
  std::multimap<int, size_t> alive;  // by last step
  for (size_t i : order) {
    while (!alive.empty() && alive.begin()->first < buffers[i].first) {
      const size_t dead = alive.begin()->second;
      alive.erase(alive.begin());
      if (buffers[dead].bytes.value() > 0) free.give_back(result.offsets[dead], aligned(buffers[dead].bytes.value()));
    }
    const int64_t bytes = aligned(buffers[i].bytes.value());
    result.offsets[i] = bytes > 0 ? free.take(bytes) : 0;
    alive.emplace(buffers[i].last, i);
  }
  result.total = free.end();
  return result;
}

struct Slot {
  Dim bytes;
  int last;  // step until which it is taken
};

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> fixed, symbolic;
  for (size_t i = 0; i < lifetimes.size(); ++i) (lifetimes[i].bytes.is_const() ? fixed : symbolic).push_back(i);

  std::vector<Lifetime> buffers;
  for (size_t i : fixed) buffers.push_back(lifetimes[i]);
  const Placement placement = fixed.size() <= kMaxGreedy ? place_by_size(buffers) : place_by_time(buffers);
  for (size_t i = 0; i < fixed.size(); ++i) plan.offsets[fixed[i]] = placement.offsets[i];

  std::stable_sort(symbolic.begin(), symbolic.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].first < lifetimes[b].first; });
  std::vector<Slot> slots;
  std::vector<size_t> slot_of(lifetimes.size());
  for (size_t i : symbolic) {
    const Lifetime& lifetime = lifetimes[i];
    size_t best = slots.size();
    for (size_t s = 0; s < slots.size(); ++s) {
      if (slots[s].last >= lifetime.first) continue;
      const bool equal = slots[s].bytes == lifetime.bytes;
      if (best == slots.size() || equal) best = s;
      if (equal) break;
    }
    if (best == slots.size()) slots.push_back({lifetime.bytes, 0});
    slots[best].bytes = max(slots[best].bytes, lifetime.bytes);
    slots[best].last = lifetime.last;
    slot_of[i] = best;
  }
  std::vector<Dim> slot_offset;
  plan.total = placement.total;
  for (const Slot& slot : slots) {
    slot_offset.push_back(plan.total);
    plan.total = plan.total + aligned(slot.bytes);
  }
  for (size_t i : symbolic) plan.offsets[i] = slot_offset[slot_of[i]];
  return plan;
}

}  // namespace treadle::lower
