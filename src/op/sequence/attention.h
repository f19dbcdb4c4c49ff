/* What attention's two operators share: which samples there are, and where their rows are. */
#ifndef PH_OP_ATTENTION_H
#define PH_OP_ATTENTION_H

#include "op/operator.h"

enum { PH_ATTENTION_Q, PH_ATTENTION_K, PH_ATTENTION_V, PH_ATTENTION_BAGS, PH_ATTENTION_NUM_INPUTS };

/* The samples of a call whose q, k, v and bags, which may be absent, stand at `inputs`. */
struct ph_attention_samples {
    size_t num_samples;
    const uint32_t *bags; /* (num_samples + 1): the keys of each; NULL: each has args.num_keys */
    bool is_self;         /* the queries are the bags' items, too; else each sample has args.num_queries */
    struct ph_attention_args args; /* what is alike in all samples, and the arrays of all */
};
struct ph_attention_samples ph__attention_samples(
    const struct ph_operand *inputs, const struct ph_attention_options *options);

/* Pairs of a query and a key, over all samples and heads; histories that attend to themselves count as equally long. */
double ph__attention_pairs(const struct ph_operand *inputs, const struct ph_attention_options *options);

/* Runs the kernel on each sample. */
void ph__attention_run(const struct ph_backend *backend, const struct ph_attention_samples *samples,
    void (*kernel)(const struct ph_attention_args *args));

#endif
