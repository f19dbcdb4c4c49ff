#include "data/learn/learn.h"

#include <stdlib.h>

#include "base/file/file.h"
#include "base/memory/memory.h"

#define ROWS_BETWEEN_LOOKS 256 /* rows between checks of the fit's memory */

/* ---- writing a fit ---- */

/* Words of a column in the order of the file. */
struct sorted_words {
    uint64_t *hashes;
    uint32_t *counts, *indices;
    uint64_t *ends;
    char *text;
};

struct output {
    struct ph__atomic_file file;
    uint64_t size;
};

static ph_status put(struct output *output, const void *bytes, size_t size, uint64_t *at_out)
{
    static const char padding[PH_FIT_ALIGNMENT] = {0};
    *at_out = output->size;
    PH_TRY(ph__atomic_file_write(&output->file, bytes, size));
    size_t rest = size % PH_FIT_ALIGNMENT == 0 ? 0 : PH_FIT_ALIGNMENT - size % PH_FIT_ALIGNMENT;
    PH_TRY(ph__atomic_file_write(&output->file, padding, rest));
    output->size += size + rest;
    return PH_OK;
}

/* A word while its column is sorted. */
struct sorting {
    uint64_t hash;
    uint32_t index, length;
    const char *word;
};

static int compare_sorting(const void *a, const void *b)
{
    const struct sorting *left = a, *right = b;
    return ph__fit_compare_words(
        left->hash, left->length, left->word, right->hash, right->length, right->word);
}

static void sorted_words_fini(struct sorted_words *words)
{
    free(words->hashes);
    free(words->counts);
    free(words->indices);
    free(words->ends);
    free(words->text);
}

static ph_status sorted_words_reserve(struct sorted_words *words, const struct ph__vocabulary *vocabulary)
{
    size_t count = vocabulary->num_words + 1;
    *words = (struct sorted_words){
        .hashes = malloc(count * sizeof *words->hashes),
        .counts = malloc(count * sizeof *words->counts),
        .indices = malloc(count * sizeof *words->indices),
        .ends = malloc(count * sizeof *words->ends),
        .text = malloc(vocabulary->text_size + 1),
    };
    if (words->hashes != NULL && words->counts != NULL && words->indices != NULL && words->ends != NULL &&
        words->text != NULL)
        return PH_OK;
    sorted_words_fini(words);
    return ph__out_of_memory("cannot sort %zu ids", vocabulary->num_words);
}

static void fill_words(
    struct sorted_words *words, const struct sorting *order, const struct ph__vocabulary *vocabulary)
{
    uint64_t end = 0;
    for (size_t i = 0; i < vocabulary->num_words; i++) {
        words->hashes[i] = order[i].hash;
        words->indices[i] = order[i].index;
        words->counts[i] = vocabulary->counts[order[i].index];
        memcpy(words->text + end, order[i].word, order[i].length);
        end += order[i].length;
        words->ends[i] = end;
    }
}

static ph_status sort_words(const struct ph__vocabulary *vocabulary, struct sorted_words *words_out)
{
    struct sorting *order = malloc((vocabulary->num_words + 1) * sizeof *order);
    if (order == NULL)
        return ph__out_of_memory("cannot sort %zu ids", vocabulary->num_words);
    for (size_t i = 0; i < vocabulary->num_words; i++) {
        size_t length;
        const char *word = ph__vocabulary_word(vocabulary, i, &length);
        order[i] = (struct sorting){ph__vocabulary_hash(word, length), (uint32_t)i, (uint32_t)length, word};
    }
    qsort(order, vocabulary->num_words, sizeof *order, compare_sorting);
    ph_status status = sorted_words_reserve(words_out, vocabulary);
    if (status == PH_OK)
        fill_words(words_out, order, vocabulary);
    free(order);
    return status;
}

static ph_status put_words(
    struct output *output, const struct sorted_words *words, struct ph__fit_entry *entry)
{
    size_t count = (size_t)entry->num_words;
    PH_TRY(put(output, words->hashes, count * sizeof *words->hashes, &entry->hashes_at));
    PH_TRY(put(output, words->counts, count * sizeof *words->counts, &entry->counts_at));
    PH_TRY(put(output, words->indices, count * sizeof *words->indices, &entry->indices_at));
    PH_TRY(put(output, words->ends, count * sizeof *words->ends, &entry->ends_at));
    return put(output, words->text, (size_t)entry->text_bytes, &entry->text_at);
}

