#include "data/learn/fit_file.h"

#include <stdlib.h>

#include "base/file/file.h"
#include "base/memory/memory.h"
#include "data/learn/fit_layout.h"

/* The words of a column in the order of the file. */
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
        .num_values = column->num_values,
        .num_blanks = column->num_blanks,
        .min = column->min,
        .max = column->max,
        .sum = column->sum,
        .sum_of_squares = column->sum_of_squares};
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

ph_status ph__fit_file_write(const char *path, struct ph__fit *fit, const struct ph__fit_summary *summary)
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
