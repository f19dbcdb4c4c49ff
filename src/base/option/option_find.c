/* Looks keys up by comparing them with "section.key" of every option: a config has a hundred keys. */
#include "base/option/option_find.h"

#include <string.h>

#include "base/option/option_value.h"
#include "base/sizes.h"
#include "base/text/number.h"
#include "base/text/utf8.h"

/* ---- the nearest word ---- */

/* Finds the known word that a misspelt word was probably meant to be. */

#define WORD_MAX 96 /* bytes; longer words have no neighbours */

/* Counts the edits that turn a into b: insert, delete, replace, swap two neighbours (optimal string
 * alignment). Row i of the table needs the two rows above it. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t length_a = strlen(a), length_b = strlen(b);
    for (size_t j = 0; j <= length_b; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= length_a; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *second_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            size_t edits = above[j - 1] + (a[i - 1] != b[j - 1]);
            edits = ph__min(edits, ph__min(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                edits = ph__min(edits, second_above[j - 2] + 1);
            row[j] = edits;
        }
    }
    return rows[length_a % 3][length_b];
}

const char *ph__nearest_word(const char *word, const char *const *known, size_t num_known)
{
    size_t length = strlen(word);
    if (length == 0 || length > WORD_MAX)
        return NULL;
    const char *nearest = NULL;
    size_t best = length <= 3 ? 1 : ph__min(2 + length / 8, length / 2); /* most edits of a near word */
    for (size_t i = 0; i < num_known; i++) {
        const size_t other = strlen(known[i]);
        if (other > WORD_MAX || other > length + best || length > other + best)
            continue; /* each edit changes the length by one at most */
        size_t edits = distance(word, known[i]);
        if (edits > best || (edits == best && nearest != NULL))
            continue;
        best = edits;
        nearest = known[i];
    }
    return nearest;
}

/* ---- errors ---- */

ph_status ph__config_fail(const struct ph__config_reading *reading, const char *key, const char *reason)
{
    return ph_fail(PH_ERROR_CONFIG, "%s: %s: %s", reading->where, key, reason);
}

/* Fails with "where: key: REASON", REASON being the recorded error. */
ph_status ph__config_fail_reason(const struct ph__config_reading *reading, const char *key, ph_status status)
{
    if (status == PH_ERROR_MEMORY)
        return status;
    return ph_fail(status, "%s: %s: %s", reading->where, key, ph_error_text());
}

/* ---- unknown keys ---- */

static const char *full_key(struct ph__arena *arena, const char *section, const char *key)
{
    return ph__arena_printf(arena, "%s%s%s", section, section[0] != '\0' ? "." : "", key);
}

/* Suggests one of the full keys: the nearest key with the same section, or a key that differs only in its
 * section, or the nearest one. */
static const char *suggest(
    struct ph__arena *arena, const char *key, const char *const *known, size_t num_known)
{
    const char **siblings = ph__arena_alloc_array(arena, num_known, sizeof *siblings);
    if (siblings == NULL)
        return NULL;
    size_t num_siblings = 0, parent = (size_t)(ph__last_word(key, '.') - key);
    for (size_t i = 0; i < num_known; i++)
        if (strncmp(known[i], key, parent) == 0 && ph__last_word(known[i], '.') == known[i] + parent)
            siblings[num_siblings++] = known[i] + parent;
    const char *nearest = ph__nearest_word(key + parent, siblings, num_siblings);
    if (nearest != NULL)
        return nearest - parent;
    for (size_t i = 0; i < num_known; i++)
        if (strcmp(ph__last_word(known[i], '.'), ph__last_word(key, '.')) == 0)
            return known[i];
    return ph__nearest_word(key, known, num_known);
}

static ph_status fail_unknown(
    const struct ph__config_reading *reading, const char *key, const char *const *known, size_t num_known)
{
    for (size_t i = 0; i < num_known; i++)
        if (strcmp(known[i], key) == 0)
            return ph_fail(
                PH_ERROR_CONFIG, "%s: '%s' is a section: name one of its keys", reading->where, key);
    const char *nearest = suggest(reading->arena, key, known, num_known);
    if (nearest == NULL)
        return ph_fail(PH_ERROR_CONFIG, "%s: unknown key '%s'", reading->where, key);
    return ph_fail(PH_ERROR_CONFIG, "%s: unknown key '%s'; did you mean '%s'?", reading->where, key, nearest);
}

