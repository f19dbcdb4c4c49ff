/* Requests of the bench, and the scores that their answers have. */
#ifndef PH_BENCH_BODIES_H
#define PH_BENCH_BODIES_H

#include "load.h"
#include "serve_case.h"

enum body_form {
    BODY_BINARY,  /* REST: `lines` as a binary tensor, a binary answer */
    BODY_GRPC,    /* `lines`, raw */
    BODY_COLUMNS, /* REST: a JSON tensor a column */
    BODY_ENCODED, /* JSON of encoded rows, as the peer takes them */
};

struct body_options {
    enum body_form form;
    size_t num_rows; /* of a request; divides SERVE_NUM_ROWS */
    uint64_t timeout_us;
    const struct serve_rows *rows;
    const struct serve_encoded *encoded; /* BODY_ENCODED */
    const float *scores[2];              /* (SERVE_NUM_ROWS) of the model, or of either of two; borrowed */
};

struct bodies {
    struct load_body *items;
    size_t count;
};

/* Makes requests of rows in turn. */
void bodies_make(const struct body_options *options, struct bodies *bodies_out);
void bodies_fini(struct bodies *bodies);

/* Scores the rows by a session of this process: (SERVE_NUM_ROWS), malloc'ed. */
float *bodies_scores(const char *folder, const struct serve_rows *rows);

#endif
