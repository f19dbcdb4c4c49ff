/* Models of these benchmarks: a DLRM of bench/dlrm_case.h, its tables spread by one kind of plan, or a
 * multi-layer perceptron over dense features alone, which only exchanges gradients. Batches are made
 * beforehand. */
#ifndef PH_BENCH_RANK_MODEL_H
#define PH_BENCH_RANK_MODEL_H

#include "comm/collective/comm.h"
#include "plan/plan.h"

#define RANK_MODEL_DENSE "dense"

/* The perceptron; bench/peers/torch_ranks.py is given these numbers as well. */
enum { DENSE_FEATURES = 1024, DENSE_LAYERS = 3, DENSE_BATCH = 2048 };
extern const int64_t dense_units[DENSE_LAYERS];

size_t rank_model_batch(const char *name); /* samples of a step, of all ranks; 0: unknown model */

/* Settings of a rank. */
struct rank_settings {
    const char *model; /* RANK_MODEL_DENSE or a case of dlrm_case.h */
    enum ph__shard_kind kind;
    enum ph_wire_format wire; /* for vectors and for all gradients */
    size_t threads;
    bool tells_operators; /* at the end, on standard error: the times of the latest steps' operators in each
                             rank */
};

/* Creates the model, and takes a step of every batch. comm: borrowed; in a world of one it trains alone. */
struct rank_model;
struct rank_model *rank_model_create(const struct rank_settings *settings, struct ph_comm *comm);
void rank_model_destroy(struct rank_model *model);

/* Returns the seconds of `count` steps. overlaps: as parallel.overlap; both train the same parameters. */
double rank_model_train(struct rank_model *model, bool overlaps, size_t count);
/* Returns the step that rank_model_train used last. */
struct step;
const struct step *rank_model_step(const struct rank_model *model);

#endif
