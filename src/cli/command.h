// SPDX-License-Identifier: Apache-2.0
// The command `treadle`: one function per subcommand adds it to the parser; what it does runs as a callback.
#pragma once

#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/tensor_file.h"

namespace treadle::cli {

// Parses the arguments, runs the subcommand; gives the exit status: 0, 1 for an error (its text is on stderr) or what
// `check` found, 2 for arguments that no subcommand takes.
int run_command(int argc, char** argv);

void add_run(CLI::App& app);
void add_compile(CLI::App& app);
void add_check(CLI::App& app, int& status);
void add_print(CLI::App& app);
void add_ops(CLI::App& app);
void add_passes(CLI::App& app);
void add_targets(CLI::App& app);
void add_bench(CLI::App& app);
void add_errors(CLI::App& app);

// ---- What several subcommands share. ----

// The options of every subcommand that builds a model.
struct BuildFlags {
  BuildOptions options;
  std::vector<std::string> shapes;  // NAME:1,3,224,224
  std::vector<std::string> disabled, before, after;
  bool no_cache = false, time_passes = false;

  void add_to(CLI::App& command);
  // The options with what the flags say. Errors: InvalidArgument.
  BuildOptions resolve() const;
  // --shape as extents by input name. Errors: InvalidArgument, Parse.
  std::map<std::string, Shape> input_shapes() const;
  // To stderr, when the user asked for it.
  void print_times(const BuildReport& report) const;
  // One of these flags that the user gave; empty: none.
  std::string given() const;

 private:
  std::vector<const CLI::Option*> flags_;
};

// Where the inputs of `run` and `bench` come from.
struct InputFlags {
  std::vector<std::string> inputs;  // NAME=FILE, or FILE alone when there is one input or the file is an .npz
  std::string fill = "random";
  uint64_t seed = 0;
  std::vector<std::string> symbols;  // N=4: extents of symbols for filled inputs
  PictureOptions picture;

  void add_to(CLI::App& command);
  // One tensor per input of the model, in order. Errors: RuntimeInput for names that the model has not; those of
  // reading files.
  std::vector<Tensor> make(const Manifest& manifest) const;
};

// Errors: InvalidArgument when the output is the same file as the input.
void refuse_overwriting(const std::string& output, const std::string& input);

// A description with an example at its end, as every --help has one.
std::string with_example(const std::string& text, const std::string& example);

}  // namespace treadle::cli
