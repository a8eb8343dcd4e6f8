// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM. The products with the inputs of all times are formed at once; a short sequence is unrolled, a
// longer one or one of symbolic length becomes a Loop. Both directions visit the times in their order, and a time at or
// behind a batch element's length leaves its state as it is, so that the reverse direction of that element begins at
// its last time.
//   X (time, batch, input)   W (directions, G*H, input)   R (directions, G*H, H)   B (directions, 2*G*H)
//   Y (time, directions, batch, H)   Y_h, Y_c (directions, batch, H); layout 1 has the batch first
// Gates: LSTM i o f c, GRU z r h, RNN one. Source: ONNX, opsets 7 to 22.
#include <algorithm>

#include "import/onnx/indices.h"
#include "op/nn/activation.h"
#include "op/tensor/binary.h"
#include "op/tensor/creation.h"
#include "op/tensor/gather.h"
#include "op/tensor/join.h"
#include "op/tensor/reshape.h"
#include "op/tensor/slice.h"
#include "op/tensor/transform.h"
#include "op/tensor/unary.h"

namespace treadle::onnx {
namespace {

using ir::Expr;
using Exprs = std::vector<Expr>;
using Activation = std::function<Expr(const Expr&)>;

constexpr int64_t kMaxUnrolled = 16;

// The functions that recurrent operators may name; alpha and beta are consumed in order by those that have them.
Activation activation(Node& node, const std::string& name, std::vector<double>& alphas, std::vector<double>& betas) {
  const auto next = [](std::vector<double>& values, double default_value) {
    if (values.empty()) return default_value;
    const double value = values.front();
    values.erase(values.begin());
    return value;
  };
  const Node* n = &node;
  if (name == "Sigmoid" || name == "Tanh") {
    const std::string op = name == "Tanh" ? "tanh" : "sigmoid";
    return [n, op](const Expr& x) { return n->call(op, {x}); };
  }
  if (name == "Relu") return [](const Expr& x) { return op::relu(x); };
  if (name == "Softplus") return [](const Expr& x) { return op::softplus(x); };
  if (name == "Softsign") return [n](const Expr& x) { return op::divide(x, op::add(n->call("abs", {x}), 1.0)); };
  if (name == "LeakyRelu") return [a = next(alphas, 0.01)](const Expr& x) { return op::leaky_relu(x, a); };
  if (name == "HardSigmoid") {
    const double a = next(alphas, 0.2), b = next(betas, 0.5);
    return [a, b](const Expr& x) { return op::hard_sigmoid(x, a, b); };
  }
  if (name == "Affine") {
    const double a = next(alphas, 1), b = next(betas, 0);
    return [a, b](const Expr& x) { return op::add(op::multiply(x, a), b); };
  }
  if (name == "ScaledTanh") {
    const double a = next(alphas, 1), b = next(betas, 1);
    return [n, a, b](const Expr& x) { return op::multiply(n->call("tanh", {op::multiply(x, b)}), a); };
  }
  node.unsupported(fmt::format("the activation {}", printable(name)));
}

// What one direction needs.
struct Cell {
  int64_t hidden = 0, gates = 0;
  Expr recurrent;                   // (G*H, H)
  Expr input_bias, recurrent_bias;  // (G*H), or undefined
  Expr peepholes;                   // (3*H), or undefined
  std::vector<Activation> functions;
  double clip = 0;  // 0: none
  bool linear_before_reset = false, input_forget = false;

