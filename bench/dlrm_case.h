/* The DLRM that all benchmarks of models run: 13 dense features, bottom 512-256-dim, top 512-256-1, dot
 * interaction. */
#ifndef PH_BENCH_DLRM_CASE_H
#define PH_BENCH_DLRM_CASE_H

#include <stdbool.h>

#include "phloem/model.h"
#include "phloem/op.h"

#define DLRM_NUM_DENSE 13
#define DLRM_NUM_BATCHES 8

struct dlrm_case {
    const char *name; /* "pool20" */
    size_t tables, rows, dim, pooling, batch;
    bool is_uniform; /* else a power law with production tables' reuse, see ids.h */
};

/* 26 tables x 100k x 64, batch 2048, pooling 1 and 20, ids by reuse and uniform; 26 x 1M x 64, pooling 10,
 * batch 4096. */
extern const struct dlrm_case dlrm_cases[];
extern const size_t dlrm_num_cases;

/* Batches of a case, owned. */
struct dlrm_data {
    struct dlrm_case of;
    struct ph_batch batches[DLRM_NUM_BATCHES];
};
void dlrm_data_init(struct dlrm_data *data, const struct dlrm_case *of);
void dlrm_data_fini(struct dlrm_data *data);
/* Copies the first `samples` of each batch; of.batch becomes that number. */
void dlrm_data_first(const struct dlrm_data *data, size_t samples, struct dlrm_data *first_out);
/* Copies a rank's share of each batch, a global one; of.batch stays. */
void dlrm_data_share(
    const struct dlrm_data *data, size_t rank, size_t world_size, struct dlrm_data *share_out);

/* Writes the case and its batches for peers into a folder, made if missing: case.json, and
 * little-endian arrays dense.f32 (batches,B,13), labels.f32 (batches,B), ids.i64 (batches,tables,B,pooling).
 */
void dlrm_data_write(const struct dlrm_data *data, const char *folder);

/* Build the model's graph. Training: entries forward, backward and update, scalars learning_rate and step,
 * output loss; distribution: spreads it over ranks; NULL: this rank has all of it. Inference: entry forward,
 * output probability. */
struct ph_distribution;
struct ph_program *dlrm_training_program(const struct dlrm_case *of, enum ph_optimizer_kind optimizer,
    enum ph_precision precision, const struct ph_distribution *distribution);
/* Builds one for a rank, in fp32 but for products with recipes. */
struct ph_program *dlrm_recipes_program(const struct dlrm_case *of, enum ph_optimizer_kind optimizer,
    const struct ph_site_recipe *recipes, size_t num_recipes);
/* Builds the same for one rank, with block norm and hard swish in place of ReLU, no biases but the logits'.
 */
struct ph_program *dlrm_lean_program(
    const struct dlrm_case *of, enum ph_optimizer_kind optimizer, enum ph_precision precision);
/* Completes another model to a training program: trains `logits` (B,1), which the builder has, from labels.
 * Destroys the builder. */
struct ph_program *dlrm_learning_program(struct ph_builder *builder, ph_value logits,
    enum ph_optimizer_kind optimizer, const struct ph_distribution *distribution);
struct ph_program *dlrm_inference_program(const struct dlrm_case *of, enum ph_precision precision);

#define DLRM_NUM_PRECISIONS 2
extern const char *const dlrm_precisions[DLRM_NUM_PRECISIONS]; /* names, by enum ph_precision */

/* Returns the embedding table of a store that holds one, (tables * rows, dim). */
ph_real *dlrm_table(const struct ph_store *store);

#endif
