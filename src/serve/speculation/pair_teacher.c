#include "serve/speculation/pair_teacher.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/memory/arena.h"
#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/thread/cpu.h"
#include "store/checkpoint_names.h"

enum { BATCH_ROWS = 16 }; /* few, so that a worker stops soon */

/* Returns the session's context: one thread uses it, so that it need not be taken from the pool. */
static struct ph__context *context_of(struct ph__pair_teacher *teacher)
{
    return &teacher->session->contexts[0];
}

static ph__output_set set_of(const struct ph__pair_teacher *teacher)
{
    return ph__session_output_set(1, &teacher->output);
}

/* Reads the seals of the weights and of the encoder. */
static ph_status read_seals(const char *folder, char seals[2][65])
{
    static const char *const names[] = {"model.safetensors", PH_PAIR_ENCODER_FILE};
    struct ph__arena arena = {0};
    ph_status status = PH_OK;
    memset(seals, 0, sizeof(char[2][65]));
    for (size_t i = 0; i < 2 && status == PH_OK; i++) {
        const char *path = ph__path_join(&arena, folder, names[i]);
        status = path != NULL ? ph__checkpoint_read_seal(path, seals[i]) : PH_ERROR_MEMORY;
    }
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__pair_teacher_version(const char *folder, uint64_t *version_out)
{
    char seals[2][65];
    PH_TRY(read_seals(folder, seals));
    *version_out = ph__hash_bytes(seals, sizeof seals);
    return PH_OK;
}

static ph_status load_encoder(struct ph__pair_teacher *teacher, const char *folder)
{
    const size_t width = ph_session_output_width(teacher->session, teacher->output);
    char seals[2][65];
    struct ph__arena arena = {0};
    const char *path = ph__path_join(&arena, folder, PH_PAIR_ENCODER_FILE);
    ph_status status = path != NULL ? ph__pair_encoder_load(path, &teacher->encoder) : PH_ERROR_MEMORY;
    if (status == PH_OK)
        status = read_seals(folder, seals);
    const bool is_fitted =
        status == PH_OK && strcmp(teacher->encoder.teacher, seals[0]) == 0 && teacher->encoder.width == width;
    if (status == PH_OK && !is_fitted)
        status = ph_fail(PH_ERROR_CHECKPOINT,
            "%s: it was fitted to other weights than those beside it: fit it anew by phloem encode", path);
    if (status == PH_OK)
        teacher->version = ph__hash_bytes(seals, sizeof seals);
    ph__arena_fini(&arena);
    return status;
}

ph_status ph__pair_teacher_open(struct ph__pair_teacher *teacher, const char *folder)
{
    const struct ph_session_options options = {.size = sizeof options, .max_batch = BATCH_ROWS};
    *teacher = (struct ph__pair_teacher){0};
    PH_TRY(ph_session_open(folder, &options, &teacher->session));
    teacher->output = ph_session_find_output(teacher->session, PH_PAIR_OUTPUT);
    if (teacher->output == SIZE_MAX)
        return ph_fail(PH_ERROR_CHECKPOINT,
            "%s: the model has no value '" PH_PAIR_OUTPUT "', so there is nothing to tell of pairs", folder);
    PH_TRY(load_encoder(teacher, folder));
    PH_TRY(ph__context_prepare(teacher->session, context_of(teacher), set_of(teacher)));
    teacher->values = calloc(BATCH_ROWS * teacher->encoder.width, sizeof *teacher->values);
    return teacher->values != NULL ? PH_OK : ph__out_of_memory("the values of a teacher");
}

void ph__pair_teacher_close(struct ph__pair_teacher *teacher)
{
    ph_session_close(teacher->session);
    ph__pair_encoder_fini(&teacher->encoder);
    free(teacher->values);
    *teacher = (struct ph__pair_teacher){0};
}

struct ph__rows *ph__pair_teacher_rows(struct ph__pair_teacher *teacher)
{
    return &context_of(teacher)->rows;
}

ph_status ph__pair_teacher_take(
    struct ph__pair_teacher *teacher, struct ph__request *request, size_t first, size_t count)
{
    for (size_t row = first; row < first + count; row++)
        PH_TRY(request->encode(request, context_of(teacher), row));
    return PH_OK;
}

static ph_status run_batch(struct ph__pair_teacher *teacher, size_t count, float *e)
{
    PH_TRY(ph__context_run(teacher->session, context_of(teacher), set_of(teacher)));
    PH_TRY(ph__context_output(
        teacher->session, context_of(teacher), teacher->output, 0, count, teacher->values));
    ph__pair_encode(&teacher->encoder, count, teacher->values, e);
    return PH_OK;
}

ph_status ph__pair_teacher_run(struct ph__pair_teacher *teacher, float *e)
{
    const size_t count = ph__pair_teacher_rows(teacher)->num_rows;
    fenv_t former;
    if (count == 0)
        return PH_OK;
    ph__cpu_float_enter(false, &former);
    const ph_status status = run_batch(teacher, count, e);
    ph__cpu_float_leave(&former);
    ph__pair_teacher_rows(teacher)->num_rows = 0;
    return status;
}
