/* What ranks have to say to the first one beside the steps: texts of any length. */
#ifndef PH_TRAIN_RANK_TEXTS_H
#define PH_TRAIN_RANK_TEXTS_H

#include "comm/collective/comm.h"

/* On the first rank, of each rank's text in their order; the text ends with a NUL behind its `size` bytes and is borrowed. */
typedef ph_status ph__rank_text_reader(void *context, size_t rank, const char *text, size_t size);
/* All ranks call it with a text of their own, the same `what` (which is named when it fails) and, on the first, a reader. However
 * many there are, nobody is waited for longer than one of them takes. What the reader fails with ends the job of all;
 * PH_ERROR_MEMORY; errors of ph__comm_wait. */
ph_status ph__rank_texts_read(struct ph_comm *comm, const char *what, const char *text, size_t size,
    ph__rank_text_reader *reader, void *context);

#endif
