// SPDX-License-Identifier: Apache-2.0
// The importer's rules: for each (domain, operator, first operator set) a function that turns a node into expressions.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "import/onnx/node.h"

namespace treadle::onnx {

// Gives the outputs in order; fewer than the node has is an error when one of the others is wanted.
using Rule = std::function<std::vector<ir::Expr>(Node&)>;
// Gives the outputs' values when they can be told at import, else nullopt: then the rule runs.
using FoldRule = std::function<std::optional<std::vector<Known>>(Node&)>;

class RuleTable {
 public:
  static const RuleTable& instance();
  // `since` are the first operator sets of the versions that this rule reads; every version of an operator is listed.
  void add(const std::string& op_type, std::initializer_list<int64_t> since, Rule rule, const std::string& domain = "");
  void fold(const std::string& op_type, FoldRule rule) { folds_[op_type] = std::move(rule); }
  // The rule of the newest version that is not newer than `opset`; null when there is none.
  const Rule* find(const std::string& domain, const std::string& op_type, int64_t opset) const;
  const FoldRule* find_fold(const std::string& op_type) const;
  // The operators of `domain`, for hints.
  bool has_any(const std::string& domain, const std::string& op_type) const;
  std::vector<std::pair<std::pair<std::string, std::string>, int64_t>> all() const;

 private:
  std::map<std::pair<std::string, std::string>, std::map<int64_t, Rule>> rules_;
  std::map<std::string, FoldRule> folds_;
};

// One function for each file of rules.
void add_math_rules(RuleTable& table);
void add_activation_rules(RuleTable& table);
void add_convolution_rules(RuleTable& table);
void add_pooling_rules(RuleTable& table);
void add_normalization_rules(RuleTable& table);
void add_matrix_rules(RuleTable& table);
void add_reduction_rules(RuleTable& table);
void add_shape_rules(RuleTable& table);
void add_index_rules(RuleTable& table);
void add_creation_rules(RuleTable& table);
void add_control_rules(RuleTable& table);
void add_quantize_rules(RuleTable& table);
void add_resize_rules(RuleTable& table);
void add_loss_rules(RuleTable& table);
void add_vision_rules(RuleTable& table);
void add_recurrent_rules(RuleTable& table);
void add_fold_rules(RuleTable& table);

// ---- What rules share ----

// `axis` counted from the front. Errors: ImportFormat when it is outside of the rank.
int64_t axis_of(const Node& node, int64_t axis, size_t rank);
// All of them, in the order given. Errors: as axis_of, and ImportFormat for a repeated one.
ir::Ints axes_of(const Node& node, const ir::Ints& axes, size_t rank);

}  // namespace treadle::onnx
