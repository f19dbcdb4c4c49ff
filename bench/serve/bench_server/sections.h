/* The sections of the bench, in a file each: rates.c, beside_python.c, reloads.c, pairs.c,
 * survival.c. */
#ifndef PH_BENCH_SECTIONS_H
#define PH_BENCH_SECTIONS_H

#include "trial.h"

/* Measures capacities, times of requests, and overload. */
void measure_rates(struct setting *setting);

/* Measures a server in Python beside ours; nothing without --peers. */
void measure_beside_python(struct setting *setting);

/* Reloads a model of 1 GB under half load. */
void measure_reloads(struct setting *setting, size_t num_reloads);

/* Measures a model that reads what a foundation model said of pairs, beside one without. */
void measure_pairs(struct setting *setting);

/* Kill the server under load, and load it for so long, watching its memory. */
void survive_kills(struct setting *setting, size_t num_kills);
void survive_soak(struct setting *setting, size_t seconds);

#endif
