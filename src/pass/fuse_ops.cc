// SPDX-License-Identifier: Apache-2.0
// Groups operators into primitive functions: one kernel each.
//
//   add(relu(nn.conv2d(%x, %w)), %y)   =>   fn (%p0, %p1, %p2, Primitive=1) { add(relu(nn.conv2d(%p0, %p1)), %p2) }(%x,
//   %w, %y)
//
// When:   along the post-dominator tree of each region, by the operators' fusion kinds, as Relay's FuseOps does:
//           an anchor (convolution, dense) takes the elementwise operators behind it;
//           elementwise and broadcast operators join what follows, up to and including a reduction;
//           injective operators (transpose, concatenate) join injective ones.
// Not:    into an anchor (its operands are read many times), operators that need no kernel (Op::joins, Op::splits),
// across control flow, behind a reduction, beyond kMaxGroup operators;
//         at optimisation level 0, and when it is switched off, every operator stays alone.
// Values: equal; nothing is reordered.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/op.h"
#include "ir/visitor.h"
#include "pass/passes.h"

namespace treadle::pass {
namespace {

using ir::Expr;
using ir::FusionKind;

constexpr int kMaxGroup = 64;

FusionKind combine(FusionKind a, FusionKind b) { return std::max(a, b); }

const ir::Call* op_call(const Expr& expr) {
  const auto* call = expr.as<ir::Call>();
  return call && call->op() ? call : nullptr;
}

bool is_scalar_constant(const Expr& expr) {
  const auto* constant = expr.as<ir::Constant>();
  return constant && constant->value.shape().empty();
}

FusionKind kind_of(const ir::Call& call) {
  const ir::Op& op = *call.op();
  // What lowering makes disappear by placing tensors inside one another is better left alone.
  const bool pieces = (op.joins && op.joins(call)) || (op.splits && op.splits(call));
  return op.compute && !pieces ? op.fusion : FusionKind::Opaque;
}

// The arguments of an operator call; the fields instead of a literal tuple, which then belongs to the call.
std::vector<Expr> tensor_operands(const ir::Call& call) {
  std::vector<Expr> operands;
  for (const Expr& arg : call.args) {
    const auto* tuple = call.op()->tuple_input ? arg.as<ir::Tuple>() : nullptr;
    if (tuple)
      operands.insert(operands.end(), tuple->fields.begin(), tuple->fields.end());
    else
      operands.push_back(arg);
  }
  return operands;
}

struct Node {
  Expr expr;
  int region;
  FusionKind kind;
  bool external = false;  // something that is no operator call of its region uses it
  struct Use {
    int consumer;
    FusionKind edge;
  };
  std::vector<Use> uses;
  // Post-dominator tree.
  int dominator = -1;
  int depth = 1;
  FusionKind path = FusionKind::Elementwise;  // strongest edge on the way to the dominator
  // Union-find.
  int parent;
  int size = 1;
  FusionKind group_kind;
};

class Fuser {
 public:
  explicit Fuser(PassContext& context) : context_(context) {}

  Expr run(const Expr& function) {
    collect(function);
    if (context_.opt_level > 0 && !context_.disabled.count("FuseOps")) {
      build_dominators();
      for (int phase = 0; phase < 2; ++phase) {
        for (size_t i = 0; i < nodes_.size(); ++i) fuse(static_cast<int>(i), phase);
      }
    }
    return rebuild(function);
  }

 private:
  // ---- The operator calls of each region (a function body, a branch, a loop body), operands first, with their uses.
  // ----

  void collect(const Expr& root) {
    assign_regions(root);
    find_tuple_users(root);
    find_fused(root);
    ir::post_order(root, [&](const Expr& expr) {
      if (fused_.count(expr.get())) return;
      const ir::Call* call = op_call(expr);
      if (call)
        add_node(expr, *call);
      else
        mark_operands_external(expr);
    });
    if (auto found = index_.find(root.get()); found != index_.end()) nodes_[found->second].external = true;
  }

