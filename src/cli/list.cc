// SPDX-License-Identifier: Apache-2.0
// treadle ops, treadle passes, treadle targets: what the registries hold.
#include <cstdio>

#include "cli/command.h"
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
    if (flags->json)
      text = operators_json(flags->name);
    else if (flags->markdown)
      text = operators_markdown();
    else
      text = operators_text(flags->name);
    std::fputs(text.c_str(), stdout);
  });
}

void add_passes(CLI::App& app) {
  auto* command = app.add_subcommand(
      "passes", with_example("Lists the passes over the graph IR and the default pipeline.", "treadle passes"));
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "print the page docs/passes.md");
  command->callback([markdown] { std::fputs(passes_text(*markdown).c_str(), stdout); });
}

void add_errors(CLI::App& app) {
  auto* command = app.add_subcommand("errors", with_example("Lists the codes of errors.", "treadle errors"));
  auto markdown = std::make_shared<bool>(false);
  command->add_flag("--markdown", *markdown, "print the page docs/errors.md");
  command->callback([markdown] { std::fputs(errors_text(*markdown).c_str(), stdout); });
}

void add_targets(CLI::App& app) {
  auto* command =
      app.add_subcommand("targets", with_example("Lists what code can be generated for.", "treadle targets"));
  command->callback([] { std::fputs(targets_text().c_str(), stdout); });
}

}  // namespace treadle::cli
