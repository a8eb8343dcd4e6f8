// SPDX-License-Identifier: Apache-2.0
#include "lower/template.h"

namespace treadle::lower {

bool schedule_contraction(TemplateContext&, schedule::Stage&) { return false; }

}  // namespace treadle::lower
