// SPDX-License-Identifier: Apache-2.0
// Compiled functions against the interpreter: memory accesses, lazy selects, loops, buffers, and calls out of `main`.
#include <gtest/gtest.h>

#include <numeric>

#include "codegen/test_runtime.h"
#include "loop/stmt.h"

namespace treadle::codegen {
namespace {

using namespace loop;  // NOLINT(google-build-using-namespace): these tests are written in loop IR
using treadle::Tensor;

const DType kFloat = dtype::float32_;

Tensor counted(std::vector<int64_t> shape) {
  Tensor tensor(kFloat, std::move(shape));
  std::iota(tensor.values<float>().begin(), tensor.values<float>().end(), 1.0f);
  return tensor;
}

// Runs `function` compiled and interpreted, the last buffer being the output of `shape`, and compares all bytes. Gives
// the context.
TestContext check(const Function& function, std::vector<Tensor> inputs, std::vector<int64_t> shape,
                  std::vector<int64_t> scalars = {}, const char* target_text = "llvm -mcpu=native") {
  const Target target = parse_target(target_text);
  const DType dtype = function.buffers.back()->dtype;
  Tensor got = Tensor::zeros(dtype, shape), wanted = Tensor::zeros(dtype, shape);
  std::vector<Tensor> args = inputs;
  args.push_back(got);
  inputs.push_back(wanted);
  interpret(function, inputs, scalars);
  TestContext context;
  for (int level : {0, 3}) {
    Options options;
    options.opt_level = level;
    Jit jit = compile({function}, target, options);
    TestContext fresh;
    EXPECT_EQ(run(jit, function.name, fresh, args, scalars), 0) << fresh.failure;
    EXPECT_TRUE(got.identical(wanted)) << "at level " << level << "\n"
                                       << to_string(function) << emit_llvm({function}, target);
    EXPECT_EQ(fresh.allocated, fresh.released);
    context = fresh;
  }
  return context;
}

Expr lanes8(Expr base, int64_t stride = 1) { return ramp(std::move(base), Expr(stride), 8); }

TEST(Jit, SymbolicExtentsAreScalars) {
  Var n("n"), i("i");
  Buffer a = make_buffer("a", kFloat, {n}), b = make_buffer("b", kFloat, {n});
  Function f{"twice", {a, b}, 1, {n}, for_loop(i, 0, n, store(b, {i}, load(a, {i}) * constant(2, kFloat))), ""};
  for (int64_t size : {0, 1, 37}) check(f, {counted({size})}, {size}, {size});
}

TEST(Jit, StridedLoadsAndStores) {
  for (int64_t stride : {-2, -1, 0, 1, 2, 3, 4, 5}) {
    Buffer a = make_buffer("a", kFloat, {Expr(64)}), b = make_buffer("b", kFloat, {Expr(64)});
    const Expr from = lanes8(Expr(stride < 0 ? 63 : 0), stride),
               to = stride == 0 ? lanes8(3) : lanes8(Expr(stride < 0 ? 40 : 2), stride);
    check({"strided", {a, b}, 1, {}, store(b, {to}, load(a, {from})), ""}, {counted({64})}, {64});
  }
}

TEST(Jit, LinearIndicesAreFound) {
  // a[r, 2 * (c + lane) - c - lane]: the ramp hides in arithmetic, and is contiguous.
  Buffer a = make_buffer("a", kFloat, {Expr(4), Expr(16)}), b = make_buffer("b", kFloat, {Expr(4), Expr(8)});
  Var r("r");
  const Expr index = lanes8(3) * broadcast(Expr(2), 8) - lanes8(3);
  Function f{"linear",
             {a, b},
             1,
             {},
             for_loop(r, 0, 4, store(b, {broadcast(r, 8), lanes8(0)}, load(a, {broadcast(r, 8), index}))),
             ""};
  check(f, {counted({4, 16})}, {4, 8});
  EXPECT_EQ(emit_llvm({f}, host_target()).find("gather"), std::string::npos);
}

TEST(Jit, GatherByAnIndexTensor) {
  Buffer a = make_buffer("a", kFloat, {Expr(16)}), p = make_buffer("p", dtype::int32_, {Expr(8)}),
         b = make_buffer("b", kFloat, {Expr(8)});
  const Expr at = cast(load(p, {lanes8(0)}), dtype::int64_);
  Function f{"gather", {a, p, b}, 1, {}, store(b, {lanes8(0)}, load(a, {at})), ""};
  check(f, {counted({16}), Tensor::from<int32_t>({3, 15, 0, 0, 7, 8, 2, 1})}, {8});
}

// Zero padding: the load outside is not made (with one lane and vectors), whichever side holds it.
TEST(Jit, SelectDoesNotLoadWhatIsNotChosen) {
  for (const char* target : {"llvm -mcpu=native", "llvm -mcpu=x86-64-v3", "llvm"}) {
    Buffer a = make_buffer("a", kFloat, {Expr(8)}), b = make_buffer("b", kFloat, {Expr(24)});
    Var i("i");
    const Expr inside = i >= Expr(8) && i < Expr(16);
    Function scalar{"pad",
                    {a, b},
                    1,
                    {},
                    for_loop(i, 0, 24, store(b, {i}, select(inside, load(a, {i - Expr(8)}), constant(0, kFloat)))),
                    ""};
    check(scalar, {counted({8})}, {24}, {}, target);
    const Expr x = ramp(i * Expr(8) + Expr(4), Expr(1), 8);
    const Expr in = x >= broadcast(Expr(8), 8) && x < broadcast(Expr(16), 8);
    for (int64_t stride : {1, -1}) {
      const Expr index = stride == 1 ? x - broadcast(Expr(8), 8) : broadcast(Expr(15), 8) - x;
      const Expr value = stride == 1
                             ? select(in, load(a, {index}), broadcast(constant(-1, kFloat), 8))
                             : select(!in, broadcast(constant(-1, kFloat), 8), load(a, {index}) + load(a, {index}));
      check({"vector_pad", {a, b}, 1, {}, for_loop(i, 0, 2, store(b, {x}, value)), ""}, {counted({8})}, {24}, {},
            target);
    }
  }
}

TEST(Jit, SelectOnValuesLoadedAnywayNeedsNoBranch) {
  Buffer a = make_buffer("a", kFloat, {Expr(32)}), b = make_buffer("b", kFloat, {Expr(32)});
  Var i("i");
  const Expr x = load(a, {i}), again = load(a, {i});  // equal, not shared
  Function f{"leaky",
             {a, b},
             1,
             {},
             for_loop(i, 0, 32, store(b, {i}, select(x > constant(5, kFloat), x, again * constant(0.5, kFloat)))),
             ""};
  check(f, {counted({32})}, {32});
  Options none;
  none.opt_level = 0;
  EXPECT_EQ(emit_llvm({f}, host_target(), none).find("select.yes"), std::string::npos);
}

TEST(Jit, LocalBuffersBecomeRegisters) {
  Buffer a = make_buffer("a", kFloat, {Expr(64), Expr(16)}), b = make_buffer("b", kFloat, {Expr(16)});
  Buffer sums = make_buffer("sums", kFloat, {Expr(2), Expr(8)}, Scope::Local);
  Var k("k");
  std::vector<Stmt> start, step, end;
  for (int v = 0; v < 2; ++v) {
    const std::vector<Expr> at{broadcast(Expr(v), 8), lanes8(0)};
    start.push_back(store(sums, at, broadcast(constant(0, kFloat), 8)));
    step.push_back(store(sums, at, load(sums, at) + load(a, {broadcast(k, 8), lanes8(8 * v)})));
    end.push_back(store(b, {lanes8(8 * v)}, load(sums, at)));
  }
  Function f{
      "columns", {a, b}, 1, {}, allocate(sums, block({block(start), for_loop(k, 0, 64, block(step)), block(end)})), ""};
  check(f, {counted({64, 16})}, {16});
  EXPECT_EQ(emit_llvm({f}, host_target()).find("alloca"), std::string::npos);
}

TEST(Jit, ParallelLoopsCaptureWhatTheyUse) {
  Var n("n"), i("i"), j("j"), twice("twice");
  Buffer a = make_buffer("a", kFloat, {n, Expr(4)}), b = make_buffer("b", kFloat, {n, Expr(4)});
  Buffer scratch = make_buffer("scratch", kFloat, {Expr(4)}, Scope::Scratch);
  Stmt inner = block({for_loop(j, 0, 4, store(scratch, {j}, load(a, {i, j}) + cast(twice, kFloat)), ForKind::Parallel),
                      for_loop(j, 0, 4, store(b, {i, Expr(3) - j}, load(scratch, {j})))});
  Stmt body = let(twice, n * Expr(2), for_loop(i, Expr(0), n, allocate(scratch, inner), ForKind::Parallel));
  for (int64_t rows : {0, 2, 7, 100}) {
    const TestContext context = check({"rows", {a, b}, 1, {n}, body, ""}, {counted({rows, 4})}, {rows, 4}, {rows});
    EXPECT_EQ(context.parallel_loops, 1);
  }
}

TEST(Jit, LargeScratchComesFromTheContext) {
  Var n("n"), i("i");
  Buffer a = make_buffer("a", kFloat, {n}), b = make_buffer("b", kFloat, {n}),
         big = make_buffer("big", kFloat, {n, Expr(3)}, Scope::Scratch);
  Stmt body = allocate(big, block({for_loop(i, 0, n, store(big, {i, Expr(1)}, load(a, {i}))),
                                   for_loop(i, 0, n, store(b, {i}, load(big, {n - Expr(1) - i, Expr(1)})))}));
  Function f{"reversed", {a, b}, 1, {n}, body, ""};
  EXPECT_EQ(check(f, {counted({50})}, {50}, {50}).allocated, 1);
  Jit jit = compile({f}, host_target());
  TestContext poor;
  poor.memory_limit = 100;
  std::vector<Tensor> args{counted({50}), counted({50})};
  EXPECT_EQ(run(jit, "reversed", poor, args, {50}), 7);
  EXPECT_NE(poor.failure.find("out of memory for buffer \"big\""), std::string::npos) << poor.failure;
}

TEST(Jit, WhileAndIf) {
  // The number of Collatz steps of each element.
  const DType integer = dtype::int64_;
  Buffer a = make_buffer("a", integer, {Expr(30)}), b = make_buffer("b", integer, {Expr(30)}),
         x = make_buffer("x", integer, {Expr(1)}, Scope::Scratch);
  Var i("i");
  const Expr value = load(x, {Expr(0)});
  Stmt step = block({if_then(floormod(value, 2) == Expr(0), store(x, {Expr(0)}, floordiv(value, 2)),
                             store(x, {Expr(0)}, value * Expr(3) + Expr(1))),
                     store(b, {i}, load(b, {i}) + Expr(1))});
  Stmt body = allocate(x, for_loop(i, 0, 30,
                                   block({store(x, {Expr(0)}, load(a, {i})), store(b, {i}, Expr(0)),
                                          while_loop(load(x, {Expr(0)}) > Expr(1), step)})));
  std::vector<int64_t> in(30);
  std::iota(in.begin(), in.end(), 1);
  check({"collatz", {a, b}, 1, {}, body, ""}, {Tensor::from<int64_t>(in)}, {30});
}

TEST(Jit, ViewsShowTheMemoryOfAnotherBuffer) {
  Buffer arena = make_buffer("arena", dtype::uint8_, {Expr(256)}), b = make_buffer("b", kFloat, {Expr(8)});
  auto view = std::make_shared<BufferNode>();
  view->name = "view";
  view->dtype = kFloat;
  view->shape = {Expr(8)};
  view->scope = Scope::View;
  view->base = arena;
  view->base_offset = Expr(64);
  Tensor memory = Tensor::zeros(dtype::uint8_, {256});
  for (int k = 0; k < 8; ++k)
    reinterpret_cast<float*>(static_cast<char*>(memory.data()) + 64)[k] = static_cast<float>(k);
  Var i("i");
  Function f{"read_view",
             {arena, b},
             1,
             {},
             for_loop(i, 0, 8, store(b, {i}, load(view, {i}) + constant(1, kFloat)), ForKind::Parallel),
             ""};
  Jit jit = compile({f}, host_target());
  std::vector<Tensor> args{memory, Tensor::zeros(kFloat, {8})};
  TestContext context;
  ASSERT_EQ(run(jit, "read_view", context, args), 0);
  for (int k = 0; k < 8; ++k) EXPECT_EQ(args[1].at(k), k + 1);
}

TEST(Jit, NanPassesThroughMinAndMax) {
  Buffer a = make_buffer("a", kFloat, {Expr(8)}), b = make_buffer("b", kFloat, {Expr(8)});
  const Expr x = load(a, {lanes8(0)}), zero = broadcast(constant(0, kFloat), 8),
             six = broadcast(constant(6, kFloat), 8);
  Tensor in = Tensor::from<float>({NAN, -1, 0, 3, 7, INFINITY, -INFINITY, NAN});
  Function relu6{"relu6", {a, b}, 1, {}, store(b, {lanes8(0)}, min(max(x, zero), six)), ""};
  check(relu6, {in}, {8});
  const std::string text = emit_assembly({relu6}, parse_target("llvm -mcpu=x86-64-v3"));
  EXPECT_NE(text.find("vmaxps"), std::string::npos);
  EXPECT_EQ(text.find("vcmp"), std::string::npos) << "with a constant, one instruction keeps NaN";
  check({"other", {a, b}, 1, {}, store(b, {lanes8(0)}, max(x, load(a, {lanes8(7, -1)}))), ""}, {in}, {8});
}

TEST(Jit, CallsOfMain) {
  Var n("n"), i("i");
  Buffer a = make_buffer("a", kFloat, {n}), b = make_buffer("b", kFloat, {n}),
         results = make_buffer("results", dtype::int64_, {Expr(1)});
  Function kernel{"kernel", {a, b}, 1, {n}, for_loop(i, 0, n, store(b, {i}, load(a, {i}) + constant(1, kFloat))), ""};
  const Expr from = address(a, {Expr(0)}), to = address(b, {Expr(0)});
  Stmt body = block(
      {evaluate(extern_call("profile", {Expr(3), Expr(1)})), evaluate(extern_call("kernel:kernel", {from, to, n})),
       evaluate(extern_call("profile", {Expr(3), Expr(0)})),
       evaluate(extern_call("runtime:negate", {Expr(1), address(b, {Expr(0)}), Expr(1), address(b, {Expr(0)}), Expr(2),
                                               Expr(11), n, address(results, {Expr(0)})})),
       if_then(n > Expr(5), evaluate(extern_call("fail:more than five", {})))});
  Function main{"main", {a, b, results}, 2, {n}, body, ""};
  Jit jit = compile({kernel, main}, host_target());
  TestContext context;
  context.kernels["negate"] = [](TreadleContext*, const TreadleTensorRef* in, int32_t num_in,
                                 const TreadleTensorRef* out, int32_t num_out, const int64_t* params,
                                 int32_t num_params, int64_t* result) -> int32_t {
    if (num_in != 1 || num_out != 1 || num_params != 2 || params[0] != 11 || in->rank != 1 || out->bits != 32 ||
        out->type_code != 2)
      return 9;
    for (int64_t k = 0; k < in->shape[0]; ++k)
      static_cast<float*>(out->data)[k] = -static_cast<const float*>(in->data)[k];
    *result = params[1] * 100;
    return 0;
  };
  std::vector<Tensor> args{counted({4}), counted({4}), Tensor::zeros(dtype::int64_, {1})};
  ASSERT_EQ(run(jit, "main", context, args, {4}), 0) << context.failure;
  for (int k = 0; k < 4; ++k) EXPECT_EQ(args[1].at(k), -(k + 2));
  EXPECT_EQ(args[2].int_at(0), 400);
  EXPECT_EQ(context.marks, (std::vector<std::pair<int32_t, int32_t>>{{3, 1}, {3, 0}}));
  std::vector<Tensor> longer{counted({6}), counted({6}), Tensor::zeros(dtype::int64_, {1})};
  EXPECT_EQ(run(jit, "main", context, longer, {6}), 7);
  EXPECT_EQ(context.failure, "more than five");
  context.kernels.clear();
  EXPECT_EQ(run(jit, "main", context, args, {4}), 7);
  EXPECT_EQ(context.failure, "this runtime has no kernel \"negate\"");
}

TEST(Jit, AnUnknownNameIsAnError) {
  Jit jit(host_target());
  EXPECT_THROW(jit.lookup("nothing"), Error);
}

}  // namespace
}  // namespace treadle::codegen
