// SPDX-License-Identifier: Apache-2.0
// The order in which the nodes of a graph are imported.
#include <queue>

#include "import/onnx/graph_importer.h"

namespace treadle::onnx {
namespace {

// Adds the names that the graph uses and does not define. Nesting is bounded by the reader (model.cc), so recursion is
// safe.
void add_captured(const onnxpb::GraphProto& graph, std::set<std::string>& names);

void add_used(const onnxpb::NodeProto& node, std::set<std::string>& names) {
  for (const std::string& input : node.input()) {
    if (!input.empty()) names.insert(input);
  }
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) add_captured(attribute.g(), names);
    for (const auto& graph : attribute.graphs()) add_captured(graph, names);
  }
}

void add_captured(const onnxpb::GraphProto& graph, std::set<std::string>& names) {
  std::set<std::string> used, defined;
  for (const auto& input : graph.input()) defined.insert(input.name());
  for (const auto& tensor : graph.initializer()) defined.insert(tensor.name());
  for (const auto& node : graph.node()) {
    add_used(node, used);
    defined.insert(node.output().begin(), node.output().end());
  }
  for (const auto& output : graph.output()) used.insert(output.name());
  for (const std::string& name : used) {
    if (!defined.count(name)) names.insert(name);
  }
}

}  // namespace

std::set<std::string> used_names(const onnxpb::NodeProto& node) {
  std::set<std::string> names;
  add_used(node, names);
  return names;
}

std::vector<const onnxpb::NodeProto*> ordered_nodes(
    const google::protobuf::RepeatedPtrField<onnxpb::NodeProto>& nodes) {
  std::unordered_map<std::string, size_t> maker;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].output()) {
      if (output.empty()) continue;
      const auto [found, inserted] = maker.emplace(output, i);
      if (!inserted)
        fail(ErrorCode::ImportFormat, "the value \"{}\" is made by node \"{}\" ({}) and by node \"{}\" ({})",
             printable(output), node_name(nodes[static_cast<int>(found->second)]),
             printable(nodes[static_cast<int>(found->second)].op_type()), node_name(nodes[i]),
             printable(nodes[i].op_type()));
    }
  }
  const auto count = static_cast<size_t>(nodes.size());
  std::vector<std::vector<size_t>> users(count);
  std::vector<size_t> waiting(count, 0);
  bool sorted = true;
  for (size_t i = 0; i < count; ++i) {
    std::set<size_t> makers;
    for (const std::string& name : used_names(nodes[static_cast<int>(i)])) {
      const auto found = maker.find(name);
      if (found != maker.end()) makers.insert(found->second);
    }
    for (const size_t from : makers) {
      users[from].push_back(i);
      ++waiting[i];
      sorted &= from < i;
    }
  }
  std::vector<const onnxpb::NodeProto*> result;
  if (sorted) {
    for (const auto& node : nodes) result.push_back(&node);
    return result;
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i) {
    if (waiting[i] == 0) ready.push(i);
  }
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    result.push_back(&nodes[static_cast<int>(i)]);
    for (const size_t user : users[i]) {
      if (--waiting[user] == 0) ready.push(user);
    }
  }
  if (result.size() == count) return result;
  // What is left are cycles and what hangs behind them; going back along the waiting makers ends in a cycle.
  std::vector<size_t> maker_of(count, count);
  for (size_t i = 0; i < count; ++i) {
    for (const size_t user : users[i]) {
      if (waiting[i] > 0 && waiting[user] > 0) maker_of[user] = i;
    }
  }
  size_t at = 0;
  while (waiting[at] == 0) ++at;
  for (size_t step = 0; step < count; ++step) at = maker_of[at];
  const auto& node = nodes[static_cast<int>(at)];
  throw Error(ErrorCode::ImportFormat, "the graph has a cycle: a node uses its own result")
      .at(fmt::format("node \"{}\" ({})", node_name(node), printable(node.op_type())));
}

}  // namespace treadle::onnx
