/* The page of a plan, or of two that are compared: each rank's time as a stacked bar, and what costs most. */
#ifndef PH_CLI_PLAN_PAGE_H
#define PH_CLI_PLAN_PAGE_H

#include "cli/plan/planning.h"

/* Writes the page (report/page.h). PH_ERROR_DISK, PH_ERROR_MEMORY. */
ph_status cli_plan_page_write(const struct cli_planning *planning, const char *path);

#endif
