// SPDX-License-Identifier: Apache-2.0
// Text of the loop IR: what prints parses back, and texts that are wrong are errors with a place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "loop/stmt.h"

namespace treadle::loop {
namespace {

using testing::HasSubstr;

void expect_round_trip(const Function& f) {
  const std::string text = to_string(f);
  Function again = parse_function(text);
  EXPECT_EQ(to_string(again), text);
  EXPECT_TRUE(structural_equal(f, again)) << text;
  EXPECT_EQ(structural_hash(f), structural_hash(again));
}

// The files are written as the printer writes, but for comments.
TEST(LoopText, FilesPrintAsTheyAreWritten) {
  const std::filesystem::path folder = std::filesystem::path(TREADLE_SOURCE_DIR) / "src/loop/test";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::stringstream content, code;
    content << file.rdbuf();
    for (std::string line; std::getline(content, line);) {
      if (!line.empty() && line.rfind("//", 0) != 0) code << line << "\n";
    }
    std::string printed;
    for (const Function& f : parse_functions(content.str(), entry.path().string())) {
      verify(f);
      printed += to_string(f);
    }
    EXPECT_EQ(printed, code.str()) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 3);
}

TEST(LoopText, TextRuns) {
  std::ifstream file(std::string(TREADLE_SOURCE_DIR) + "/src/loop/test/vectors.ir");
  std::stringstream content;
  content << file.rdbuf();
  treadle::Tensor x(dtype::float32_, {19}), y(dtype::float32_, {});
  float sum = 0;
  for (int i = 0; i < 19; ++i) {
    x.values<float>()[i] = static_cast<float>(i);
    sum += static_cast<float>(i * i);
  }
  interpret(parse_function(content.str()), {x, y});
  EXPECT_EQ(y.at(0), sum);
}

TEST(LoopText, EveryAxisOfAGrid) {
  const char* names[] = {"block.x", "block.y", "block.z", "thread.x", "thread.y", "thread.z"};
  std::vector<Function> functions;
  for (const char* name : names) {
    functions.push_back(parse_function(fmt::format(
        "func @f(out %a: int64[4]) {{\n  for i from 0 count 4 bind {} {{\n    %a[i] = i\n  }}\n}}\n", name)));
    const Function& f = functions.back();
    const auto axis = axis_of(f.body.as<For>()->for_kind);
    ASSERT_TRUE(axis);
    EXPECT_STREQ(name_of(*axis), name);
    EXPECT_EQ(is_thread(*axis), name[0] == 't');
    EXPECT_EQ(bound_to(*axis), f.body.as<For>()->for_kind);
    EXPECT_THAT(to_string(f), HasSubstr(fmt::format("for i from 0 count 4 bind {} {{", name)));
    expect_round_trip(f);
    verify(f);
    treadle::Tensor a = treadle::Tensor::zeros(dtype::int64_, {4});
    interpret(f, {a});
    EXPECT_EQ(a.at(3), 3);
  }
  for (const Function& a : functions) {
    for (const Function& b : functions) {
      EXPECT_EQ(structural_equal(a, b), &a == &b);
      EXPECT_EQ(structural_hash(a) == structural_hash(b), &a == &b);
    }
  }
}

TEST(LoopText, ConstantsOfEveryDtype) {
  for (DType dtype : all_dtypes()) {
    Buffer out = make_buffer("out", dtype, {8});
    std::vector<Stmt> stmts;
    int64_t at = 0;
    for (ReduceOp op : {ReduceOp::Max, ReduceOp::Min, ReduceOp::Prod})
      stmts.push_back(store(out, {at++}, reduce_identity(op, dtype)));
    if (dtype.is_float()) {
      for (double value : {-0.0, 0.1, 1e-40, std::nan("")})
        stmts.push_back(store(out, {at++}, float_imm(value, dtype)));
    }
    Function f{"f", {out}, 1, {}, {}, {}};
    f.body = block(stmts);
    verify(f);
    expect_round_trip(f);
  }
}

TEST(LoopText, NamesAreMadeUniqueAndValid) {
  Buffer a = make_buffer("a b", dtype::int64_, {4}), b = make_buffer("a_b", dtype::int64_, {4});
  Var i("for"), j("i"), k("i");
  Function f{"odd name \"x\"", {a, b}, 1, {}, {}, "line\nbreak"};
  f.body = for_loop(i, 0, 2, for_loop(j, 0, 2, for_loop(k, 0, 1, store(b, {Expr(i) + j}, load(a, {Expr(j) + k})))));
  expect_round_trip(f);
  EXPECT_THAT(to_string(f), HasSubstr("for i_1 from"));
}

TEST(LoopText, ScopesThatEndBeforeTheirBraces) {
  Buffer out = make_buffer("out", dtype::int64_, {2}), t = make_buffer("t", dtype::int64_, {1}, Scope::Scratch);
  Var v("v");
  Stmt inner = let(v, load(out, {Expr(0)}), store(out, {Expr(1)}, v));
  Function f{"f", {out}, 1, {}, {}, {}};
  f.body = block({inner, allocate(t, store(t, {Expr(0)}, 1)), inner, store(out, {Expr(0)}, 1), inner});
  expect_round_trip(f);
  verify(f);
}

// A tree of this expression would have 2^60 nodes.
TEST(LoopText, SharedExpressionsStayShared) {
  Buffer x = make_buffer("x", dtype::float64_, {}), y = make_buffer("y", dtype::float64_, {});
  Expr e = load(x, {});
  for (int i = 0; i < 60; ++i) e = e * constant(0.5, dtype::float64_) + e;
  Function f{"f", {x, y}, 1, {}, {}, {}};
  f.body = store(y, {}, e);
  expect_round_trip(f);
  verify(f);
  EXPECT_LT(to_string(f).size(), 10000u);
  treadle::Tensor in = treadle::Tensor::scalar(dtype::float64_, 1), out(dtype::float64_, {});
  interpret(f, {in, out});
  EXPECT_NEAR(out.at(0), std::pow(1.5, 60), 1);
}

TEST(LoopText, EqualityIgnoresNamesAndSharingOnly) {
  const char* base = "func @f(%a: int64[4], out %b: int64[4]) { for i from 0 count 4 { %b[i] = %a[i] + 1 } }";
  Function f = parse_function(base);
  auto equal = [&](const char* text) {
    Function g = parse_function(text);
    EXPECT_EQ(structural_equal(f, g), structural_hash(f) == structural_hash(g)) << text;
    return structural_equal(f, g);
  };
  EXPECT_TRUE(equal("func @g(%x: int64[4], out %y: int64[4]) { for j from 0 count 4 { { %y[j] = %x[j] + 1 } } }"));
  EXPECT_FALSE(equal("func @f(%a: int64[4], out %b: int64[4]) { for i from 0 count 4 { %b[i] = %a[i] + 2 } }"));
  EXPECT_FALSE(equal("func @f(%a: int64[4], out %b: int64[4]) { for i from 0 count 4 { %b[i] = %b[i] + 1 } }"));
  EXPECT_FALSE(
      equal("func @f(%a: int64[4], out %b: int64[4]) { for i from 0 count 4 parallel { %b[i] = %a[i] + 1 } }"));
  EXPECT_FALSE(equal("func @f(%a: int64[4], out %b: int64[5]) { for i from 0 count 4 { %b[i] = %a[i] + 1 } }"));
  EXPECT_FALSE(
      equal("func @f(%a: int64[4], out %b: int64[4] align 32) { for i from 0 count 4 { %b[i] = %a[i] + 1 } }"));
  EXPECT_FALSE(equal("func @f(out %a: int64[4], out %b: int64[4]) { for i from 0 count 4 { %b[i] = %a[i] + 1 } }"));
  EXPECT_FALSE(equal("func @f(%a: int64[4], out %b: int64[4]) { for i from 0 count 4 { %b[i] = %a[i] - 1 } }"));
}

struct BadText {
  const char* text;
  const char* message;
  const char* place;
};

TEST(LoopText, WrongTexts) {
  const BadText cases[] = {
      {"func @f(out %a: int64[4]) {\n  %a[0] = b\n}", "variable b is not declared", "text:2:11"},
      {"func @f(out %a: int64[4]) {\n  %b[0] = 1\n}", "buffer %b is not declared", "text:2:3"},
      {"func @f(out %a: int64[M]) { }", "variable M is not declared", "text:1:23"},
      {"func @f(out %a: int64[4]) { %a[0] = 1", "end of text", "text:1:38"},
      {"func @f(out %a: int63[4]) { }", "unknown dtype int63", "text:1:17"},
      {"func @f(out %a: int64[4]) { %a[0] = int8(200) }", "does not fit into int8", "text:1:42"},
      {"func @f(out %a: int64[4]) { %a[0] = 99999999999999999999 }", "no 64-bit integer", "text:1:37"},
      {"func @f(out %a: int64[4]) { %a[0] = 1 + int8(2) }", "+ of int64 and int8", "text:1:39"},
      {"func @f(out %a: int64[4]) { %a[0] = frob(2) }", "unknown function frob", "text:1:37"},
      {"func @f(out %a: int64[4]) { %a[0] = exp(2) }", "exp does not exist for int64", "text:1:37"},
      {"func @f(out %a: int64[4]) { %a[0, 1] = 2 }", "2 indices into a of rank 1", "text:1:29"},
      {"func @f(out %a: int64[4]) { %a[0] = float32(2) }", "store of float32", "text:1:29"},
      {"func @f(out %a: int64[4]) { if (1) { } }", "condition of dtype int64", "text:1:32"},
      {"func @f(out %a: int64[4]) { %a[ramp(0, 1, 0)] = 2 }", "number of lanes", "text:1:43"},
      {"func @f(out %a: int64[4]) { %a[0] = $3 }", "$3 is not defined", "text:1:37"},
      {"func @f(out %a: int64[4]) { # }", "unexpected character '#'", "text:1:29"},
      {"func @\"f", "string without end", "text:1:7"},
      {"func @f(out %a: int64[4], out %a: int64[4]) { }", "declared twice", "text:1:31"},
      {"func @f(out %a: int64[4]) { for i from int8(0) count 4 { } }", "no", "text:1:29"},
      {"func @f(out %a: int64[4]) { for i from 0 count 4 bind warp.x { } }", "unknown axis warp.x", "text:1:55"},
      {"func @f(out %a: int64[4]) { for i from 0 count 4 bind block.w { } }", "unknown axis block.w", "text:1:55"},
      {"func @f(out %a: int64[4]) { for i from 0 count 4 bind { } }", "expected an axis, found '{'", "text:1:55"},
      {"frob", "expected 'func', found 'frob'", "text:1:1"},
  };
  for (const BadText& bad : cases) {
    try {
      parse_functions(bad.text);
      ADD_FAILURE() << "no error: " << bad.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Parse) << error.what();
      EXPECT_THAT(error.message(), HasSubstr(bad.message)) << bad.text;
      ASSERT_FALSE(error.context().empty());
      EXPECT_EQ(error.context()[0], bad.place) << error.what();
    }
  }
}

TEST(LoopText, DeepNestingIsAnError) {
  std::string deep =
      "func @f(out %a: int64[4]) { %a[0] = " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }";
  EXPECT_THROW(parse_function(deep), Error);
  std::string braces = "func @f(out %a: int64[4]) " + std::string(100000, '{');
  EXPECT_THROW(parse_function(braces), Error);
  std::string chain = "func @f(out %a: int64[4]) { %a[0] = 1";
  for (int i = 0; i < 100000; ++i) chain += " + %a[0]";
  EXPECT_THROW(parse_function(chain + " }"), Error);
  std::string aliases = "func @f(out %a: int64[4]) { $0 = %a[0]\n";
  for (int i = 0; i < 100000; ++i) aliases += fmt::format("${} = $0 + 1\n", 0);
  EXPECT_THROW(parse_function(aliases + "%a[0] = $0 }"), Error);
}

}  // namespace
}  // namespace treadle::loop
