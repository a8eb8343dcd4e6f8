// SPDX-License-Identifier: Apache-2.0
// Data layouts: the order of a tensor's axes and how some are split, "NCHW", "NHWC", "NCHW16c", "OIHW16i16o".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "type/dim.h"

namespace treadle {

// An upper-case letter is a primal axis; a lower-case letter with a factor is the inner part of the primal axis of that
// letter, which then counts blocks. Of one primal axis there may be several inner parts, outermost first
// ("OIHW4i16o4i").
class Layout {
 public:
  struct Axis {
    char name;           // 'C' primal, 'c' its inner part
    int64_t factor = 0;  // extent of an inner part; 0 for a primal axis
    bool primal() const { return factor == 0; }
    char primal_name() const { return static_cast<char>(name >= 'a' ? name - 'a' + 'A' : name); }
    bool operator==(const Axis&) const = default;
  };

  Layout() = default;
  // Errors: Parse for an unknown letter, a repeated primal axis, an inner part without primal axis or without factor.
  explicit Layout(std::string_view text);

  const std::string& text() const { return text_; }
  const std::vector<Axis>& axes() const { return axes_; }
  size_t rank() const { return axes_.size(); }
  bool defined() const { return !axes_.empty(); }
  // Position of the axis 'C' or (first) inner part 'c'; -1 when absent.
  int index_of(char name) const;
  // Product of the factors of the inner parts of primal axis `name`; 1 when it is not split.
  int64_t block_of(char primal) const;
  // The layout with the primal axes only, in their order.
  Layout primal() const;
  // True when both have the same primal axes, so that the one can be transformed into the other.
  bool convertible_to(const Layout& other) const;
  bool operator==(const Layout& other) const { return text_ == other.text_; }

 private:
  std::string text_;
  std::vector<Axis> axes_;
};

// The bijection between positions (and shapes) of two layouts with the same primal axes.
class LayoutMap {
 public:
  // Errors: InvalidArgument when the two are not convertible.
  LayoutMap(Layout from, Layout to);
  const Layout& from() const { return from_; }
  const Layout& to() const { return to_; }

  // Shape in `to` of a tensor with `shape` in `from`. A primal extent that the block does not divide is rounded up: the
  // last block is then padded. Errors: InvalidArgument for a wrong rank or an inner extent that is not its factor.
  Shape forward_shape(const Shape& shape) const;
  // Shape in `from` for a shape in `to`; exact when the blocks divide.
  Shape backward_shape(const Shape& shape) const { return LayoutMap(to_, from_).forward_shape(shape); }

  // Indices in `from` for indices in `to`. Index needs +, * with int64_t, and the two callbacks (a divided by a
  // constant).
  template <typename Index, typename Div, typename Mod>
  std::vector<Index> source_index(const std::vector<Index>& index, Div div, Mod mod) const;

 private:
  Layout from_, to_;
};

// Position of each primal letter as one number, from the indices of a layout's axes.
template <typename Index>
std::vector<std::pair<char, Index>> primal_index(const Layout& layout, const std::vector<Index>& index) {
  std::vector<std::pair<char, Index>> result;
  for (size_t i = 0; i < layout.rank(); ++i) {
    const Layout::Axis& axis = layout.axes()[i];
    if (axis.primal()) result.emplace_back(axis.name, index[i] * layout.block_of(axis.name));
  }
  for (size_t i = 0; i < layout.rank(); ++i) {
    const Layout::Axis& axis = layout.axes()[i];
    if (axis.primal()) continue;
    int64_t step = 1;
    for (size_t j = i + 1; j < layout.rank(); ++j) {
      if (layout.axes()[j].name == axis.name) step *= layout.axes()[j].factor;
    }
    for (auto& [name, value] : result) {
      if (name == axis.primal_name()) value = value + index[i] * step;
    }
  }
  return result;
}

template <typename Index, typename Div, typename Mod>
std::vector<Index> LayoutMap::source_index(const std::vector<Index>& index, Div div, Mod mod) const {
  const auto primal = primal_index(to_, index);
  auto position = [&](char name) {
    for (const auto& [letter, value] : primal) {
      if (letter == name) return value;
    }
    fail(ErrorCode::Internal, "layout {} has no axis {}", to_.text(), name);
  };
  std::vector<Index> result;
  for (size_t i = 0; i < from_.rank(); ++i) {
    const Layout::Axis& axis = from_.axes()[i];
    int64_t inner = 1;  // elements of the primal axis that one step of this axis spans
    for (size_t j = axis.primal() ? 0 : i + 1; j < from_.rank(); ++j) {
      const Layout::Axis& other = from_.axes()[j];
      if (!other.primal() && other.primal_name() == axis.primal_name()) inner *= other.factor;
    }
    Index value = position(axis.primal_name());
    if (inner != 1) value = div(value, inner);
    if (!axis.primal()) value = mod(value, axis.factor);
    result.push_back(value);
  }
  return result;
}

}  // namespace treadle