static ph_status put_column(
    struct output *output, const struct ph__fit_column *column, struct ph__fit_entry *entry)
{
    *entry = (struct ph__fit_entry){.num_words = column->vocabulary.num_words,
        .text_bytes = column->vocabulary.text_size,
        .num_sampled = column->sample.count,
        .totals = column->totals};
    struct sorted_words words;
    PH_TRY(sort_words(&column->vocabulary, &words));
    entry->checksum = ph__fit_entry_checksum(
        entry, words.hashes, words.counts, words.indices, words.ends, words.text, column->sample.items);
    ph_status status = put_words(output, &words, entry);
    sorted_words_fini(&words);
    PH_TRY(status);
    return put(
        output, column->sample.items, column->sample.count * sizeof *column->sample.items, &entry->sample_at);
}

static ph_status put_fit(struct output *output, const struct ph__fit *fit, struct ph__fit_entry *directory,
    const struct ph__fit_summary *summary)
{
    size_t num_columns = fit->encoder->num_columns, directory_bytes = num_columns * sizeof *directory;
    for (size_t i = 0; i < num_columns; i++)
        PH_TRY(put_column(output, &fit->columns[i], &directory[i]));
    struct ph__fit_footer footer = {.magic = PH_FIT_MAGIC,
        .num_columns = num_columns,
        .num_rows = fit->num_rows,
        .num_bad_rows = summary->num_bad_rows,
        .is_last = summary->is_last,
        .directory_checksum = ph__checksum(directory, directory_bytes)};
    PH_TRY(put(output, directory, directory_bytes, &footer.directory_at));
    footer.checksum = ph__checksum(&footer, offsetof(struct ph__fit_footer, checksum));
    return ph__atomic_file_write(&output->file, &footer, sizeof footer);
}

/* Writes the fit to a file, atomically, and empties it. Ignores summary->num_rows: the fit counts its
 * rows. */
static ph_status write_fit(const char *path, struct ph__fit *fit, const struct ph__fit_summary *summary)
{
    const struct ph_encoder *encoder = fit->encoder;
    struct output output = {0};
    struct ph__fit_entry *directory = calloc(encoder->num_columns + 1, sizeof *directory);
    if (directory == NULL)
        return ph__out_of_memory("%s", path);
    ph_status status = ph__atomic_file_open(path, &output.file);
    if (status == PH_OK) {
        status = put_fit(&output, fit, directory, summary);
        if (status == PH_OK)
            status = ph__atomic_file_commit(&output.file);
        else
            ph__atomic_file_abandon(&output.file);
    }
    free(directory);
    PH_TRY(status);
    ph__fit_fini(fit);
    return ph__fit_init(fit, encoder);
}

/* ---- parts ---- */

static const char *file_path(struct ph__arena *arena, const char *prefix, size_t number)
{
    return ph__arena_printf(arena, "%s-%03zu.fit", prefix, number);
}

/* Finds out whether all files of the part are there and whole, and adds up their rows. */
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
    uint64_t num_rows;              /* rows in files */
    uint64_t told_rows, told_bytes; /* reported to part->advance: rows, and the end of what was read */
};

static ph_status write_file(struct learning *learning, bool is_last)
{
    const struct ph__fit_summary summary = {
        .num_bad_rows = learning->source.num_bad_rows, .is_last = is_last};
    const char *path = file_path(&learning->arena, learning->part->prefix, learning->num_files++);
    if (path == NULL)
        return PH_ERROR_MEMORY;
    learning->num_rows += learning->fit.num_rows;
    return write_fit(path, &learning->fit, &summary);
}

/* Reports progress to part->advance. Returns false when the learning should end early. */
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

/* Stops when told to; writes a file at the end, or when the ids take too much memory. */
static ph_status look_up(struct learning *learning, bool is_end)
{
    if (!advance(learning))
        return ph_fail(PH_ERROR_INTERRUPTED, "the learning of the encoder was stopped");
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

/* Lists the paths of all files of a part, up to the one marked as the last. */
static ph_status list_files(struct ph__arena *arena, const char *prefix, const struct ph_encoder *encoder,
    const char ***paths, size_t *num_paths, size_t *capacity)
{
    for (size_t number = 0;; number++) {
        struct ph__fit_summary summary;
        const char *path = file_path(arena, prefix, number);
        if (path == NULL)
            return PH_ERROR_MEMORY;
        if (!ph__fit_file_is_ended(path, encoder, &summary))
            return ph_fail(PH_ERROR_DATA, "%s: the file is missing or damaged", path);
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
