/* Ids with the reuse of production tables. */
#ifndef PH_BENCH_IDS_H
#define PH_BENCH_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

/* Returns how often a named row is named, on average, among `num_ids` ids of one table and batch. Source: the
 * reuse statistics that accompany the dlrm_datasets of 2021 (856 tables, batches of 65,536: 1.04 M ids a
 * table, 6.9 a distinct row). A smaller batch is that one thinned: a row named c times there is named here
 * with probability 1 - (1 - p)^c, p the share of ids kept; with the published histogram of c that gives 1.31
 * for 2,048 ids, 1.74 for 20,480, 1.99 for 40,960. */
double bench_reuse(size_t num_ids);

/* A power law over `rows` rows: rank r has weight r^-exponent. The exponent, from 0 (uniform) to 3, is the
 * one by which num_ids ids come closest to naming num_ids / reuse distinct rows. A fixed shuffle maps ranks
 * to rows, so that frequent rows are not neighbours. */
struct bench_ids {
    size_t rows;
    double exponent;
    double *cumulative; /* (rows) share of the ids that ranks up to this one take */
    uint32_t *row_of_rank;
};
void bench_ids_init(struct bench_ids *ids, size_t rows, size_t num_ids, double reuse); /* reuse 0: uniform */
void bench_ids_fini(struct bench_ids *ids);
uint32_t bench_ids_draw(const struct bench_ids *ids, struct ph__rng_sequence *rng);

#endif
