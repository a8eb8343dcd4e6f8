// SPDX-License-Identifier: Apache-2.0
#include "type/layout.h"

#include <cctype>

#include <set>

namespace treadle {

Layout::Layout(std::string_view text) : text_(text) {
  int64_t factor = 0;
  for (char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c))) {
      factor = factor * 10 + (c - '0');
      if (factor > 1 << 20) fail(ErrorCode::Parse, "layout \"{}\": the factor is too large", text);
    } else if (std::isupper(static_cast<unsigned char>(c))) {
      if (factor) fail(ErrorCode::Parse, "layout \"{}\": a factor stands before the primal axis {}", text, c);
      if (index_of(c) >= 0) fail(ErrorCode::Parse, "layout \"{}\": axis {} occurs twice", text, c);
      axes_.push_back({c, 0});
    } else if (std::islower(static_cast<unsigned char>(c))) {
      if (!factor) fail(ErrorCode::Parse, "layout \"{}\": inner axis {} needs a factor", text, c);
      axes_.push_back({c, factor});
      factor = 0;
    } else {
      fail(ErrorCode::Parse, "layout \"{}\": unexpected character '{}'", text, c);
    }
  }
  if (factor) fail(ErrorCode::Parse, "layout \"{}\" ends with a factor", text);
  for (const Axis& axis : axes_) {
    if (!axis.primal() && index_of(axis.primal_name()) < 0)
      fail(ErrorCode::Parse, "layout \"{}\": inner axis {} without axis {}", text, axis.name, axis.primal_name());
  }
}

int Layout::index_of(char name) const {
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int64_t Layout::block_of(char primal) const {
  int64_t block = 1;
  for (const Axis& axis : axes_) {
    if (!axis.primal() && axis.primal_name() == primal) block *= axis.factor;
  }
  return block;
}

Layout Layout::primal() const {
  std::string letters;
  for (const Axis& axis : axes_) {
    if (axis.primal()) letters += axis.name;
  }
  return Layout(letters);
}

bool Layout::convertible_to(const Layout& other) const {
  const std::string a = primal().text(), b = other.primal().text();
  return std::set<char>(a.begin(), a.end()) == std::set<char>(b.begin(), b.end());
}

LayoutMap::LayoutMap(Layout from, Layout to) : from_(std::move(from)), to_(std::move(to)) {
  if (!from_.convertible_to(to_))
    fail(ErrorCode::InvalidArgument, "layout {} has other axes than {}", from_.text(), to_.text());
}

Shape LayoutMap::forward_shape(const Shape& shape) const {
  if (shape.size() != from_.rank())
    fail(ErrorCode::InvalidArgument, "layout {} needs rank {}, shape is {}", from_.text(), from_.rank(),
         to_string(shape));
  for (size_t i = 0; i < shape.size(); ++i) {
    const Layout::Axis& axis = from_.axes()[i];
    if (!axis.primal() && !shape[i].is(axis.factor)) {
      fail(ErrorCode::InvalidArgument, "layout {}: axis {} has extent {}, not {}", from_.text(), axis.name,
           to_string(shape[i]), axis.factor);
    }
  }
  Shape result;
  for (const Layout::Axis& axis : to_.axes()) {
    if (!axis.primal()) {
      result.push_back(axis.factor);
      continue;
    }
    Dim extent = shape[from_.index_of(axis.name)] * from_.block_of(axis.name);
    result.push_back(ceildiv(extent, to_.block_of(axis.name)));
  }
  return result;
}

}  // namespace treadle
