/* Work of some ranks that the others wait for, however long it takes. A working rank tells the others every
 * TELL_NS that it goes on; the first rank also does so while it reads the texts of all. */
#include <stdlib.h>

#include "base/memory/memory.h"
#include "base/thread/clock.h"
#include "comm/collective/comm.h"

#define TELL_NS 50000000u /* between two signs of life */

/* ---- work ---- */

enum { IS_DONE, GOES_ON };

struct telling {
    struct ph_comm *comm;
    uint64_t told_ns;
};

static ph_status tell(void *context)
{
    struct telling *telling = context;
    int heard;
    if (ph__clock_ns() - telling->told_ns < TELL_NS)
        return PH_OK;
    const ph_status status = ph__comm_largest(telling->comm, GOES_ON, &heard);
    telling->told_ns = ph__clock_ns();
    return status;
}

static ph_status work_and_tell(struct ph_comm *comm, ph__comm_work *work, void *context)
{
    struct telling telling = {comm, ph__clock_ns()};
    return work(context, &(struct ph__meanwhile){tell, &telling});
}

/* Waits until no rank works any more. */
static ph_status wait_for_all(struct ph_comm *comm)
{
    int heard = GOES_ON;
    while (heard == GOES_ON)
        PH_TRY(ph__comm_largest(comm, IS_DONE, &heard));
    return PH_OK;
}

ph_status ph__comm_work_by_first(struct ph_comm *comm, ph__comm_work *work, void *context)
{
    const ph_status status = ph_comm_rank(comm) == 0 ? work_and_tell(comm, work, context) : PH_OK;
    return status == PH_OK ? wait_for_all(comm) : ph_comm_fail(comm, status);
}

ph_status ph__comm_work_by_all(struct ph_comm *comm, ph__comm_work *work, void *context)
{
    if (comm == NULL)
        return work(context, &(struct ph__meanwhile){0});
    const ph_status status = work_and_tell(comm, work, context);
    PH_TRY(wait_for_all(comm));
    return ph__comm_share(comm, status);
}

/* ---- texts ---- */

/* Message of the first rank to another one. */
enum word { IT_GOES_ON, YOUR_TURN, IT_IS_OVER };

struct texts {
    struct ph_comm *comm;
    const char *what, *own;
    size_t own_size;
    ph__comm_text_reader *reader;
    void *context;
    uint64_t told_ns;
};

static ph_status tell_rank(const struct texts *texts, size_t rank, enum word word)
{
    return ph__comm_pass_once(texts->comm, texts->what, 0, rank, &word, sizeof word);
}

static ph_status tell_all(const struct texts *texts, enum word word)
{
    for (size_t rank = 1; rank < ph_comm_world_size(texts->comm); rank++)
        PH_TRY(tell_rank(texts, rank, word));
    return PH_OK;
}

static ph_status read_from(const struct texts *texts, size_t rank)
{
    uint64_t size;
    PH_TRY(tell_rank(texts, rank, YOUR_TURN));
    PH_TRY(ph__comm_pass_once(texts->comm, texts->what, rank, 0, &size, sizeof size));
    char *text = size < SIZE_MAX ? malloc((size_t)size + 1) : NULL;
    if (text == NULL)
        return ph__out_of_memory("%s: %llu bytes of rank %zu", texts->what, (unsigned long long)size, rank);
    text[size] = '\0';
    ph_status status = ph__comm_pass_once(texts->comm, texts->what, rank, 0, text, (size_t)size);
    if (status == PH_OK)
        status = texts->reader(texts->context, rank, text, (size_t)size);
    free(text);
    return status;
}

static ph_status read_all(struct texts *texts)
{
    PH_TRY(texts->reader(texts->context, 0, texts->own, texts->own_size));
    for (size_t rank = 1; rank < ph_comm_world_size(texts->comm); rank++) {
        if (ph__clock_ns() - texts->told_ns >= TELL_NS) {
            PH_TRY(tell_all(texts, IT_GOES_ON));
            texts->told_ns = ph__clock_ns();
        }
        PH_TRY(read_from(texts, rank));
    }
    return tell_all(texts, IT_IS_OVER);
}

static ph_status send_own(const struct texts *texts, size_t rank)
{
    uint64_t size = texts->own_size;
    PH_TRY(ph__comm_pass_once(texts->comm, texts->what, rank, 0, &size, sizeof size));
    return ph__comm_pass_once(
        texts->comm, texts->what, rank, 0, (char *)(uintptr_t)texts->own, texts->own_size);
}

static ph_status do_as_told(const struct texts *texts, size_t rank)
{
    enum word word = IT_GOES_ON;
    while (word != IT_IS_OVER) {
        PH_TRY(ph__comm_pass_once(texts->comm, texts->what, 0, rank, &word, sizeof word));
        if (word == YOUR_TURN)
            PH_TRY(send_own(texts, rank));
    }
    return PH_OK;
}

ph_status ph__comm_read_texts(struct ph_comm *comm, const char *what, const char *text, size_t size,
    ph__comm_text_reader *reader, void *context)
{
    const size_t rank = ph_comm_rank(comm);
    struct texts texts = {comm, what, text, size, reader, context, ph__clock_ns()};
    if (rank > 0)
        return do_as_told(&texts, rank);
    const ph_status status = read_all(&texts);
    return status == PH_OK ? PH_OK : ph_comm_fail(comm, status);
}
