// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reference page of diag.def; those of operations and passes are in pass/help.c.
#include "driver/command/tables.h"

#include "base/diag.h"

void tir_tables_diagnostics(struct tir_text *out)
{
    static const char *const severities[] = {
        [TIR_ERROR] = "error", [TIR_WARNING] = "warning", [TIR_REMARK] = "remark"};
    tir_text_add(out,
                 STR("# Diagnostic codes\n\nPrinted by `tirc --help-diagnostics`. A code never "
                     "changes its meaning. Examples of each are in `docs/diagnostics.md`.\n\n"
                     "| code | severity | meaning |\n|---|---|---|\n"));
    for (uint32_t i = 0; i < TIR_DIAG_COUNT; i++)
        tir_text_format(out, "| %s | %s | %s |\n", tir_diag_infos[i].code,
                        severities[tir_diag_infos[i].severity], tir_diag_infos[i].title);
}
