// SPDX-License-Identifier: Apache-2.0
// treadle ops, treadle passes, treadle targets: what the registries hold.
#include <cstdio>

#include "cli/command.h"
#include "codegen/codegen.h"
#include "driver/listing.h"
#include "op/register.h"

namespace treadle::cli {

void add_ops(CLI::App& app) {
  auto* command = app.add_subcommand("ops", with_example("Lists the operators.", "treadle ops nn.conv2d"));
  struct Flags {
    std::string name;
    bool json = false, markdown = false;
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("NAME", flags->name, "show one operator in full");
  command->add_flag("--json", flags->json, "print JSON");
  command->add_flag("--markdown", flags->markdown, "print the page docs/operators.md");
  command->callback([flags] {
    op::register_operators();
    std::string text;
    if (flags->json) text = operators_json(flags->name);
    else if (flags->markdown) text = operators_markdown();
    else text = operators_text(flags->name);
    std::fputs(text.c_str(), stdout);
  });
}

void add_passes(CLI::App& app) {
  auto* command = app.add_subcommand("passes", with_example("Lists the passes over the graph IR and the default pipeline.", "treadle passes"));
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "print the page docs/passes.md");
  command->callback([markdown] { std::fputs(passes_text(*markdown).c_str(), stdout); });
}

void add_targets(CLI::App& app) {
  auto* command = app.add_subcommand("targets", with_example("Lists what code can be generated for.", "treadle targets"));
  command->callback([] {
    for (const auto& [name, sentence] : codegen::known_targets()) std::printf("%-34s %s\n", name.c_str(), sentence.c_str());
    const Target host = codegen::host_target();
    std::printf("\nthis machine: %s, %d-byte vectors, %d registers, L1 %lld KiB, L2 %lld KiB, L3 %lld KiB\n", host.cpu.c_str(), host.vector_bytes, host.vector_registers,
                static_cast<long long>(host.l1_bytes >> 10), static_cast<long long>(host.l2_bytes >> 10), static_cast<long long>(host.l3_bytes >> 10));
  });
}

}  // namespace treadle::cli
