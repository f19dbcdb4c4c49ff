#include "data/encode/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"

#define MAX_WORDS ((size_t)UINT32_MAX - 1)

/* Returns the slot that holds the word, or the free slot where it belongs. Needs num_slots > num_words. */
static struct ph__vocabulary_slot *find_slot(
    const struct ph__vocabulary *vocabulary, uint64_t hash, const char *word, size_t length)
{
    size_t mask = vocabulary->num_slots - 1;
    for (size_t at = (size_t)hash & mask;; at = (at + 1) & mask) {
        struct ph__vocabulary_slot *slot = &vocabulary->slots[at];
        if (slot->row == 0)
            return slot;
        if (slot->hash != hash || slot->length != length)
            continue;
        if (length <= 8 || memcmp(vocabulary->text + vocabulary->starts[slot->row - 1], word, length) == 0)
            return slot;
    }
}

/* Grows the slots so that at least a quarter is free with `num_words` words; rehashes when they grow. */
static ph_status reserve_slots(struct ph__vocabulary *vocabulary, size_t num_words)
{
    if (num_words <= vocabulary->num_slots / 4 * 3)
        return PH_OK;
    size_t num_slots = vocabulary->num_slots == 0 ? 64 : vocabulary->num_slots * 2;
    while (num_words > num_slots / 4 * 3)
        num_slots *= 2;
    void *memory;
    PH_TRY(ph__memory_alloc(num_slots * sizeof *vocabulary->slots, "a vocabulary", &memory));
    struct ph__vocabulary_slot *slots = memory;
    size_t mask = num_slots - 1;
    for (size_t i = 0; i < vocabulary->num_slots; i++) {
        if (vocabulary->slots[i].row == 0)
            continue;
        size_t at = (size_t)vocabulary->slots[i].hash & mask;
        while (slots[at].row != 0)
            at = (at + 1) & mask;
        slots[at] = vocabulary->slots[i];
    }
    ph__memory_free(vocabulary->slots, vocabulary->num_slots * sizeof *slots);
    vocabulary->slots = slots;
    vocabulary->num_slots = num_slots;
    return PH_OK;
}

static ph_status append_word(
    struct ph__vocabulary *vocabulary, uint64_t hash, const char *word, size_t length, uint32_t count)
{
    size_t index = vocabulary->num_words;
    if (index >= MAX_WORDS || length > UINT32_MAX)
        return ph_fail(PH_ERROR_DATA,
            "vocabulary: more than %zu different ids; raise min_count, or hash the field", MAX_WORDS);
    PH_TRY(reserve_slots(vocabulary, index + 1));
    PH_TRY(ph__array_reserve(
        (void **)&vocabulary->text, &vocabulary->text_capacity, vocabulary->text_size + length + 1, 1));
    PH_TRY(ph__array_reserve(
        (void **)&vocabulary->starts, &vocabulary->starts_capacity, index + 2, sizeof *vocabulary->starts));
    PH_TRY(ph__array_reserve(
        (void **)&vocabulary->counts, &vocabulary->counts_capacity, index + 1, sizeof *vocabulary->counts));
    memcpy(vocabulary->text + vocabulary->text_size, word, length);
    vocabulary->starts[index] = vocabulary->text_size;
    vocabulary->text_size += length;
    vocabulary->starts[index + 1] = vocabulary->text_size;
    vocabulary->counts[index] = count;
    struct ph__vocabulary_slot *slot = find_slot(vocabulary, hash, word, length);
    *slot =
        (struct ph__vocabulary_slot){.hash = hash, .row = (uint32_t)(index + 1), .length = (uint32_t)length};
    vocabulary->num_words++;
    return PH_OK;
}

ph_status ph__vocabulary_count(struct ph__vocabulary *vocabulary, const char *word, size_t length,
    uint32_t count, uint64_t hash, bool *is_new_out)
{
    uint32_t row = 0;
    if (vocabulary->num_slots != 0)
        row = find_slot(vocabulary, hash, word, length)->row;
    if (row == 0) {
        PH_TRY(append_word(vocabulary, hash, word, length, count));
    } else {
        ph__vocabulary_count_row(vocabulary, row, count);
    }
    if (is_new_out != NULL)
        *is_new_out = row == 0;
    return PH_OK;
}

ph_status ph__vocabulary_finish(struct ph__vocabulary *vocabulary, uint64_t min_count)
{
    struct ph__vocabulary kept = {0};
    for (size_t i = 0; i < vocabulary->num_words; i++) {
        if (vocabulary->counts[i] < min_count)
            continue;
        size_t length;
        const char *word = ph__vocabulary_word(vocabulary, i, &length);
        ph_status status = append_word(&kept, ph__vocabulary_hash(word, length), word, length, 1);
        if (status != PH_OK) {
            ph__vocabulary_fini(&kept);
            return status;
        }
    }
    free(kept.counts);
    kept.counts = NULL;
    kept.counts_capacity = 0;
    ph__vocabulary_fini(vocabulary);
    *vocabulary = kept;
    return PH_OK;
}

uint32_t ph__vocabulary_row(
    const struct ph__vocabulary *vocabulary, const char *word, size_t length, uint64_t hash)
{
    if (vocabulary->num_slots == 0)
        return 0;
    return find_slot(vocabulary, hash, word, length)->row;
}

const char *ph__vocabulary_word(const struct ph__vocabulary *vocabulary, size_t index, size_t *length_out)
{
    size_t start = vocabulary->starts[index];
    *length_out = vocabulary->starts[index + 1] - start;
    return vocabulary->text + start;
}

void ph__vocabulary_fini(struct ph__vocabulary *vocabulary)
{
    ph__memory_free(vocabulary->slots, vocabulary->num_slots * sizeof *vocabulary->slots);
    free(vocabulary->text);
    free(vocabulary->starts);
    free(vocabulary->counts);
    memset(vocabulary, 0, sizeof *vocabulary);
}
