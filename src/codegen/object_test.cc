// SPDX-License-Identifier: Apache-2.0
// Targets, objects and shared objects: what they need from outside, that they are the same each time, other processors.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "codegen/test_runtime.h"
#include "loop/scalar.h"
#include "loop/stmt.h"

namespace treadle::codegen {
namespace {

using loop::Expr;

// Names that an ELF object expects from outside.
std::vector<std::string> undefined_symbols(const Bytes& object) {
  std::vector<std::string> names;
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), object.data() + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type != SHT_SYMTAB) continue;
    for (uint64_t at = sizeof(Elf64_Sym); at < section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, object.data() + section.sh_offset + at, sizeof symbol);
      if (symbol.st_shndx == SHN_UNDEF)
        names.emplace_back(object.data() + sections[section.sh_link].sh_offset + symbol.st_name);
    }
  }
  return names;
}

// Every operation that exists for `dtype`, on vectors of `lanes`.
std::vector<loop::Function> all_operations(DType dtype, int lanes) {
  std::vector<loop::Function> functions;
  const Expr index = lanes == 1 ? Expr(0) : loop::ramp(Expr(0), Expr(1), lanes);
  const loop::Buffer a = loop::make_buffer("a", dtype, {Expr(64)}), b = loop::make_buffer("b", dtype, {Expr(64)});
  const Expr x = loop::load(a, {index}), y = loop::load(b, {index});
  const auto add = [&](const std::string& name, const Expr& value) {
    const loop::Buffer out = loop::make_buffer("out", value.dtype(), {Expr(64)});
    functions.push_back({"f" + std::to_string(functions.size()) + "_" + name,
                         {a, b, out},
                         1,
                         {},
                         loop::store(out, {index}, value),
                         ""});
  };
  for (int op = 0; op <= static_cast<int>(loop::BinaryOp::Ge); ++op) {
    if (loop::binary_function(static_cast<loop::BinaryOp>(op), dtype) != nullptr)
      add("binary", loop::binary(static_cast<loop::BinaryOp>(op), x, y));
  }
  for (int f = 0; f <= static_cast<int>(loop::Intrinsic::Trunc); ++f) {
    const auto function = static_cast<loop::Intrinsic>(f);
    if (loop::intrinsic_function(function, dtype) == nullptr) continue;
    const std::vector<Expr> args{x, y, x};
    add(loop::name_of(function), loop::intrinsic(function, {args.begin(), args.begin() + loop::arity(function)}));
  }
  for (const DType to : all_dtypes()) add("cast", loop::cast(x, to));
  return functions;
}

class ObjectTest : public testing::TestWithParam<const char*> {};