  // What is in a primitive function already (of a module that was printed behind this pass) stays there.
  void find_fused(const Expr& root) {
    ir::post_order(root, [&](const Expr& expr) {
      const auto* function = expr.as<ir::Function>();
      if (!function || !function->is_primitive()) return;
      fused_.insert(function);
      ir::post_order(function->body, [&](const Expr& inner) { fused_.insert(inner.get()); });
    });
  }

  // A node that two regions reach is used by both; it must not fuse into either.
  void assign_regions(const Expr& root) {
    int next_region = 1;
    std::vector<std::pair<Expr, int>> work = {{root, 0}};
    while (!work.empty()) {
      auto [expr, region] = std::move(work.back());
      work.pop_back();
      auto [found, added] = region_.try_emplace(expr.get(), region);
      if (!added) {
        if (found->second != region) shared_.insert(expr.get());
        continue;
      }
      const auto* branch = expr.as<ir::If>();
      for (const Expr& child : ir::children(expr)) {
        const bool own_region =
            child.as<ir::Function>() || (branch && !child.same_as(branch->condition)) || expr.as<ir::Function>();
        work.emplace_back(child, own_region ? next_region++ : region);
      }
    }
  }

  void add_node(const Expr& expr, const ir::Call& call) {
    const int id = static_cast<int>(nodes_.size());
    Node node;
    node.expr = expr;
    node.region = region_.at(expr.get());
    node.kind = node.group_kind = kind_of(call);
    node.external = shared_.count(expr.get()) > 0;
    node.parent = id;
    for (const Expr& operand : tensor_operands(call)) {
      auto found = index_.find(operand.get());
      if (found == index_.end()) continue;
      Node& producer = nodes_[found->second];
      if (producer.region != node.region) {
        producer.external = true;
        continue;
      }
      const TensorType *from = as_tensor(operand.type()), *to = as_tensor(expr.type());
      const bool same_shape = from && to && equal(tensor_type(from->shape, to->dtype), expr.type());
      producer.uses.push_back(
          {id, node.kind == FusionKind::Broadcast && same_shape ? FusionKind::Elementwise : node.kind});
    }
    for (const Expr& arg : call.args) {
      if (arg.as<ir::Tuple>() && call.op()->tuple_input) continue;
      if (!as_tensor(arg.type())) mark_external(arg);
    }
    index_[expr.get()] = id;
    nodes_.push_back(std::move(node));
  }

  void mark_external(const Expr& expr) {
    if (auto found = index_.find(expr.get()); found != index_.end()) nodes_[found->second].external = true;
  }

  void mark_operands_external(const Expr& expr) {
    // The fields of a tuple that only an operator takes (concatenate) are that operator's operands.
    auto tuple = operator_tuples_.find(expr.get());
    if (tuple != operator_tuples_.end() && tuple->second) return;
    for (const Expr& child : ir::children(expr)) mark_external(child);
  }

  // For every tuple: whether only operators that take a tuple use it.
  void find_tuple_users(const Expr& root) {
    ir::post_order(root, [&](const Expr& user) {
      const ir::Call* call = op_call(user);
      for (const Expr& child : ir::children(user)) {
        if (!child.as<ir::Tuple>()) continue;
        auto [found, added] = operator_tuples_.try_emplace(child.get(), true);
        found->second = found->second && call && call->op()->tuple_input;
      }
    });
    if (root.as<ir::Tuple>()) operator_tuples_[root.get()] = false;
  }

  // ---- Post-dominators: the immediate one is the least common ancestor of all consumers. ----

  void build_dominators() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      Node& node = nodes_[i];
      if (node.external || node.uses.empty()) continue;
      int ancestor = node.uses[0].consumer;
      FusionKind path = node.uses[0].edge;
      for (size_t u = 1; u < node.uses.size() && ancestor >= 0; ++u) {
        path = combine(path, node.uses[u].edge);
        ancestor = common_ancestor(ancestor, node.uses[u].consumer, path);
      }
      node.dominator = ancestor;
      node.path = path;
      node.depth = ancestor >= 0 ? nodes_[ancestor].depth + 1 : 1;
    }
  }

