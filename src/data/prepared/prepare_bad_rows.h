/* Bad rows of a preparation: each task counts its own, what they are together is known when all are done. */
#ifndef PH_DATA_PREPARE_BAD_ROWS_H
#define PH_DATA_PREPARE_BAD_ROWS_H

#include "data/prepared/prepare_part.h"

/* The results (num_tasks) are the plan's tasks'; what is found out about them is kept there. PH_ERROR_DATA naming the
 * file and the line when the split has more than context->max_bad_rows. */
ph_status ph__prepare_check_bad_rows(const struct ph__prepare_context *context,
    const struct ph__prepare_plan *plan, struct ph__prepare_result *results, enum ph__split split);

/* The first bad row of all, its place and what is wrong with it, "" when there is none. */
void ph__prepare_first_bad_row(const struct ph__prepare_context *context, const struct ph__prepare_plan *plan,
    struct ph__prepare_result *results, char *text_out, size_t size);

#endif
