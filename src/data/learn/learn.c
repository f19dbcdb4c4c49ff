#include "data/learn/learn.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory/memory.h"

#define ROWS_BETWEEN_LOOKS 256 /* at the memory that the fit takes */

static const char *file_path(struct ph__arena *arena, const char *prefix, size_t number)
{
    return ph__arena_printf(arena, "%s-%03zu.fit", prefix, number);
}

/* Whether the part's files are all there; their sums. */
static ph_status find_files(struct ph__arena *arena, const char *prefix, const struct ph_encoder *encoder,
    bool *is_done, struct ph__fit_summary *sums)
{
    *sums = (struct ph__fit_summary){0};
    *is_done = false;
    for (size_t number = 0; !*is_done; number++) {
        struct ph__fit_summary summary;
        const char *path = file_path(arena, prefix, number);
        if (path == NULL)
            return PH_ERROR_MEMORY;
        if (!ph__fit_file_is_whole(path, encoder, &summary))
            return PH_OK;
        sums->num_rows += summary.num_rows;
        sums->num_bad_rows = summary.num_bad_rows;
        *is_done = summary.is_last;
    }
    return PH_OK;
}

struct learning {
    const struct ph__learn_part *part;
    struct ph__arena arena;
    struct ph__fit fit;
    struct ph__source source;
    size_t num_files;
    uint64_t num_rows;              /* in files */
    uint64_t told_rows, told_bytes; /* by part->advance: rows, and the end of what was read */
};

static ph_status write_file(struct learning *learning, bool is_last)
{
    const struct ph__fit_summary summary = {
        .num_bad_rows = learning->source.num_bad_rows, .is_last = is_last};
    const char *path = file_path(&learning->arena, learning->part->prefix, learning->num_files++);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    learning->num_rows += learning->fit.num_rows;
    return ph__fit_file_write(path, &learning->fit, &summary);
}

/* False: it should end early. */
static bool advance(struct learning *learning)
{
    const struct ph__learn_part *part = learning->part;
    struct ph__source_position position;
    ph__source_tell(&learning->source, &position);
    const uint64_t rows = learning->num_rows + learning->fit.num_rows;
    const uint64_t num_rows = rows - learning->told_rows, num_bytes = position.byte - learning->told_bytes;
    learning->told_rows = rows;
    learning->told_bytes = position.byte;
    return part->advance == NULL || part->advance(part->advance_argument, num_rows, num_bytes);
}

/* Now and then, and at the end: leaves when it is told to, and makes room when the ids take too much. */
static ph_status look_up(struct learning *learning, bool is_end)
{
    if (!advance(learning))
        return ph_fail(PH_ERROR_INTERRUPTED, "the learning was stopped");
    bool is_full = ph__fit_bytes(&learning->fit) > learning->part->max_bytes;
    return is_end || is_full ? write_file(learning, is_end) : PH_OK;
}

static ph_status read_rows(struct learning *learning)
{
    struct ph__rows rows = {0};
    bool is_end = false;
    ph_status status = PH_OK;
    for (uint64_t count = 1; status == PH_OK && !is_end; count++) {
        status = ph__source_next(&learning->source, &rows, &is_end);
        if (status == PH_OK && (is_end || count % ROWS_BETWEEN_LOOKS == 0))
            status = look_up(learning, is_end);
    }
    ph__rows_fini(&rows);
    return status;
}

static ph_status learn(const struct ph_encoder *encoder, struct learning *learning)
{
    const struct ph__learn_part *part = learning->part;
    const struct ph__source_options options = {.max_bad_rows = part->max_bad_rows,
        .fit = &learning->fit,
        .start = part->start,
        .is_one_file = true,
        .end_byte = part->end_byte};
    PH_TRY(ph__fit_init(&learning->fit, encoder));
    learning->told_bytes = part->start != NULL ? part->start->byte : 0;
    ph_status status = ph__source_open(&learning->source, encoder, part->path, &options);
    if (status == PH_OK)
        status = read_rows(learning);
    ph__fit_fini(&learning->fit);
    return status;
}

ph_status ph__learn_part(
    const struct ph_encoder *encoder, const struct ph__learn_part *part, struct ph__fit_summary *summary_out)
{
    struct learning learning = {.part = part};
    struct ph__fit_summary sums;
    bool is_done = false;
    ph_status status = find_files(&learning.arena, part->prefix, encoder, &is_done, &sums);
    if (status == PH_OK && !is_done) {
        status = learn(encoder, &learning);
        sums = (struct ph__fit_summary){learning.num_rows, learning.source.num_bad_rows, true};
        ph__source_close(&learning.source);
    }
    ph__arena_fini(&learning.arena);
    if (status == PH_OK)
        *summary_out = sums;
    return status;
}

/* The paths of all files of a part, of which the last is marked. */
static ph_status list_files(struct ph__arena *arena, const char *prefix, const struct ph_encoder *encoder,
    const char ***paths, size_t *num_paths, size_t *capacity)
{
    for (size_t number = 0;; number++) {
        struct ph__fit_summary summary;
        const char *path = file_path(arena, prefix, number);
        if (path == NULL)
            return PH_ERROR_MEMORY;
        if (!ph__fit_file_is_ended(path, encoder, &summary))
            return ph_fail(PH_ERROR_DATA, "%s: is missing or damaged", path);
        PH_TRY(ph__array_reserve((void **)paths, capacity, *num_paths + 1, sizeof **paths));
        (*paths)[(*num_paths)++] = path;
        if (summary.is_last)
            return PH_OK;
    }
}

ph_status ph__learn_finish(const char *path, const char *const *prefixes, size_t num_parts,
    uint64_t max_bytes, struct ph_encoder *encoder)
{
    struct ph__arena arena = {0};
    const char **paths = NULL;
    size_t num_paths = 0, capacity = 0;
    ph_status status = PH_OK;
    for (size_t i = 0; status == PH_OK && i < num_parts; i++)
        status = list_files(&arena, prefixes[i], encoder, &paths, &num_paths, &capacity);
    if (status == PH_OK)
        status = ph__fit_files_finish(paths, num_paths, max_bytes, encoder);
    free(paths);
    ph__arena_fini(&arena);
    if (status == PH_OK && encoder->num_training_rows == 0)
        return ph_fail(PH_ERROR_DATA, "%s: has no rows", path);
    return status == PH_OK ? ph__encoder_seal(encoder, "data.fields", PH_ERROR_CONFIG) : status;
}