  int common_ancestor(int a, int b, FusionKind& path) const {
    while (a != b) {
      if (a < 0 || b < 0) return -1;
      int& deeper = nodes_[a].depth >= nodes_[b].depth ? a : b;
      path = combine(path, nodes_[deeper].path);
      deeper = nodes_[deeper].dominator;
    }
    return a;
  }

  // ---- Joining groups. ----

  int find(int node) {
    while (nodes_[node].parent != node) node = nodes_[node].parent = nodes_[nodes_[node].parent].parent;
    return node;
  }

  void fuse(int id, int phase) {
    const Node& node = nodes_[id];
    const int sink = node.dominator;
    if (sink < 0 || node.kind == FusionKind::Opaque || find(id) == find(sink)) return;
    const FusionKind group = nodes_[find(id)].group_kind;
    auto up_to = [](FusionKind limit) { return [limit](FusionKind kind, bool) { return kind <= limit; }; };
    if (group == FusionKind::OutFusable) {
      if (phase == 0 && node.path == FusionKind::Elementwise && path_allows(id, sink, up_to(FusionKind::Broadcast)))
        join(id, sink);
    } else if (group <= FusionKind::Broadcast) {
      auto allowed = [](FusionKind kind, bool is_sink) {
        return kind <= FusionKind::Injective || (is_sink && kind == FusionKind::Reduction);
      };
      if (node.path <= FusionKind::Reduction && path_allows(id, sink, allowed)) join(id, sink);
    } else if (group == FusionKind::Injective) {
      if (phase == 1 && node.path <= FusionKind::Injective && path_allows(id, sink, up_to(FusionKind::Injective)))
        join(id, sink);
    }
  }

  // Nodes on any way from `id` to `sink`, sink included; nothing when they are too many for one group.
  std::vector<int> nodes_between(int id, int sink) const {
    std::vector<int> found, work = {id};
    std::unordered_map<int, bool> seen;
    while (!work.empty()) {
      const int current = work.back();
      work.pop_back();
      for (const Node::Use& use : nodes_[current].uses) {
        if (!seen.emplace(use.consumer, true).second) continue;
        if (found.size() >= kMaxGroup) return {};
        found.push_back(use.consumer);
        if (use.consumer != sink) work.push_back(use.consumer);
      }
    }
    return found;
  }

  template <typename Allowed>
  bool path_allows(int id, int sink, Allowed allowed) {
    const std::vector<int> path = nodes_between(id, sink);
    if (path.empty()) return false;
    for (int between : path) {
      if (!allowed(nodes_[find(between)].group_kind, between == sink)) return false;
    }
    return true;
  }

  void join(int id, int sink) {
    std::vector<int> members = nodes_between(id, sink);
    members.push_back(id);
    const int target = find(sink);
    int size = 0;
    std::vector<int> roots;
    for (int member : members) {
      const int root = find(member);
      if (std::find(roots.begin(), roots.end(), root) != roots.end()) continue;
      roots.push_back(root);
      size += nodes_[root].size;
    }
    if (size > kMaxGroup || !context_.allow_rewrite()) return;
    for (int root : roots) {
      if (root == target) continue;
      nodes_[root].parent = target;
      nodes_[target].group_kind = combine(nodes_[target].group_kind, nodes_[root].group_kind);
    }
    nodes_[target].size = size;
  }

  // ---- The new graph: one primitive function in place of each group's last node. ----

  Expr rebuild(const Expr& root) {
    std::unordered_map<int, std::vector<int>> members;
    for (size_t i = 0; i < nodes_.size(); ++i) members[find(static_cast<int>(i))].push_back(static_cast<int>(i));
    std::unordered_map<const ir::ExprNode*, Expr> made;
    ir::post_order(root, [&](const Expr& expr) {
      if (fused_.count(expr.get())) {
        made[expr.get()] = expr;
        return;
      }
      auto found = index_.find(expr.get());
      if (found == index_.end()) {
        made[expr.get()] = rebuild_other(expr, made);
        return;
      }
      const std::vector<int>& group = members.at(find(found->second));
      // Nodes are in topological order: the last one is the group's result.
      if (group.back() == found->second) made[expr.get()] = primitive_call(group, made);
    });
    return made.at(root.get());
  }

