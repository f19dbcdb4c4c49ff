/* The machine that a plan is made for, by nominal figures. They stand in one table, so that the same command makes the same plan
 * whatever else the machine does, and whichever of its processors a rank gets. */
#ifndef PH_PLAN_PLAN_MACHINE_H
#define PH_PLAN_PLAN_MACHINE_H

#include "plan/plan.h"

/* A row of the table: a figure of links or processors, in bytes a second. */
struct ph_plan_figure {
    const char *name;   /* "two ranks of a host, each way"; static, as `source` */
    double nominal;     /* bytes a second */
    const char *source; /* where the nominal value is from */
    size_t offset;      /* of the double that it fills in struct ph_plan_machine */
};

enum { PH_PLAN_NUM_FIGURES = 3 };
extern const struct ph_plan_figure ph__plan_figures[PH_PLAN_NUM_FIGURES];

/* The machine of the nominal figures, whose ranks may spend rank_bytes each (0: no limit). */
struct ph_plan_machine ph__plan_machine_nominal(uint64_t rank_bytes);

/* Reads and writes what a row of the table says of a machine. */
double ph__plan_machine_figure(const struct ph_plan_machine *machine, const struct ph_plan_figure *figure);
void ph__plan_machine_set(
    struct ph_plan_machine *machine, const struct ph_plan_figure *figure, double bytes_per_s);

#endif
