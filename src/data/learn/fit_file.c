#include "data/learn/fit_file.h"

#include <stdlib.h>

#include "base/file/file.h"
#include "base/memory/memory.h"

#define MAX_FILES 65536

/* ---- reading ---- */

struct fit_file {
    struct ph__mapped_file map;
    struct ph__fit_footer footer;
    const struct ph__fit_entry *directory;
};

static const void *array_at(const struct fit_file *file, uint64_t at)
{
    return file->map.bytes + at;
}

static bool is_entry_whole(const struct fit_file *file, const struct ph__fit_entry *entry)
{
    if (!ph__fit_entry_lies_within(entry, file->footer.directory_at) ||
        !ph__exact_sum_is_sound(&entry->totals.sum) || !ph__exact_sum_is_sound(&entry->totals.sum_of_squares))
        return false;
    const uint64_t *ends = array_at(file, entry->ends_at);
    for (uint64_t i = 0, last = 0; i < entry->num_words; last = ends[i++])
        if (ends[i] < last || ends[i] > entry->text_bytes)
            return false;
    return entry->checksum == ph__fit_entry_checksum(entry, array_at(file, entry->hashes_at),
                                  array_at(file, entry->counts_at), array_at(file, entry->indices_at), ends,
                                  array_at(file, entry->text_at), array_at(file, entry->sample_at));
}

static bool is_file_ended(struct fit_file *file, const struct ph_encoder *encoder)
{
    const struct ph__mapped_file *map = &file->map;
    struct ph__fit_footer *footer = &file->footer;
    if (map->size < sizeof *footer || map->size % PH_FIT_ALIGNMENT != 0)
        return false;
    size_t end = map->size - sizeof *footer;
    memcpy(footer, map->bytes + end, sizeof *footer);
    if (memcmp(footer->magic, PH_FIT_MAGIC, sizeof PH_FIT_MAGIC) != 0 ||
        footer->checksum != ph__checksum(footer, offsetof(struct ph__fit_footer, checksum)) ||
        footer->num_columns != encoder->num_columns ||
        !ph__fit_lies_within(footer->directory_at, footer->num_columns, sizeof(struct ph__fit_entry), end))
        return false;
    file->directory = array_at(file, footer->directory_at);
    return true;
}

static bool is_file_whole(struct fit_file *file, const struct ph_encoder *encoder)
{
    if (!is_file_ended(file, encoder))
        return false;
    const struct ph__fit_footer *footer = &file->footer;
    if (footer->directory_checksum !=
        ph__checksum(file->directory, footer->num_columns * sizeof *file->directory))
        return false;
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (!is_entry_whole(file, &file->directory[i]))
            return false;
    return true;
}

static bool look_at(const char *path, const struct ph_encoder *encoder,
    bool (*is_fine)(struct fit_file *file, const struct ph_encoder *encoder),
    struct ph__fit_summary *summary_out)
{
    struct fit_file file = {0};
    if (ph__mapped_file_open(path, PH_ERROR_DATA, &file.map) != PH_OK)
        return false;
    const bool it_is = is_fine(&file, encoder);
    const struct ph__fit_footer *footer = &file.footer;
    if (it_is)
        *summary_out = (struct ph__fit_summary){footer->num_rows, footer->num_bad_rows, footer->is_last != 0};
    ph__mapped_file_close(&file.map);
    return it_is;
}

bool ph__fit_file_is_ended(
    const char *path, const struct ph_encoder *encoder, struct ph__fit_summary *summary_out)
{
    return look_at(path, encoder, is_file_ended, summary_out);
}

bool ph__fit_file_is_whole(
    const char *path, const struct ph_encoder *encoder, struct ph__fit_summary *summary_out)
{
    return look_at(path, encoder, is_file_whole, summary_out);
}

/* ---- merging ---- */

/* Next word of a file, for one column. */
struct cursor {
    const struct fit_file *file;
    const struct ph__fit_entry *entry;
    uint64_t hash;
    const char *word;
    size_t length;
    uint64_t next; /* index of the word after this one */
    size_t order;  /* file's number */
};

/* A word that is kept; sorted by first appearance at the end. */
struct kept_word {
    uint64_t first;   /* file's number, then index in the file */
    const char *word; /* borrowed from a map */
    uint32_t length, count;
};

