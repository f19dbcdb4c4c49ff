/* The cheapest plan of a few tables under a model, for comparison with the search: every plan is tried whose
 * ranks have room. A learnt price of some tables says nothing of the price of more, so that nothing else
 * bounds a branch. */
#ifndef PH_BENCH_PLAN_EXACT_H
#define PH_BENCH_PLAN_EXACT_H

#include "plan_task.h"

enum { PLAN_MOST_WHOLE = 12, PLAN_MOST_CUT = 5 }; /* tables */

/* Returns the optimum's milliseconds by the task's model, of whole tables or of all that the search does with
 * tables: columns or rows in 2, or in as many parts as ranks, or copies. INFINITY: nothing fits. */
double plan_exact(const struct plan_task *task, bool are_whole);
/* Returns the milliseconds of the search's plan, which cuts no tables where they are whole; NAN: none. */
double plan_exact_search(const struct plan_task *task, bool are_whole);
/* Writes the task of whole tables under the analytic model as a program in the LP format, for a solver. */
void plan_exact_write(const struct plan_task *task, const char *path);

#endif