  Activation f(size_t i) const {
    return [this, i](const Expr& x) { return functions[i](clip > 0 ? op::clip(x, -clip, clip) : x); };
  }
};

Expr slice_last(const Expr& x, int64_t begin, int64_t end) {
  return op::strided_slice(x, {begin}, {end}, ir::Ints{1}, ir::Ints{-1});
}

Expr gate(const Cell& cell, const Expr& x, int64_t i) {
  return cell.gates == 1 ? x : slice_last(x, i * cell.hidden, (i + 1) * cell.hidden);
}

// State: h, and c of LSTM. x: the input's products (batch, G*H), with all biases but those that GRU needs apart.
using Step = std::function<Exprs(const Node&, const Cell&, const Expr& x, const Exprs& state)>;

Exprs rnn_step(const Node& node, const Cell& cell, const Expr& x, const Exprs& state) {
  return {cell.f(0)(op::add(x, node.call("nn.dense", {state[0], cell.recurrent})))};
}

Exprs gru_step(const Node& node, const Cell& cell, const Expr& x, const Exprs& state) {
  const Expr& h = state[0];
  const int64_t H = cell.hidden;
  const auto rows = [&](int64_t begin, int64_t end) {
    return op::strided_slice(cell.recurrent, {begin}, {end}, ir::Ints{1}, ir::Ints{0});
  };
  const Expr two = op::add(slice_last(x, 0, 2 * H), node.call("nn.dense", {h, rows(0, 2 * H)}));
  const Expr z = cell.f(0)(slice_last(two, 0, H)), r = cell.f(0)(slice_last(two, H, 2 * H));
  Expr inner;
  if (cell.linear_before_reset) {
    inner = node.call("nn.dense", {h, rows(2 * H, 3 * H)});
    if (cell.recurrent_bias.defined()) inner = op::add(inner, slice_last(cell.recurrent_bias, 2 * H, 3 * H));
    inner = op::multiply(r, inner);
  } else {
    inner = node.call("nn.dense", {op::multiply(r, h), rows(2 * H, 3 * H)});
    if (cell.recurrent_bias.defined()) inner = op::add(inner, slice_last(cell.recurrent_bias, 2 * H, 3 * H));
  }
  const Expr candidate = cell.f(1)(op::add(slice_last(x, 2 * H, 3 * H), inner));
  const Expr one = node.number(1, h.tensor_type().dtype);
  return {op::add(op::multiply(op::subtract(one, z), candidate), op::multiply(z, h))};
}

Exprs lstm_step(const Node& node, const Cell& cell, const Expr& x, const Exprs& state) {
  const Expr &h = state[0], &c = state[1];
  const Expr all = op::add(x, node.call("nn.dense", {h, cell.recurrent}));
  const auto peep = [&](const Expr& value, int64_t i, const Expr& memory) {
    if (!cell.peepholes.defined()) return value;
    return op::add(value, op::multiply(slice_last(cell.peepholes, i * cell.hidden, (i + 1) * cell.hidden), memory));
  };
  const Expr input = cell.f(0)(peep(gate(cell, all, 0), 0, c));
  const Expr forget = cell.input_forget ? op::subtract(node.number(1, h.tensor_type().dtype), input)
                                        : cell.f(0)(peep(gate(cell, all, 2), 2, c));
  const Expr candidate = cell.f(1)(gate(cell, all, 3));
  const Expr memory = op::add(op::multiply(forget, c), op::multiply(input, candidate));
  const Expr output = cell.f(0)(peep(gate(cell, all, 1), 1, memory));
  return {op::multiply(output, cell.functions[2](memory)), memory};
}

struct Kind {
  int64_t gates;
  size_t states;
  std::vector<std::string> functions;
  Step step;
};

Expr direction_of(const Expr& x, int64_t d) {
  return op::squeeze(op::strided_slice(x, {d}, {d + 1}, ir::Ints{1}, ir::Ints{0}), ir::Ints{0});
}

// The results of one direction: Y (time, batch, H) and the last states.
struct Result {
  Expr y;
  Exprs states;
};

class Sequence {
 public:
  Sequence(const Node& node, const Kind& kind, const Cell& cell, Expr products, Expr lengths, bool reverse)
      : node_(node),
        kind_(kind),
        cell_(cell),
        products_(std::move(products)),
        lengths_(std::move(lengths)),
        reverse_(reverse) {}

  Result run(const Exprs& initial) const {
    const Dim time = products_.tensor_type().shape[0];
    if (!time.is_const() || time.value() > kMaxUnrolled) return loop(initial, time);
    Exprs states = initial, outputs(static_cast<size_t>(time.value()));
    if (outputs.empty()) {
      const TensorType& state = initial[0].tensor_type();
      return {op::zeros({0, state.shape[0], state.shape[1]}, state.dtype), initial};
    }
    for (int64_t i = 0; i < time.value(); ++i) {
      const int64_t t = reverse_ ? time.value() - 1 - i : i;
      outputs[static_cast<size_t>(t)] = advance(ir::constant(Tensor::from<int64_t>({t}, {})), states);
    }
    return {op::stack(outputs, 0), states};
  }