/* Fails for an unknown key; suggests from all full keys and the sections' names, since a mapping may be
 * misspelt as well. */
static ph_status fail_unknown_key(const struct ph__config_reading *reading, const char *key)
{
    size_t count = 0;
    for (size_t s = 0; s < reading->num_sections; s++)
        count += reading->sections[s].table->num_options + 1;
    const char **known = ph__arena_alloc_array(reading->arena, count, sizeof *known);
    if (known == NULL)
        return PH_ERROR_MEMORY;
    size_t num_known = 0;
    for (size_t s = 0; s < reading->num_sections; s++) {
        const struct ph__option_table *table = reading->sections[s].table;
        for (size_t i = 0; i < table->num_options; i++) {
            known[num_known] = full_key(reading->arena, table->section, table->options[i].key);
            if (known[num_known++] == NULL)
                return PH_ERROR_MEMORY;
        }
        if (table->section[0] != '\0')
            known[num_known++] = table->section;
    }
    return fail_unknown(reading, key, known, num_known);
}

/* Fails for an unknown key of a record; suggests from the record's keys, with the same prefix. */
static ph_status fail_unknown_member(
    const struct ph__config_reading *reading, const char *key, const struct ph__option_table *records)
{
    int parent = (int)(ph__last_word(key, '.') - key);
    const char **known = ph__arena_alloc_array(reading->arena, records->num_options, sizeof *known);
    if (known == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < records->num_options; i++) {
        known[i] = ph__arena_printf(reading->arena, "%.*s%s", parent, key, records->options[i].key);
        if (known[i] == NULL)
            return PH_ERROR_MEMORY;
    }
    return fail_unknown(reading, key, known, records->num_options);
}

/* ---- targets of keys ---- */

/* Returns the part of `key` behind the section and its dot; NULL when the key is another section's. */
static const char *match_section(const char *section, const char *key)
{
    const size_t length = strlen(section);
    if (length == 0)
        return key;
    return strncmp(key, section, length) == 0 && key[length] == '.' ? key + length + 1 : NULL;
}

/* Returns the part of `key` behind the option's key: "" or a subscript; NULL when the key is another
 * option's. */
static const char *match_key(const struct ph__option *option, const char *key)
{
    const size_t length = strlen(option->key);
    bool is_same = strncmp(key, option->key, length) == 0 && (key[length] == '\0' || key[length] == '[');
    return is_same ? key + length : NULL;
}

bool ph__config_find_option(
    const struct ph__config_reading *reading, const char *key, struct ph__config_target *target_out)
{
    for (size_t s = 0; s < reading->num_sections; s++) {
        const struct ph__section *section = &reading->sections[s];
        const char *rest = match_section(section->table->section, key);
        for (size_t i = 0; rest != NULL && i < section->table->num_options; i++) {
            const struct ph__option *option = &section->table->options[i];
            const char *subscript = match_key(option, rest);
            if (subscript == NULL)
                continue;
            *target_out = (struct ph__config_target){.option = option,
                .state = &reading->states[s][i],
                .member = ph__option_member(option, section->settings),
                .subscript = subscript};
            return true;
        }
    }
    return false;
}

static const struct ph__option *find_member(const struct ph__option_table *records, const char *key)
{
    for (size_t i = 0; i < records->num_options; i++)
        if (strcmp(records->options[i].key, key) == 0)
            return &records->options[i];
    return NULL;
}

void *ph__config_record(const struct ph__config_target *target, size_t index)
{
    const struct ph__record_list *list = target->member;
    return (char *)list->items + index * target->option->records->settings_size;
}

