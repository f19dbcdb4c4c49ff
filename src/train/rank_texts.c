#include "train/rank_texts.h"

#include <stdlib.h>

static ph_status read_from(
    struct ph_comm *comm, const char *what, size_t rank, ph__rank_text_reader *reader, void *context)
{
    uint64_t size;
    PH_TRY(ph__comm_pass_once(comm, what, rank, 0, &size, sizeof size));
    char *text = size < SIZE_MAX ? malloc((size_t)size + 1) : NULL;
    if (text == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory for %llu bytes of rank %zu", what,
            (unsigned long long)size, rank);
    text[size] = '\0';
    ph_status status = ph__comm_pass_once(comm, what, rank, 0, text, (size_t)size);
    if (status == PH_OK)
        status = reader(context, rank, text, (size_t)size);
    free(text);
    return status;
}

ph_status ph__rank_texts_read(struct ph_comm *comm, const char *what, const char *text, size_t size,
    ph__rank_text_reader *reader, void *context)
{
    const size_t own = ph_comm_rank(comm), world_size = ph_comm_world_size(comm);
    uint64_t bytes = size;
    if (own > 0) {
        PH_TRY(ph__comm_pass_once(comm, what, own, 0, &bytes, sizeof bytes));
        return ph__comm_pass_once(comm, what, own, 0, (char *)(uintptr_t)text, size);
    }
    PH_TRY(reader(context, 0, text, size));
    for (size_t rank = 1; rank < world_size; rank++)
        PH_TRY(read_from(comm, what, rank, reader, context));
    return PH_OK;
}
