/* What prepared data needs to know of an encoded row: how many fixed words, which of them are lengths of lists, and
 * which ids may stand where. Made from an encoder; immutable afterwards, any number of threads may read it. */
#ifndef PH_DATA_PART_LAYOUT_H
#define PH_DATA_PART_LAYOUT_H

#include "data/encode/encoder.h"

struct ph__row_list { /* in the order in which lists lie in a row */
    uint32_t word;    /* the fixed word that is its length */
    uint32_t limit;   /* its ids are below */
    bool is_weighted; /* its ids are followed by as many weights */
};

struct ph__row_layout {
    size_t num_fixed_words;
    uint32_t *limits; /* (num_fixed_words) the word is below; 0: any word */
    struct ph__row_list *lists;
    size_t num_lists;
};

ph_status ph__row_layout_init(struct ph__row_layout *layout, const struct ph_encoder *encoder);
void ph__row_layout_fini(struct ph__row_layout *layout);

/* Streams of a block of such rows: one for each fixed word and each list's ids, and one for weights. */
size_t ph__row_layout_num_streams(const struct ph__row_layout *layout);

#endif
