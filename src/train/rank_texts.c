#include "train/rank_texts.h"

#include <stdlib.h>

#include "train/rank_channels.h"
#include "train/rank_work.h"

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

struct texts {
    struct ph_comm *comm;
    const struct ph_comm_call *call;
    const char *own;
    size_t own_size;
    ph__rank_text_reader *reader;
    void *context;
};

static ph_status read_all(void *context, const struct ph_meanwhile *meanwhile)
{
    const struct texts *texts = context;
    PH_TRY(texts->reader(texts->context, 0, texts->own, texts->own_size));
    for (size_t rank = 1; rank < ph_comm_world_size(texts->comm); rank++) {
        PH_TRY(ph__meanwhile(meanwhile));
        PH_TRY(read_from(texts->comm, texts->call, rank, texts->reader, texts->context));
    }
    return PH_OK;
}

/* The text is on its way until its turn comes. */
static ph_status send_text(const struct texts *texts, uint64_t *size, uint64_t *ticket_out)
{
    const struct ph_message messages[] = {
        {0, size, sizeof *size}, {0, (char *)(uintptr_t)texts->own, texts->own_size}};
    const struct ph_exchange exchange = {messages, NULL, 2, 0};
    return ph__comm_exchange_start(texts->comm, texts->call, &exchange, ticket_out);
}

ph_status ph__rank_texts_read(struct ph_comm *comm, const char *what, const char *text, size_t size,
    ph__rank_text_reader *reader, void *context)
{
    const struct ph_comm_call call = {PH_CHANNEL_TEXTS, what};
    struct texts texts = {comm, &call, text, size, reader, context};
    uint64_t bytes = size, ticket;
    const bool is_sender = ph_comm_rank(comm) > 0;
    if (is_sender)
        PH_TRY(send_text(&texts, &bytes, &ticket));
    PH_TRY(ph__rank_work_by_first(comm, read_all, &texts));
    return is_sender ? ph__comm_wait(comm, ticket) : PH_OK;
}