  // As ir::with_children, but extents that are known only while running keep their symbols, which the kernels behind
  // mention.
  static Expr with_operands(const Expr& expr, std::vector<Expr> operands) {
    if (const auto* branch = expr.as<ir::If>()) {
      return std::make_shared<ir::If>(operands.at(0), operands.at(1), operands.at(2), branch->type, branch->span);
    }
    if (const auto* item = expr.as<ir::TupleGetItem>())
      return std::make_shared<ir::TupleGetItem>(operands.at(0), item->index, item->type, item->span);
    if (const auto* call = expr.as<ir::Call>()) {
      Expr callee = operands.at(0);
      operands.erase(operands.begin());
      return std::make_shared<ir::Call>(std::move(callee), std::move(operands), call->attrs, call->type, call->span);
    }
    if (expr.as<ir::Loop>()) {
      const Expr rebuilt = ir::with_children(expr, operands);
      const auto* loop = rebuilt.as<ir::Loop>();
      return std::make_shared<ir::Loop>(loop->trip_count, loop->condition, loop->body, loop->initial, loop->num_scanned,
                                        expr.type(), expr->span);
    }
    return ir::with_children(expr, operands);
  }

  static Expr rebuild_other(const Expr& expr, const std::unordered_map<const ir::ExprNode*, Expr>& made) {
    std::vector<Expr> operands;
    for (const Expr& child : ir::children(expr)) {
      auto found = made.find(child.get());
      if (found == made.end()) return expr;  // a tuple that lives inside a group
      operands.push_back(found->second);
    }
    return with_operands(expr, std::move(operands));
  }

  Expr primitive_call(const std::vector<int>& group, const std::unordered_map<const ir::ExprNode*, Expr>& made) const {
    std::unordered_map<const ir::ExprNode*, Expr> inner;
    std::vector<Expr> params, args;
    auto operand = [&](const Expr& expr) {
      if (auto found = inner.find(expr.get()); found != inner.end()) return found->second;
      if (is_scalar_constant(expr)) return inner[expr.get()] = expr;
      Expr param = ir::var(fmt::format("p{}", params.size()), expr.type());
      params.push_back(param);
      args.push_back(made.at(expr.get()));
      return inner[expr.get()] = param;
    };
    Expr result;
    for (int id : group) {
      const Expr& expr = nodes_[id].expr;
      const ir::Call& call = *op_call(expr);
      std::vector<Expr> call_args;
      for (const Expr& arg : call.args) {
        const auto* tuple = call.op()->tuple_input ? arg.as<ir::Tuple>() : nullptr;
        if (!tuple) {
          call_args.push_back(operand(arg));
          continue;
        }
        std::vector<Expr> fields;
        for (const Expr& field : tuple->fields) fields.push_back(operand(field));
        call_args.push_back(ir::tuple(std::move(fields), arg->span));
      }
      result = std::make_shared<ir::Call>(call.callee, std::move(call_args), call.attrs, call.type, call.span);
      inner[expr.get()] = result;
    }
    Expr function =
        ir::function(std::move(params), result, result.type(), {{"Primitive", int64_t{1}}}, {}, result->span);
    return ir::call(function, std::move(args), result->span);
  }

  PassContext& context_;
  std::vector<Node> nodes_;
  std::unordered_map<const ir::ExprNode*, int> index_;
  std::unordered_map<const ir::ExprNode*, int> region_;
  std::set<const ir::ExprNode*> shared_;
  std::unordered_set<const ir::ExprNode*> fused_;
  std::unordered_map<const ir::ExprNode*, bool> operator_tuples_;
};

}  // namespace

ir::Module fuse_ops(const ir::Module& module, PassContext& context) {
  ir::Module result = module;
  for (auto& [name, function] : result.functions) function = Fuser(context).run(function);
  return result;
}

}  // namespace treadle::pass
