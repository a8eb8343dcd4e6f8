// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/rules.h"

#include <algorithm>

#include "op/register.h"

namespace treadle::onnx {

const RuleTable& RuleTable::instance() {
  static const RuleTable table = [] {
    op::register_operators();
    RuleTable result;
    add_math_rules(result);
    add_activation_rules(result);
    add_convolution_rules(result);
    add_pooling_rules(result);
    add_normalization_rules(result);
    add_matrix_rules(result);
    add_reduction_rules(result);
    add_shape_rules(result);
    add_index_rules(result);
    add_creation_rules(result);
    add_control_rules(result);
    add_quantize_rules(result);
    add_resize_rules(result);
    add_loss_rules(result);
    add_vision_rules(result);
    add_recurrent_rules(result);
    add_fold_rules(result);
    return result;
  }();
  return table;
}

void RuleTable::add(const std::string& op_type, std::initializer_list<int64_t> since, Rule rule,
                    const std::string& domain) {
  for (const int64_t version : since) {
    const bool inserted = rules_[{domain, op_type}].emplace(version, rule).second;
    TREADLE_CHECK(inserted, "two rules for {} since {}", op_type, version);
  }
}

const Rule* RuleTable::find(const std::string& domain, const std::string& op_type, int64_t opset) const {
  const auto found = rules_.find({domain, op_type});
  if (found == rules_.end()) return nullptr;
  auto newer = found->second.upper_bound(opset);
  return newer == found->second.begin() ? nullptr : &(--newer)->second;
}

const FoldRule* RuleTable::find_fold(const std::string& op_type) const {
  const auto found = folds_.find(op_type);
  return found == folds_.end() ? nullptr : &found->second;
}

bool RuleTable::has_any(const std::string& domain, const std::string& op_type) const {
  return rules_.count({domain, op_type}) > 0;
}

std::vector<std::pair<std::pair<std::string, std::string>, int64_t>> RuleTable::all() const {
  std::vector<std::pair<std::pair<std::string, std::string>, int64_t>> result;
  for (const auto& [name, versions] : rules_) {
    for (const auto& [since, rule] : versions) result.emplace_back(name, since);
  }
  return result;
}

int64_t axis_of(const Node& node, int64_t axis, size_t rank) {
  const auto extent = static_cast<int64_t>(rank);
  if (axis < -extent || axis >= extent) node.malformed(fmt::format("axis {} is outside of {} axes", axis, rank));
  return axis < 0 ? axis + extent : axis;
}

ir::Ints axes_of(const Node& node, const ir::Ints& axes, size_t rank) {
  ir::Ints result;
  for (const int64_t axis : axes) {
    const int64_t from_front = axis_of(node, axis, rank);
    if (std::find(result.begin(), result.end(), from_front) != result.end())
      node.malformed(fmt::format("axis {} is listed twice", axis));
    result.push_back(from_front);
  }
  return result;
}

}  // namespace treadle::onnx