struct merge {
    const struct fit_file *files;
    struct cursor *heap; /* heap with the smallest word first */
    size_t num_cursors;
    struct kept_word *kept;
    size_t num_kept, kept_capacity;
    uint64_t kept_bytes;
};

static int compare_cursors(const struct cursor *a, const struct cursor *b)
{
    int order = ph__fit_compare_words(a->hash, a->length, a->word, b->hash, b->length, b->word);
    if (order != 0)
        return order;
    return a->order < b->order ? -1 : a->order > b->order;
}

static bool advance(struct cursor *cursor)
{
    const struct ph__fit_entry *entry = cursor->entry;
    if (cursor->next == entry->num_words)
        return false;
    const uint64_t *hashes = array_at(cursor->file, entry->hashes_at),
                   *ends = array_at(cursor->file, entry->ends_at);
    uint64_t start = cursor->next == 0 ? 0 : ends[cursor->next - 1];
    cursor->hash = hashes[cursor->next];
    cursor->word = (const char *)array_at(cursor->file, entry->text_at) + start;
    cursor->length = (size_t)(ends[cursor->next] - start);
    cursor->next++;
    return true;
}

static void sift_down(struct cursor *heap, size_t count, size_t at)
{
    for (;;) {
        size_t least = at, left = 2 * at + 1;
        if (left < count && compare_cursors(&heap[left], &heap[least]) < 0)
            least = left;
        if (left + 1 < count && compare_cursors(&heap[left + 1], &heap[least]) < 0)
            least = left + 1;
        if (least == at)
            return;
        struct cursor moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

static void begin_column(struct merge *merge, size_t num_files, size_t column)
{
    merge->num_cursors = merge->num_kept = 0;
    merge->kept_bytes = 0;
    for (size_t i = 0; i < num_files; i++) {
        struct cursor cursor = {
            .file = &merge->files[i], .entry = &merge->files[i].directory[column], .order = i};
        if (advance(&cursor))
            merge->heap[merge->num_cursors++] = cursor;
    }
    for (size_t i = merge->num_cursors / 2; i-- > 0;)
        sift_down(merge->heap, merge->num_cursors, i);
}

/* Takes the smallest word out of all files that have it, with its total count and its first appearance. */
static struct kept_word take_word(struct merge *merge)
{
    struct cursor first = merge->heap[0];
    const uint32_t *indices = array_at(first.file, first.entry->indices_at);
    struct kept_word word = {.first = (uint64_t)first.order << 32 | indices[first.next - 1],
        .word = first.word,
        .length = (uint32_t)first.length};
    uint64_t count = 0;
    while (merge->num_cursors > 0 && ph__fit_compare_words(merge->heap[0].hash, merge->heap[0].length,
                                         merge->heap[0].word, first.hash, first.length, first.word) == 0) {
        struct cursor *top = &merge->heap[0];
        const uint32_t *counts = array_at(top->file, top->entry->counts_at);
        count += counts[top->next - 1];
        if (!advance(top))
            *top = merge->heap[--merge->num_cursors];
        sift_down(merge->heap, merge->num_cursors, 0);
    }
    word.count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
    return word;
}

static int compare_first(const void *a, const void *b)
{
    const struct kept_word *left = a, *right = b;
    return left->first < right->first ? -1 : left->first > right->first;
}

/* Returns the bytes that a word takes in a vocabulary and while it is sorted. */
static uint64_t bytes_of(const struct kept_word *word)
{
    return word->length + sizeof *word + 2 * sizeof(struct ph__vocabulary_slot) + sizeof(size_t);
}

static ph_status keep_words(struct merge *merge, const struct ph__column *column, uint64_t max_bytes)
{
    while (merge->num_cursors > 0) {
        struct kept_word word = take_word(merge);
        if (word.count < column->min_count)
            continue;
        merge->kept_bytes += bytes_of(&word);
        if (merge->kept_bytes > max_bytes)
            return ph_fail(PH_ERROR_MEMORY,
                "field '%s': the ids that occur at least %llu times take more than the %llu bytes left of "
                "prepare.vocabulary_bytes; raise it or the field's min_count, or hash the field",
                column->name, (unsigned long long)column->min_count, (unsigned long long)max_bytes);
        PH_TRY(ph__array_reserve(
            (void **)&merge->kept, &merge->kept_capacity, merge->num_kept + 1, sizeof *merge->kept));
        merge->kept[merge->num_kept++] = word;
    }
    return PH_OK;
}

static ph_status fill_vocabulary(const struct merge *merge, struct ph__vocabulary *vocabulary)
{
    for (size_t i = 0; i < merge->num_kept; i++) {
        const struct kept_word *word = &merge->kept[i];
        PH_TRY(ph__vocabulary_count(vocabulary, word->word, word->length, word->count,
            ph__vocabulary_hash(word->word, word->length), NULL));
    }
    return PH_OK;
}

static ph_status merge_values(
    const struct merge *merge, size_t num_files, size_t column, struct ph__fit_column *into)
{
    for (size_t i = 0; i < num_files; i++) {
        const struct ph__fit_entry *entry = &merge->files[i].directory[column];
        const struct ph__fit_column part = {.totals = entry->totals,
            .sample.items = (struct ph__sampled *)array_at(&merge->files[i], entry->sample_at),
            .sample.count = (size_t)entry->num_sampled};
        PH_TRY(ph__fit_column_merge(into, &part));
    }
    return PH_OK;
}

static ph_status merge_columns(struct merge *merge, size_t num_files, uint64_t max_bytes, struct ph__fit *fit)
{
    for (size_t i = 0; i < fit->encoder->num_columns; i++) {
        begin_column(merge, num_files, i);
        PH_TRY(keep_words(merge, &fit->encoder->columns[i], max_bytes));
        max_bytes -= merge->kept_bytes;
        if (merge->num_kept > 0)
            qsort(merge->kept, merge->num_kept, sizeof *merge->kept, compare_first);
        PH_TRY(fill_vocabulary(merge, &fit->columns[i].vocabulary));
        PH_TRY(merge_values(merge, num_files, i, &fit->columns[i]));
    }
    for (size_t i = 0; i < num_files; i++)
        fit->num_rows += merge->files[i].footer.num_rows;
    return PH_OK;
}

static ph_status merge_files(
    const struct fit_file *files, size_t num_files, uint64_t max_bytes, struct ph_encoder *encoder)
{
    struct ph__fit fit;
    struct merge merge = {.files = files, .heap = calloc(num_files + 1, sizeof *merge.heap)};
    if (merge.heap == NULL)
        return ph__out_of_memory("cannot merge %zu files", num_files);
    ph_status status = ph__fit_init(&fit, encoder);
    if (status == PH_OK)
        status = merge_columns(&merge, num_files, max_bytes, &fit);
    free(merge.kept);
    free(merge.heap);
    if (status == PH_OK)
        return ph__fit_finish(&fit, encoder);
    ph__fit_fini(&fit);
    return status;
}

ph_status ph__fit_files_finish(
    const char *const *paths, size_t num_paths, uint64_t max_bytes, struct ph_encoder *encoder)
{
    if (num_paths > MAX_FILES)
        return ph_fail(PH_ERROR_CONFIG,
            "prepare: %zu files of ids to merge are more than %d: raise prepare.vocabulary_bytes or "
            "prepare.part_bytes",
            num_paths, MAX_FILES);
    struct fit_file *files = calloc(num_paths + 1, sizeof *files);
    if (files == NULL)
        return ph__out_of_memory("cannot merge %zu files", num_paths);
    ph_status status = PH_OK;
    for (size_t i = 0; i < num_paths && status == PH_OK; i++) {
        status = ph__mapped_file_open(paths[i], PH_ERROR_DATA, &files[i].map);
        if (status == PH_OK && !is_file_whole(&files[i], encoder))
            status = ph_fail(PH_ERROR_DATA, "%s: the file is damaged; delete it and prepare again", paths[i]);
    }
    if (status == PH_OK)
        status = merge_files(files, num_paths, max_bytes, encoder);
    for (size_t i = 0; i < num_paths; i++)
        ph__mapped_file_close(&files[i].map);
    free(files);
    return status;
}
