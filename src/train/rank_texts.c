#include "train/rank_texts.h"

#include <stdlib.h>

#include "train/rank_channels.h"

ph_status ph__rank_pass(
    struct ph_comm *comm, const struct ph_comm_call *call, size_t from, size_t to, void *data, size_t bytes)
{
    const bool is_sender = ph_comm_rank(comm) == from;
    const struct ph_message message = {is_sender ? to : from, data, bytes};
    const struct ph_exchange exchange = {&message, &message, is_sender ? 1 : 0, is_sender ? 0 : 1};
    uint64_t ticket;
    PH_TRY(ph__comm_exchange_start(comm, call, &exchange, &ticket));
    return ph__comm_wait(comm, ticket);
}

/* After a failure the text stays: a message may still arrive (comm.h). */
static ph_status read_from(struct ph_comm *comm, const struct ph_comm_call *call, size_t rank,
    ph__rank_text_reader *reader, void *context)
{
    uint64_t size;
    PH_TRY(ph__rank_pass(comm, call, rank, 0, &size, sizeof size));
    char *text = size < SIZE_MAX ? malloc((size_t)size + 1) : NULL;
    if (text == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory for %llu bytes of rank %zu", call->what,
            (unsigned long long)size, rank);
    PH_TRY(ph__rank_pass(comm, call, rank, 0, text, (size_t)size));
    text[size] = '\0';
    const ph_status status = reader(context, rank, text, (size_t)size);
    free(text);
    return status;
}

ph_status ph__rank_texts_read(struct ph_comm *comm, const char *what, const char *text, size_t size,
    ph__rank_text_reader *reader, void *context)
{
    const struct ph_comm_call call = {PH_CHANNEL_TEXTS, what};
    const size_t own = ph_comm_rank(comm), world_size = ph_comm_world_size(comm);
    uint64_t bytes = size;
    if (own > 0) {
        PH_TRY(ph__rank_pass(comm, &call, own, 0, &bytes, sizeof bytes));
        return ph__rank_pass(comm, &call, own, 0, (char *)(uintptr_t)text, size);
    }
    PH_TRY(reader(context, 0, text, size));
    for (size_t rank = 1; rank < world_size; rank++)
        PH_TRY(read_from(comm, &call, rank, reader, context));
    return PH_OK;
}
