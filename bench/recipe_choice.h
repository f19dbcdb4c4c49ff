/* Chooses recipes of a program's products by their times on this machine, as phloem precision does where
 * errors are small. */
#ifndef PH_BENCH_RECIPE_CHOICE_H
#define PH_BENCH_RECIPE_CHOICE_H

#include "phloem/graph.h"

enum { BENCH_MOST_SITES = 64 };

struct recipe_choice {
    struct ph_site_recipe recipes[BENCH_MOST_SITES];
    size_t count;
};

/* rows: of a call. Forward products are timed as scorers make them, backward ones only where is_training. */
void recipe_choice_make(struct recipe_choice *choice, const struct ph_program *program, size_t threads,
    size_t rows, bool is_training);

/* Prints "top.0.weight int8/fp32" for each site that is not fp32. */
void recipe_choice_print(const struct recipe_choice *choice);

#endif
