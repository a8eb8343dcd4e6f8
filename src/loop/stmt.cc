// SPDX-License-Identifier: Apache-2.0
// Builders of statements.
#include "loop/stmt.h"

#include <array>

#include "base/error.h"

namespace treadle::loop {
namespace {

constexpr std::array<const char*, 6> kThreadAxes = {"block.x",  "block.y",  "block.z",
                                                    "thread.x", "thread.y", "thread.z"};

}  // namespace

const char* name_of(ThreadAxis axis) { return kThreadAxes[static_cast<size_t>(axis)]; }

std::optional<ThreadAxis> find_thread_axis(std::string_view name) {
  for (size_t i = 0; i < kThreadAxes.size(); ++i) {
    if (name == kThreadAxes[i]) return static_cast<ThreadAxis>(i);
  }
  return std::nullopt;
}

bool is_thread(ThreadAxis axis) { return axis >= ThreadAxis::ThreadX; }

ForKind bound_to(ThreadAxis axis) {
  return static_cast<ForKind>(static_cast<int>(ForKind::BlockX) + static_cast<int>(axis));
}

std::optional<ThreadAxis> axis_of(ForKind kind) {
  if (kind < ForKind::BlockX) return std::nullopt;
  return static_cast<ThreadAxis>(static_cast<int>(kind) - static_cast<int>(ForKind::BlockX));
}

Stmt store(const Buffer& buffer, std::vector<Expr> indices, Expr value) {
  // The checks of a load hold here too; its lanes are those that the value must have.
  Expr place = load(buffer, indices);
  TREADLE_CHECK(value.dtype() == buffer->dtype, "store of {} into {} of {}", to_string(value.dtype()), buffer->name,
                to_string(buffer->dtype));
  if (value.lanes() == 1) value = broadcast(std::move(value), place.lanes());
  TREADLE_CHECK(value.lanes() == place.lanes(), "store of {} lanes to {} places of {}", value.lanes(), place.lanes(),
                buffer->name);
  return Stmt(std::make_shared<Store>(buffer, std::move(indices), std::move(value)));
}

Stmt for_loop(Var var, Expr min, Expr extent, Stmt body, ForKind kind) {
  TREADLE_CHECK(var.dtype() == dtype::int64_ && min.dtype() == dtype::int64_ && extent.dtype() == dtype::int64_,
                "a bound of the loop over {} is not int64", var.name());
  return Stmt(std::make_shared<For>(std::move(var), std::move(min), std::move(extent), kind, std::move(body)));
}

Stmt while_loop(Expr condition, Stmt body) {
  TREADLE_CHECK(condition.dtype().is_bool() && condition.lanes() == 1, "the condition of a while is {}",
                to_string(condition.dtype()));
  return Stmt(std::make_shared<While>(std::move(condition), std::move(body)));
}

Stmt if_then(Expr condition, Stmt then_body, Stmt else_body) {
  TREADLE_CHECK(condition.dtype().is_bool() && condition.lanes() == 1, "the condition of an if is {}",
                to_string(condition.dtype()));
  if (const int64_t* value = as_int(condition)) {
    if (*value) return then_body;
    return else_body.defined() ? else_body : block({});
  }
  return Stmt(std::make_shared<If>(std::move(condition), std::move(then_body), std::move(else_body)));
}

Stmt let(Var var, Expr value, Stmt body) {
  TREADLE_CHECK(var.dtype() == value.dtype() && var.lanes() == value.lanes(), "{} of {} is bound to {}", var.name(),
                to_string(var.dtype()), to_string(value.dtype()));
  return Stmt(std::make_shared<Let>(std::move(var), std::move(value), std::move(body)));
}

Stmt allocate(const Buffer& buffer, Stmt body) {
  TREADLE_CHECK(buffer->scope != Scope::Param, "{} is a parameter and cannot be allocated", buffer->name);
  return Stmt(std::make_shared<Allocate>(buffer, std::move(body)));
}

Stmt block(std::vector<Stmt> stmts) {
  std::vector<Stmt> flat;
  for (Stmt& stmt : stmts) {
    if (!stmt.defined()) continue;
    if (const auto* inner = stmt.as<Block>())
      flat.insert(flat.end(), inner->stmts.begin(), inner->stmts.end());
    else
      flat.push_back(std::move(stmt));
  }
  if (flat.size() == 1) return flat[0];
  return Stmt(std::make_shared<Block>(std::move(flat)));
}

Stmt evaluate(Expr value) { return Stmt(std::make_shared<Evaluate>(std::move(value))); }

}  // namespace treadle::loop
