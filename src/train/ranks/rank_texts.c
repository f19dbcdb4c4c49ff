#include "train/ranks/rank_texts.h"

#include <stdlib.h>

#include "base/thread/clock.h"

#define TELL_NS 50000000u

/* What the first rank says to another one. */
enum word { IT_GOES_ON, YOUR_TURN, IT_IS_OVER };

struct texts {
    struct ph_comm *comm;
    const char *what, *own;
    size_t own_size;
    ph__rank_text_reader *reader;
    void *context;
    uint64_t told_ns;
};

/* ---- the first rank -------------------------------------------------------------------------------------------------- */

static ph_status tell(const struct texts *texts, size_t rank, enum word word)
{
    return ph__comm_pass_once(texts->comm, texts->what, 0, rank, &word, sizeof word);
}

static ph_status tell_all(const struct texts *texts, enum word word)
{
    for (size_t rank = 1; rank < ph_comm_world_size(texts->comm); rank++)
        PH_TRY(tell(texts, rank, word));
    return PH_OK;
}

static ph_status read_from(const struct texts *texts, size_t rank)
{
    uint64_t size;
    PH_TRY(tell(texts, rank, YOUR_TURN));
    PH_TRY(ph__comm_pass_once(texts->comm, texts->what, rank, 0, &size, sizeof size));
    char *text = size < SIZE_MAX ? malloc((size_t)size + 1) : NULL;
    if (text == NULL)
        return ph_fail(PH_ERROR_MEMORY, "%s: no memory for %llu bytes of rank %zu", texts->what,
            (unsigned long long)size, rank);
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

/* ---- the others ------------------------------------------------------------------------------------------------------ */

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

ph_status ph__rank_texts_read(struct ph_comm *comm, const char *what, const char *text, size_t size,
    ph__rank_text_reader *reader, void *context)
{
    const size_t rank = ph_comm_rank(comm);
    struct texts texts = {comm, what, text, size, reader, context, ph__clock_ns()};
    if (rank > 0)
        return do_as_told(&texts, rank);
    const ph_status status = read_all(&texts);
    return status == PH_OK ? PH_OK : ph_comm_fail(comm, status);
}