 private:
  // Replaces the states by those after time t; gives Y at t.
  Expr advance(const Expr& t, Exprs& states) const {
    const Exprs next = kind_.step(node_, cell_, op::take(products_, t, 0), states);
    if (!lengths_.defined()) {
      states = next;
      return next[0];
    }
    const Expr live = op::expand_dims(node_.call("less", {op::cast(t, lengths_.tensor_type().dtype), lengths_}), 1);
    for (size_t i = 0; i < states.size(); ++i) states[i] = op::where(live, next[i], states[i]);
    return op::where(live, next[0], node_.number(0, next[0].tensor_type().dtype));
  }

  Result loop(const Exprs& initial, const Dim& time) const {
    Exprs params = {ir::var("i", tensor_type({}, dtype::int64_))}, states;
    for (size_t i = 0; i < initial.size(); ++i) {
      params.push_back(ir::var(fmt::format("state_{}", i), initial[i].type()));
      states.push_back(params.back());
    }
    const Expr last = extent_value(time - 1, dtype::int64_);
    const Expr y = advance(reverse_ ? op::subtract(last, params[0]) : params[0], states);
    Exprs results = states;
    results.push_back(y);
    const Expr loop = ir::loop(extent_value(time, dtype::int64_), Expr(), ir::function(params, ir::tuple(results)),
                               initial, 1, node_.span());
    Result result;
    for (size_t i = 0; i < initial.size(); ++i) result.states.push_back(ir::tuple_get(loop, static_cast<int>(i)));
    result.y = ir::tuple_get(loop, static_cast<int>(initial.size()));
    if (reverse_) result.y = node_.call("reverse", {result.y}, {{"axis", int64_t{0}}});
    result.y = with_rows(result.y, time);
    return result;
  }

  const Node& node_;
  const Kind& kind_;
  const Cell& cell_;
  Expr products_, lengths_;
  bool reverse_;
};

std::vector<Cell> read_cells(Node& node, const Kind& kind, int64_t directions, int64_t hidden) {
  std::vector<double> alphas = node.floats("activation_alpha"), betas = node.floats("activation_beta");
  std::vector<std::string> names = node.strings("activations");
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), kind.functions.begin(), kind.functions.end());
  }
  if (names.size() != kind.functions.size() * static_cast<size_t>(directions))
    node.malformed(fmt::format("{} activations", names.size()));
  const double clip = node.f("clip", 0);
  const bool linear = kind.gates == 3 && node.flag("linear_before_reset");
  const bool coupled = kind.gates == 4 && node.flag("input_forget");
  std::vector<Cell> cells;
  for (int64_t d = 0; d < directions; ++d) {
    Cell cell;
    cell.hidden = hidden;
    cell.gates = kind.gates;
    cell.recurrent = direction_of(node.input(2), d);
    cell.clip = clip;
    cell.linear_before_reset = linear;
    cell.input_forget = coupled;
    if (node.has(3)) {
      const Expr both = direction_of(node.input(3), d);
      cell.input_bias = slice_last(both, 0, kind.gates * hidden);
      cell.recurrent_bias = slice_last(both, kind.gates * hidden, 2 * kind.gates * hidden);
    }
    if (kind.gates == 4 && node.has(7)) cell.peepholes = direction_of(node.input(7), d);
    for (size_t i = 0; i < kind.functions.size(); ++i)
      cell.functions.push_back(
          activation(node, names[static_cast<size_t>(d) * kind.functions.size() + i], alphas, betas));
    cells.push_back(std::move(cell));
  }
  return cells;
}

// (time, batch, G*H): the inputs times W, with the biases that do not need the state.
Expr input_products(Node& node, const Kind& kind, const Cell& cell, const Expr& x, int64_t d) {
  Expr products = node.call("nn.dense", {x, direction_of(node.input(1), d)});
  if (!cell.input_bias.defined()) return products;
  products = op::add(products, cell.input_bias);
  if (kind.gates != 3) return op::add(products, cell.recurrent_bias);
  const Expr zero = op::zeros({cell.hidden}, products.tensor_type().dtype);
  return op::add(products, op::concatenate({slice_last(cell.recurrent_bias, 0, 2 * cell.hidden), zero}, 0));
}