// An exported model must not depend on a C or mathematics library, nor on the compiler's support library.
TEST_P(ObjectTest, NothingIsExpectedFromOutside) {
  const Target target = parse_target(GetParam());
  for (const DType dtype : all_dtypes()) {
    for (const int lanes : {1, target.lanes(static_cast<int>(dtype.bytes()))}) {
      const Bytes object = emit_object(all_operations(dtype, lanes), target);
      EXPECT_EQ(undefined_symbols(object), std::vector<std::string>{}) << to_string(dtype) << " lanes " << lanes;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ObjectTest,
                         testing::Values("llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3", "llvm",
                                         "llvm -mtriple=aarch64-linux-gnu"));

loop::Function add_one() {
  loop::Var i("i");
  const loop::Buffer a = loop::make_buffer("a", dtype::float32_, {Expr(16)}),
                     b = loop::make_buffer("b", dtype::float32_, {Expr(16)});
  const loop::Stmt body =
      loop::for_loop(i, 0, 16, loop::store(b, {i}, loop::load(a, {i}) + loop::constant(1, dtype::float32_)));
  return {"add_one", {a, b}, 1, {}, body, "layer1.add"};
}

TEST(Object, TheSameInputGivesTheSameBytes) {
  const Target target = host_target();
  const Bytes first = emit_object({add_one()}, target);
  EXPECT_EQ(first, emit_object({add_one()}, target));
  const Bytes data = emit_data_object({{"weights", "abc"}}, target);
  EXPECT_EQ(link_shared({first, data}, {"add_one", "weights"}, target),
            link_shared({first, data}, {"add_one", "weights"}, target));
}

TEST(Object, ASharedObjectHasWhatIsExportedAndNoMore) {
  const Target target = host_target();
  const std::string weights = "four score";
  loop::Function hidden = add_one();
  hidden.name = "hidden";
  const Bytes shared = link_shared(
      {emit_object({add_one(), hidden}, target), emit_data_object({{"weights", weights}, {"more", ""}}, target)},
      {"add_one", "weights", "weights_size", "more_size"}, target);
  char path[] = "/tmp/treadle-object-test-XXXXXX";
  const int file = mkstemp(path);
  ASSERT_EQ(write(file, shared.data(), shared.size()), static_cast<ssize_t>(shared.size()));
  close(file);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  unlink(path);
  ASSERT_NE(library, nullptr) << dlerror();
  auto* kernel = reinterpret_cast<TreadleKernel>(dlsym(library, "add_one"));
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(dlsym(library, "hidden"), nullptr);
  const auto* bytes = static_cast<const char*>(dlsym(library, "weights"));
  const auto* size = static_cast<const uint64_t*>(dlsym(library, "weights_size"));
  ASSERT_TRUE(bytes != nullptr && size != nullptr);
  EXPECT_EQ(std::string(bytes, *size), weights);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0u);
  float in[16] = {}, out[16] = {};
  void* buffers[] = {in, out};
  TestContext context;
  EXPECT_EQ(kernel(context.get(), buffers, nullptr), 0);
  EXPECT_EQ(out[15], 1);
  dlclose(library);
}

TEST(Object, AMissingSymbolIsAnErrorOfTheLinker) {
  const Target target = host_target();
  loop::Function main{"main", {}, 0, {}, loop::evaluate(loop::extern_call("kernel:absent", {})), ""};
  EXPECT_EQ(undefined_symbols(emit_object({main}, target)), std::vector<std::string>{"absent"});
  try {
    link_shared({emit_object({main}, target)}, {"main"}, target);
    FAIL() << "linked";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::CodegenUnsupported);
    EXPECT_NE(std::string(error.what()).find("absent"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(link_shared({emit_object({add_one()}, target)}, {"add_one"}, target).empty()) << "the linker runs again";
}

TEST(Object, AxesOfAGpuAreRefused) {
  const loop::Function grid = loop::parse_function(
      "func @grid(%x: float32[8], out %y: float32[8]) { for i from 0 count 8 bind block.x { %y[i] = %x[i] } }");
  try {
    emit_object({grid}, host_target());
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::CodegenUnsupported);
    EXPECT_NE(std::string(error.what()).find("bound to block.x"), std::string::npos) << error.what();
  }
}

TEST(Object, NamesOfTheModelReachTheDebugger) {
  const std::string text = emit_llvm({add_one()}, host_target());
  EXPECT_NE(text.find("DISubprogram(name: \"layer1.add\""), std::string::npos) << text;
  Options plain;
  plain.debug_names = false;
  EXPECT_EQ(emit_llvm({add_one()}, host_target(), plain).find("DISubprogram"), std::string::npos);
}

TEST(Target, WidthFollowsTheFeatures) {
  const Target v4 = parse_target("llvm -mcpu=x86-64-v4"), v3 = parse_target("llvm -mcpu=x86-64-v3"),
               arm = parse_target("llvm -mtriple=aarch64-linux-gnu");
  EXPECT_EQ(v4.vector_bytes, 64);
  EXPECT_EQ(v4.vector_registers, 32);
  EXPECT_TRUE(v4.fma && v4.masked_memory);
  EXPECT_EQ(v3.vector_bytes, 32);
  EXPECT_EQ(v3.vector_registers, 16);
  EXPECT_TRUE(v3.fma);
  EXPECT_EQ(parse_target("llvm -mtriple=x86_64-linux-gnu").vector_bytes, 16);
  EXPECT_FALSE(parse_target("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v3 -mattr=-fma").fma);
  EXPECT_EQ(arm.vector_bytes, 16);
  EXPECT_EQ(arm.vector_registers, 32);
  EXPECT_TRUE(arm.fma);
  EXPECT_GE(host_target().l1_bytes, 16 << 10);
  for (const auto& [text, meaning] : known_targets()) EXPECT_EQ(parse_target(text).text, text) << meaning;
}

TEST(Target, UnknownTextsNameWhatIsNear) {
  const std::pair<const char*, const char*> cases[] = {{"", "empty"},
                                                       {"lvm", "lvm"},
                                                       {"llvm -mcup=native", "-mcpu"},
                                                       {"llvm -mcpu=znver33", "znver3"},
                                                       {"llvm -mcpu", "no value"},
                                                       {"llvm -mtriple=riscv64-linux-gnu", "riscv64"},
                                                       {"llvm -mattr=+avx22", "avx2"},
                                                       {"llvm -mattr=avx2", "sign"},
                                                       {"llvm -mtriple=aarch64-linux-gnu -mcpu=skylake", "skylake"}};
  for (const auto& [text, part] : cases) {
    try {
      parse_target(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::TargetUnknown);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

TEST(Target, ArmGetsVectorInstructions) {
  loop::Var i("i");
  const loop::Buffer a = loop::make_buffer("a", dtype::float32_, {Expr(64)}),
                     b = loop::make_buffer("b", dtype::float32_, {Expr(64)});
  const Expr at = loop::ramp(i * Expr(4), Expr(1), 4), x = loop::load(a, {at});
  const loop::Function f{"square", {a, b}, 1, {}, loop::for_loop(i, 0, 16, loop::store(b, {at}, x * x + x)), ""};
  const std::string text = emit_assembly({f}, parse_target("llvm -mtriple=aarch64-linux-gnu"));
  EXPECT_NE(text.find("fmla"), std::string::npos) << text;
}

}  // namespace
}  // namespace treadle::codegen
