// SPDX-License-Identifier: Apache-2.0
#include "lower/program.h"

#include "lower/kernel.h"
#include "lower/main_builder.h"
#include "lower/step_builder.h"

namespace treadle::lower {

Program lower(const ir::Module& module, const Scheduler& schedule, const LowerOptions& options) {
  Program program;
  tensors_of(module.main().body.type());  // a result that is no tensor is refused
  StepBuilder builder(schedule, options);
  Steps steps = builder.build(module.main(), program);
  build_main(steps, std::move(builder.storages()), options, program);
  return program;
}

}  // namespace treadle::lower