int64_t count_directions(Node& node, const std::string& direction) {
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    node.malformed(fmt::format("direction is \"{}\"", printable(direction)));
  return direction == "bidirectional" ? 2 : 1;
}

void check_weights(Node& node, const Kind& kind, int64_t directions, int64_t hidden) {
  const Shape &x = node.shape(0), &w = node.shape(1), &r = node.shape(2);
  if (x.size() != 3 || w.size() != 3 || r.size() != 3) node.malformed("X, W and R must have 3 axes");
  if (!w[0].is(directions) || !w[1].is(kind.gates * hidden) || !r[0].is(directions) || !r[1].is(kind.gates * hidden) ||
      !r[2].is(hidden))
    node.malformed(fmt::format("W {} and R {} do not fit {} directions of {} hidden units", to_string(w), to_string(r),
                               directions, hidden));
  if (node.has(3) &&
      !(node.rank(3) == 2 && node.shape(3)[0].is(directions) && node.shape(3)[1].is(2 * kind.gates * hidden)))
    node.malformed(fmt::format("B is {}", to_string(node.shape(3))));
}

Exprs recurrent(Node& node, const Kind& kind) {
  const std::string direction = node.s("direction", "forward");
  const int64_t directions = count_directions(node, direction);
  if (node.rank(2) != 3 || !node.shape(2)[2].is_const()) node.unsupported("weights of unknown shape");
  const int64_t hidden = node.shape(2)[2].value();
  if (node.i("hidden_size", hidden) != hidden)
    node.malformed(fmt::format("hidden_size is {}, R has {}", node.i("hidden_size", hidden), hidden));
  check_weights(node, kind, directions, hidden);
  const bool batch_first = node.opset() >= 14 && node.i("layout", 0) == 1;
  const auto swapped = [&](const Expr& x) { return batch_first ? op::transpose(x, ir::Ints{1, 0, 2}) : x; };
  const Expr x = swapped(node.input(0));
  const Dim batch = x.tensor_type().shape[1];
  const Expr lengths = node.has(4) ? node.input(4) : Expr();
  const std::vector<Cell> cells = read_cells(node, kind, directions, hidden);
  std::vector<Exprs> last(kind.states);
  Exprs outputs;
  for (int64_t d = 0; d < directions; ++d) {
    const Cell& cell = cells[static_cast<size_t>(d)];
    Exprs initial;
    for (size_t s = 0; s < kind.states; ++s) {
      initial.push_back(node.has(5 + s) ? direction_of(swapped(node.input(5 + s)), d)
                                        : op::zeros({batch, hidden}, node.dtype(0)));
    }
    const Sequence sequence(node, kind, cell, input_products(node, kind, cell, x, d), lengths,
                            direction == "reverse" || d == 1);
    const Result result = sequence.run(initial);
    outputs.push_back(result.y);
    for (size_t s = 0; s < kind.states; ++s) last[s].push_back(result.states[s]);
  }
  Expr y = op::stack(outputs, 1);
  if (batch_first) y = op::transpose(y, ir::Ints{2, 0, 1, 3});
  Exprs results = {y};
  for (const Exprs& states : last) results.push_back(op::stack(states, batch_first ? 1 : 0));
  return results;
}

Rule rule_of(Kind kind) {
  return [kind = std::move(kind)](Node& node) { return recurrent(node, kind); };
}

}  // namespace

void add_recurrent_rules(RuleTable& table) {
  table.add("RNN", {7, 14, 22}, rule_of({1, 1, {"Tanh"}, rnn_step}));
  table.add("GRU", {7, 14, 22}, rule_of({3, 1, {"Sigmoid", "Tanh"}, gru_step}));
  table.add("LSTM", {7, 14, 22}, rule_of({4, 2, {"Sigmoid", "Tanh", "Tanh"}, lstm_step}));
}

}  // namespace treadle::onnx
