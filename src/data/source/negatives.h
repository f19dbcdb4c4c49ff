/* Which rows take part in a pass: all, or of those whose first label is 0 a share, drawn anew by every epoch. */
#ifndef PH_DATA_NEGATIVES_H
#define PH_DATA_NEGATIVES_H

#include <stdbool.h>

#include "base/rng.h"
#include "data/encode/rows.h"

struct ph__negatives {
    struct ph_rng_key key;
    double rate; /* 1: all are kept */
};

/* rate 0: all are kept. PH_ERROR_USAGE naming the path when it is beyond [0, 1]. */
static inline ph_status ph__negatives_init(
    struct ph__negatives *negatives, const char *path, uint64_t seed, uint64_t epoch, double rate)
{
    *negatives = (struct ph__negatives){
        .key = {seed, epoch, ph__hash_name("data.negatives")}, .rate = rate == 0 ? 1 : rate};
    if (!(negatives->rate > 0 && negatives->rate <= 1)) /* NaN included */
        return ph_fail(
            PH_ERROR_USAGE, "%s: a negative_rate of %g: a share lies between 0 and 1", path, negatives->rate);
    return PH_OK;
}

static inline bool ph__negatives_are_all_kept(const struct ph__negatives *negatives)
{
    return negatives->rate >= 1;
}

/* Whether a row takes part: the data's row of that number, whose first word is its first label. */
static inline bool ph__negatives_keep(const struct ph__negatives *negatives, uint32_t label, uint64_t number)
{
    if (ph__negatives_are_all_kept(negatives) || ph__word_as_float(label) != 0)
        return true;
    return ph__rng_uniform(&negatives->key, number, 0) < negatives->rate;
}

#endif
