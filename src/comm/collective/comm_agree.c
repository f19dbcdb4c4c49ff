/* Agreement among ranks: compares the texts that must be alike on all ranks of a job, and shares the status
 * or number of one rank with all. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/sum/digest.h"
#include "base/text/text_line.h"
#include "comm/collective/comm_inside.h"

/* ---- gathering ---- */

/* Gathers `size` bytes of each rank. *all_out (world, size) is malloc'ed, and the caller's. */
static ph_status gather(struct ph_comm *comm, const char *what, const void *own, size_t size, void **all_out)
{
    void *all = calloc(comm->transport.world_size, size);
    if (all == NULL)
        return ph__out_of_memory("%zu ranks", comm->transport.world_size);
    const ph_status status = ph__comm_gather_once(comm, what, own, size, all);
    if (status == PH_OK)
        *all_out = all;
    else
        free(all);
    return status;
}

/* ---- texts that are to be one ---- */

static const char agreement[] = "agreement on one job";

/* Digest that is compared first, since texts are long and mostly the same. */
struct fingerprint {
    unsigned char sum[PH_DIGEST_BYTES];
    uint64_t size; /* of the text with its NUL */
};

static ph_status take_fingerprint(const char *text, struct fingerprint *fingerprint)
{
    struct ph__digest *digest;
    memset(fingerprint, 0, sizeof *fingerprint);
    fingerprint->size = strlen(text) + 1;
    PH_TRY(ph__digest_create(&digest));
    ph_status status = ph__digest_update(digest, text, (size_t)fingerprint->size);
    if (status == PH_OK)
        status = ph__digest_finish_bytes(digest, fingerprint->sum);
    ph__digest_destroy(digest);
    return status;
}

/* Finds the first line of `text` that `other` lacks or has with another value. *other_out: the line there,
 * empty where it is missing. */
static bool find_difference(
    const char *text, const char *other, struct ph__text_line *own_out, struct ph__text_line *other_out)
{
    while (ph__text_line_next(&text, own_out)) {
        *other_out = (struct ph__text_line){.value = ""};
        if (!ph__text_line_find(other, own_out, other_out) || !ph__text_line_has_value_of(own_out, other_out))
            return true;
    }
    return false;
}

static ph_status fail_by_difference(struct ph_comm *comm, size_t rank, const char *first, const char *other)
{
    char text[PH_NOTICE_TEXT_BYTES];
    struct ph__text_line a = {.name = NULL}, b = a;
    if (!find_difference(first, other, &a, &b))
        (void)find_difference(other, first, &b, &a);
    const struct ph__text_line *named = a.name != NULL ? &a : &b;
    assert(named->name != NULL);
    snprintf(text, sizeof text, "%.*s differs between ranks 0 ('%.*s') and %zu ('%.*s')", named->name_length,
        named->name, (int)ph__min((size_t)a.value_length, 128), a.value, rank,
        (int)ph__min((size_t)b.value_length, 128), b.value);
    return ph__comm_fail_alike(comm, PH_ERROR_CONFIG, text);
}

/* Gathers all ranks' texts, (world, size), on all ranks, so that each finds the same difference. */
static ph_status compare_texts(struct ph_comm *comm, const char *text, size_t size, size_t rank)
{
    char *padded = calloc(1, size);
    void *all;
    if (padded == NULL)
        return ph__out_of_memory("cannot compare the settings of the ranks");
    memcpy(padded, text, strlen(text));
    ph_status status = gather(comm, agreement, padded, size, &all);
    free(padded);
    PH_TRY(status);
    status = fail_by_difference(comm, rank, all, (const char *)all + rank * size);
    free(all);
    return status;
}

ph_status ph__comm_agree(struct ph_comm *comm, const char *text)
{
    struct fingerprint own, *prints;
    void *all;
    size_t odd = 0, size = 0;
    PH_TRY(ph__comm_check(comm));
    PH_TRY(take_fingerprint(text, &own));
    PH_TRY(gather(comm, agreement, &own, sizeof own, &all));
    prints = all;
    for (size_t rank = comm->transport.world_size; rank-- > 0;) {
        size = ph__max(size, (size_t)prints[rank].size);
        if (memcmp(&prints[rank], &prints[0], sizeof own) != 0)
            odd = rank;
    }
    free(all);
    return odd > 0 ? compare_texts(comm, text, size, odd) : PH_OK;
}

/* ---- outcomes of single ranks ---- */

struct outcome {
    ph_status status;
    char text[PH_NOTICE_TEXT_BYTES];
};

ph_status ph__comm_share(struct ph_comm *comm, ph_status status)
{
    struct outcome own = {.status = status}, *outcomes;
    void *all;
    PH_TRY(ph__comm_check(comm));
    if (status != PH_OK)
        snprintf(own.text, sizeof own.text, "%s", ph_error_text());
    PH_TRY(gather(comm, "outcomes of all ranks", &own, sizeof own, &all));
    outcomes = all;
    size_t rank = 0;
    while (rank + 1 < comm->transport.world_size && outcomes[rank].status == PH_OK)
        rank++;
    if (outcomes[rank].status != PH_OK)
        ph_fail(outcomes[rank].status, "%s", outcomes[rank].text);
    status = outcomes[rank].status;
    free(all);
    return status;
}

ph_status ph__comm_largest(struct ph_comm *comm, int number, int *largest_out)
{
    void *all;
    int largest = number;
    PH_TRY(ph__comm_check(comm));
    PH_TRY(gather(comm, "what comes next", &number, sizeof number, &all));
    for (size_t rank = 0; rank < comm->transport.world_size; rank++)
        if (((const int *)all)[rank] > largest)
            largest = ((const int *)all)[rank];
    free(all);
    *largest_out = largest;
    return PH_OK;
}
