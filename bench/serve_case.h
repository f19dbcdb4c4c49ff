/* A DLRM to serve: 13 dense features, 26 tables, bottom 512-256, top 512-256-1, with random weights, and rows
 * as Criteo has them. */
#ifndef PH_BENCH_SERVE_CASE_H
#define PH_BENCH_SERVE_CASE_H

#include "base/memory/arena.h"
#include "phloem/data.h"

enum {
    SERVE_NUM_DENSE = 13,
    SERVE_NUM_SPARSE = 26,
    SERVE_NUM_COLUMNS = SERVE_NUM_DENSE + SERVE_NUM_SPARSE,
    SERVE_NUM_ROWS = 4096,
};

struct serve_rows {
    struct ph_cell cells[SERVE_NUM_ROWS * SERVE_NUM_COLUMNS];
    char texts[SERVE_NUM_ROWS * SERVE_NUM_SPARSE][9]; /* that the cells point to */
};

/* Makes rows of mostly small counts, and of ids from a power law, each a hash of its rank; malloc'ed. */
struct serve_rows *serve_rows_make(void);

/* Sizes of a model's tables, and the seed of its weights. */
struct serve_model {
    size_t dim, table_rows;
    uint64_t seed;
    bool is_lean; /* layers of block norm and hard swish, without biases but the logits' */
};

/* Makes a folder with the files that phloem train makes, with initial weights. */
void serve_folder_make(struct ph__arena *arena, const char *folder, const struct serve_model *model);

/* Makes such a folder of any config. */
void serve_folder_make_of(struct ph__arena *arena, const char *folder, const char *config, uint64_t seed);

/* The rows as the model reads them. */
struct serve_encoded {
    float dense[SERVE_NUM_ROWS][SERVE_NUM_DENSE];
    int64_t ids[SERVE_NUM_ROWS][SERVE_NUM_SPARSE];
};

/* Writes model.onnx into the model's folder, for peers, which read encoded rows; malloc'ed. */
struct serve_encoded *serve_peer_make(
    struct ph__arena *arena, const char *folder, const struct serve_rows *rows);

/* Writes model.onnx, dense.npy and ids.npy, what bench/peers/onnxruntime.py reads. */
void serve_peer_files(struct ph__arena *arena, const char *folder, const struct serve_rows *rows);

/* Returns the path of a file in a folder, in the arena. */
const char *serve_path(struct ph__arena *arena, const char *folder, const char *name);

#endif
