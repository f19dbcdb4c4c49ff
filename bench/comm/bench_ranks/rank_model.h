/* What ranks learn in these benchmarks: a DLRM of bench/dlrm_case.h, its tables spread by one kind of plan,
 * or a multi-layer perceptron over dense features alone, which has nothing but gradients to exchange. Batches
 * are made beforehand. */
#ifndef PH_BENCH_RANK_MODEL_H
#define PH_BENCH_RANK_MODEL_H

#include "comm/collective/comm.h"
#include "plan/plan.h"

#define RANK_MODEL_DENSE "dense"

/* The perceptron, which bench/peers/torch_ranks.py is told as well. */
enum { DENSE_FEATURES = 1024, DENSE_LAYERS = 3, DENSE_BATCH = 2048 };
extern const int64_t dense_units[DENSE_LAYERS];

size_t rank_model_batch(const char *name); /* samples of a step, of all ranks; 0: there is no such model */

/* What a rank is told. */
struct rank_settings {
    const char *model; /* RANK_MODEL_DENSE or a case of the DLRM's */
    enum ph__shard_kind kind;
    enum ph_wire_format wire; /* of vectors and of all gradients */
    size_t threads;
    bool tells_operators; /* at the end, on standard error: where the latest steps' time went in each rank */
};

/* Has taken a step of every batch. comm: borrowed; a world of one learns all of it alone. */
struct rank_model;
struct rank_model *rank_model_create(const struct rank_settings *settings, struct ph_comm *comm);
void rank_model_destroy(struct rank_model *model);

/* Seconds of that many steps. overlaps: as parallel.overlap; both ways learn the same parameters. */
double rank_model_train(struct rank_model *model, bool overlaps, size_t count);
/* The step of which rank_model_train was told last. */
struct step;
const struct step *rank_model_step(const struct rank_model *model);

#endif
