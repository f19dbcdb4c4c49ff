#include "data/encode/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

size_t ph__rows_num_words(const struct ph__rows *rows)
{
    return rows->num_rows == 0 ? 0 : rows->starts[rows->num_rows];
}

ph_status ph__rows_reserve(struct ph__rows *rows, size_t num_rows, size_t num_words, size_t *start_out)
{
    const size_t used = ph__rows_num_words(rows), wanted = used + num_rows * num_words;
    const size_t num_starts = rows->num_rows + num_rows + 1;
    if (wanted > rows->words_capacity)
        PH_TRY(ph__array_reserve((void **)&rows->words, &rows->words_capacity, wanted, sizeof *rows->words));
    if (num_starts > rows->starts_capacity)
        PH_TRY(ph__array_reserve(
            (void **)&rows->starts, &rows->starts_capacity, num_starts, sizeof *rows->starts));
    rows->starts[rows->num_rows] = used;
    *start_out = used;
    return PH_OK;
}

void ph__rows_commit(struct ph__rows *rows, size_t num_rows, size_t num_words)
{
    size_t *starts = rows->starts + rows->num_rows;
    for (size_t i = 0; i < num_rows; i++)
        starts[i + 1] = starts[0] + (i + 1) * num_words;
    rows->num_rows += num_rows;
}

ph_status ph__rows_append(struct ph__rows *rows, const struct ph__rows *from, size_t index)
{
    size_t num_words = from->starts[index + 1] - from->starts[index];
    size_t start;
    PH_TRY(ph__rows_reserve(rows, 1, num_words, &start));
    memcpy(rows->words + start, from->words + from->starts[index], num_words * sizeof *rows->words);
    ph__rows_commit(rows, 1, num_words);
    return PH_OK;
}

void ph__rows_fini(struct ph__rows *rows)
{
    free(rows->words);
    free(rows->starts);
    memset(rows, 0, sizeof *rows);
}