/* Finds the index that a subscript names by number, or by the name of a record. */
static bool find_index(
    const struct ph__config_target *target, const char *subscript, size_t length, size_t *index_out)
{
    char digits[24];
    int64_t number = 0;
    if (length > 0 && length < sizeof digits && subscript[0] >= '0' && subscript[0] <= '9') {
        memcpy(digits, subscript, length);
        digits[length] = '\0';
        if (ph__integer_parse(digits, &number)) {
            *index_out = (size_t)number;
            return true;
        }
    }
    const struct ph__option_table *records = target->option->records;
    const struct ph__option *name = records != NULL ? find_member(records, "name") : NULL;
    if (name == NULL || name->type != PH_OPTION_TEXT)
        return false;
    const struct ph__record_list *list = target->member;
    for (size_t i = 0; i < list->count; i++) {
        const char *text = *(const char **)ph__option_member(name, ph__config_record(target, i));
        if (text != NULL && strlen(text) == length && memcmp(text, subscript, length) == 0) {
            *index_out = i;
            return true;
        }
    }
    return false;
}

/* Resolves "[2]" of a list of integers or texts; "[2]", "[2].rows" or "[user].rows" of a list of records. */
static ph_status resolve_subscript(
    const struct ph__config_reading *reading, const char *key, struct ph__config_target *target)
{
    enum ph__option_type type = target->option->type;
    const char *close = strrchr(target->subscript, ']');
    const bool is_list = type == PH_OPTION_INTEGERS || type == PH_OPTION_TEXTS;
    if (close == NULL || (!is_list && type != PH_OPTION_RECORDS))
        return fail_unknown_key(reading, key);
    size_t length = (size_t)(close - target->subscript) - 1;
    if (!find_index(target, target->subscript + 1, length, &target->index))
        return ph__config_fail(reading, key, "the item does not exist");
    if (is_list) {
        target->kind = PH_TARGET_ITEM;
        return close[1] == '\0' ? PH_OK : fail_unknown_key(reading, key);
    }
    const struct ph__record_list *list = target->member;
    if (target->index >= list->count) {
        ph_fail(PH_ERROR_CONFIG, "the list has only %zu items", list->count);
        return ph__config_fail_reason(reading, key, PH_ERROR_CONFIG);
    }
    target->kind = close[1] == '.' ? PH_TARGET_MEMBER : PH_TARGET_RECORD;
    if (target->kind == PH_TARGET_RECORD)
        return close[1] == '\0' ? PH_OK : fail_unknown_key(reading, key);
    target->inner = find_member(target->option->records, close + 2);
    return target->inner != NULL ? PH_OK : fail_unknown_member(reading, key, target->option->records);
}

/* Returns the last subscript of "[2].values[1]"; NULL when the key ends in no such subscript. */
static const char *find_member_item(const struct ph__config_target *target)
{
    const char *member = strstr(target->subscript, "].");
    const char *open = member != NULL ? strrchr(member, '[') : NULL;
    const bool is_last = open != NULL && open[strlen(open) - 1] == ']';
    return target->option->type == PH_OPTION_RECORDS && is_last ? open : NULL;
}

/* Resolves a subscript of a record's list: first the member without the subscript, then the subscript. */
static ph_status resolve_member_item(const struct ph__config_reading *reading, const char *key,
    const char *open, struct ph__config_target *target)
{
    const char *member = ph__arena_printf(reading->arena, "%.*s", (int)(open - key), key);
    const char *digits = ph__arena_printf(reading->arena, "%.*s", (int)strlen(open) - 2, open + 1);
    int64_t item = 0;
    if (member == NULL || digits == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__config_find(reading, member, target));
    if (target->kind != PH_TARGET_MEMBER || target->inner->type != PH_OPTION_TEXTS)
        return fail_unknown_key(reading, key);
    if (!ph__integer_parse(digits, &item) || item < 0)
        return ph__config_fail(reading, key, "the item does not exist");
    target->kind = PH_TARGET_MEMBER_ITEM;
    target->item = (size_t)item;
    return PH_OK;
}

ph_status ph__config_find(
    const struct ph__config_reading *reading, const char *key, struct ph__config_target *target_out)
{
    if (!ph__config_find_option(reading, key, target_out))
        return fail_unknown_key(reading, key);
    const char *item = find_member_item(target_out);
    if (item != NULL)
        return resolve_member_item(reading, key, item, target_out);
    return target_out->subscript[0] == '\0' ? PH_OK : resolve_subscript(reading, key, target_out);
}
