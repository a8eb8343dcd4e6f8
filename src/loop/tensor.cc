// SPDX-License-Identifier: Apache-2.0
// Tensor expressions. A load names only a buffer; a table from buffers to the tensors that own them (entries leave with
// their tensor) finds the definition, and the load's buffer handle shares ownership of the tensor, so the definition
// outlives its users.
#include "loop/tensor.h"

#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "loop/stmt.h"

namespace treadle::loop {
namespace {

struct OwnerTable {
  std::mutex mutex;
  std::unordered_map<const BufferNode*, std::weak_ptr<const TensorNode>> owners;
};

OwnerTable& owner_table() {
  static OwnerTable& table = *new OwnerTable();  // never destroyed: tensors in other statics unregister late
  return table;
}

Tensor make_tensor(std::unique_ptr<TensorNode> node) {
  std::shared_ptr<const TensorNode> shared(node.release(), [](const TensorNode* dead) {
    {
      std::lock_guard<std::mutex> lock(owner_table().mutex);
      owner_table().owners.erase(dead->buffer.get());
    }
    delete dead;
  });
  std::lock_guard<std::mutex> lock(owner_table().mutex);
  owner_table().owners[shared->buffer.get()] = shared;
  return Tensor(shared);
}

Tensor owner_of(const BufferNode* buffer) {
  std::lock_guard<std::mutex> lock(owner_table().mutex);
  auto it = owner_table().owners.find(buffer);
  return it == owner_table().owners.end() ? Tensor() : Tensor(it->second.lock());
}

class InputCollector : public ExprVisitor {
 public:
  std::vector<Tensor> inputs;

 protected:
  void visit_expr(const Expr& expr) override {
    if (const auto* l = expr.as<Load>(); l && found_.insert(l->buffer.get()).second) {
      Tensor tensor = owner_of(l->buffer.get());
      TREADLE_CHECK(tensor.defined(), "{} belongs to no tensor", l->buffer->name);
      inputs.push_back(tensor);
    }
    visit_children(expr);
  }

 private:
  std::unordered_set<const BufferNode*> found_;
};

std::vector<Var> make_axes(const char* prefix, size_t count) {
  std::vector<Var> axes;
  for (size_t i = 0; i < count; ++i) axes.emplace_back(prefix + std::to_string(i));
  return axes;
}

Tensor define(std::string name, std::vector<Expr> shape, std::vector<Var> axes, Expr value,
              std::optional<Reduction> reduction) {
  TREADLE_CHECK(value.defined() && value.lanes() == 1, "the definition of {} is no scalar", name);
  auto node = std::make_unique<TensorNode>();
  InputCollector collector;
  collector.visit(value);
  if (reduction && reduction->init.defined()) {
    TREADLE_CHECK(reduction->init.dtype() == value.dtype(), "{} starts from {} but combines {}", name,
                  to_string(reduction->init.dtype()), to_string(value.dtype()));
    collector.visit(reduction->init);
  }
  node->buffer = make_buffer(std::move(name), value.dtype(), std::move(shape));
  node->axes = std::move(axes);
  node->value = std::move(value);
  node->reduction = std::move(reduction);
  node->inputs = std::move(collector.inputs);
  return make_tensor(std::move(node));
}

}  // namespace

const std::vector<Expr>& Tensor::shape() const { return node_->buffer->shape; }
DType Tensor::dtype() const { return node_->buffer->dtype; }

Expr Tensor::operator()(std::vector<Expr> indices) const {
  return load(Buffer(node_, node_->buffer.get()), std::move(indices));
}

Tensor placeholder(std::string name, std::vector<Expr> shape, DType dtype) {
  auto node = std::make_unique<TensorNode>();
  node->buffer = make_buffer(std::move(name), dtype, std::move(shape));
  return make_tensor(std::move(node));
}

Tensor compute(std::string name, std::vector<Expr> shape, const std::function<Expr(const std::vector<Var>&)>& f) {
  std::vector<Var> axes = make_axes("i", shape.size());
  Expr value = f(axes);
  return define(std::move(name), std::move(shape), std::move(axes), std::move(value), std::nullopt);
}

Tensor reduce(std::string name, std::vector<Expr> shape, ReduceOp op, std::vector<Expr> extents,
              const std::function<Expr(const std::vector<Var>& i, const std::vector<Var>& k)>& f, Expr init) {
  std::vector<Var> axes = make_axes("i", shape.size());
  std::vector<Var> reduce_axes = make_axes("k", extents.size());
  Expr value = f(axes, reduce_axes);
  Reduction reduction{op, std::move(reduce_axes), std::move(extents), std::move(init)};
  return define(std::move(name), std::move(shape), std::move(axes), std::move(value), std::move(reduction));
}

std::vector<Tensor> topological_order(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> order;
  std::unordered_set<const TensorNode*> entered;
  std::vector<std::pair<Tensor, size_t>> stack;  // a tensor and how many of its inputs are done
  for (const Tensor& output : outputs) {
    if (entered.insert(output.get()).second) stack.emplace_back(output, 0);
    while (!stack.empty()) {
      auto& [tensor, done] = stack.back();
      if (done < tensor->inputs.size()) {
        Tensor input = tensor->inputs[done++];
        if (entered.insert(input.get()).second) stack.emplace_back(input, 0);
      } else {
        order.push_back(tensor);
        stack.pop_back();
      }
    }
  }
  return order;
}

Expr inline_tensor(const Expr& expr, const Tensor& tensor) {
  TREADLE_CHECK(!tensor->is_placeholder() && !tensor->reduction, "{} cannot be inlined: it is an input or a reduction",
                tensor->buffer->name);
  class Inline : public Mutator {
   public:
    explicit Inline(const TensorNode& tensor) : tensor_(tensor) {}

   protected:
    Expr mutate_expr(const Expr& expr) override {
      Expr result = mutate_children(expr);
      const auto* l = result.as<Load>();
      if (!l || l->buffer.get() != tensor_.buffer.get()) return result;
      std::map<const VarNode*, Expr> values;
      for (size_t i = 0; i < l->indices.size(); ++i) values[tensor_.axes[i].var()] = l->indices[i];
      return substitute(tensor_.value, values);
    }

   private:
    const TensorNode& tensor_;
  };
  return Inline(*tensor.get()).mutate(expr);
}

}  // namespace treadle::loop
