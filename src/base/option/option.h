/* Option tables. A room declares its settings once, as a struct and a table of keys. The same table parses
 * YAML configs and --set, checks ranges, prints --help and docs/CONFIG.md, and writes the effective config
 * back.
 *
 * A config file is YAML (libyaml's events). Its nested keys are flattened with dots ("train.batch_size"). An
 * unknown key, a wrong type, a value outside its range or a key given twice in a file is PH_ERROR_CONFIG: one
 * line with file, line, key and, for an unknown key, the nearest known one. */
#ifndef PH_BASE_OPTION_H
#define PH_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/stream.h"
#include "base/format/json.h"
#include "base/memory/arena.h"
#include "phloem/status.h"

#define PH_LIST_MAX 64

struct ph__integer_list {
    size_t count;
    int64_t items[PH_LIST_MAX];
};

struct ph__text_list {
    size_t count;
    const char *items[PH_LIST_MAX]; /* owned by the arena */
};

struct ph__record_list {
    size_t count;
    void *items; /* array of the record table's struct, owned by the arena */
};

enum ph__option_type {
    PH_OPTION_BOOL,     /* bool */
    PH_OPTION_INTEGER,  /* int64_t, in [min, max]; or size_t or uint64_t, with min >= 0 */
    PH_OPTION_NUMBER,   /* double, in [min, max] */
    PH_OPTION_TEXT,     /* const char *, owned by the arena */
    PH_OPTION_PATH,     /* const char *, environment variables expanded; "" is NULL */
    PH_OPTION_CHOICE,   /* int, or an enum of its size: index into choices */
    PH_OPTION_INTEGERS, /* struct ph__integer_list, each in [min, max]; YAML [a, b], text "a,b" */
    PH_OPTION_TEXTS,    /* struct ph__text_list; YAML [a, b], text a,b or "a, b","\"c\"" with quotes in it */
    PH_OPTION_RECORDS,  /* struct ph__record_list, a YAML sequence of mappings, each by `records` */
};

/* Properties of a key's value beyond the code that reads it. A key without traits has the strictest ones: the
 * outcome of a training depends on it, all ranks of a job share it, and a resumed training keeps it. */
enum ph__key_trait {
    PH_KEY_MAY_CHANGE = 1,    /* a resumed training may have another value */
    PH_KEY_NO_OUTCOME = 2,    /* a training ends in the same model whatever the value */
    PH_KEY_PER_RANK = 4,      /* ranks may differ */
    PH_KEY_NO_ENCODING = 8,   /* rows are encoded alike whatever the value */
    PH_KEY_OF_MODEL = 16,     /* scoring needs it: it is kept beside the weights */
    PH_KEY_IS_PLACE = 32 | 7, /* a location: its content is compared, not the path */
};

/* Selects the keys that have all traits of `with` and none of `without`. */
struct ph__key_filter {
    unsigned with, without;
};

struct ph__option_table;

struct ph__option {
    const char *key; /* relative to the table's section */
    enum ph__option_type type;
    size_t offset;            /* of the member in the settings struct */
    const char *default_text; /* as written after --set; NULL: required */
    double min, max;          /* INTEGER, NUMBER, INTEGERS: inclusive; both 0: unbounded */
    const char *range_text;   /* replaces the range or the words in the documentation; NULL: these */
    const char *choices;      /* CHOICE: words separated by '|', in the order of the enum */
    const struct ph__option_table *records;
    const char *help; /* one or two sentences, with units */
    unsigned traits;  /* of enum ph__key_trait, added to the table's */
};

struct ph__option_table {
    const char *section; /* "train"; "" for top-level keys */
    const char *help;    /* one sentence */
    const struct ph__option *options;
    size_t num_options;
    size_t settings_size;
    unsigned traits; /* of enum ph__key_trait, for all of its keys */
};

/* ---- the lines of a table ----
 *
 * A line has a key's name; the struct and the member that it fills, whose type is checked; its default (NULL:
 * required); its range, words or table; its help. Rare properties follow by name: .traits, .range_text. One
 * macro may give both struct and member. */
#define PH_BOOL_KEY(...) PH_PLAIN_KEY_(BOOL, __VA_ARGS__)
#define PH_INTEGER_KEY(...) PH_RANGE_KEY_(INTEGER, __VA_ARGS__)
#define PH_NUMBER_KEY(...) PH_RANGE_KEY_(NUMBER, __VA_ARGS__)
#define PH_TEXT_KEY(...) PH_PLAIN_KEY_(TEXT, __VA_ARGS__)
#define PH_PATH_KEY(...) PH_PLAIN_KEY_(PATH, __VA_ARGS__)
#define PH_CHOICE_KEY(...) PH_CHOICE_KEY_(__VA_ARGS__)
#define PH_INTEGERS_KEY(...) PH_RANGE_KEY_(INTEGERS, __VA_ARGS__)
#define PH_TEXTS_KEY(...) PH_PLAIN_KEY_(TEXTS, __VA_ARGS__)
#define PH_RECORDS_KEY(...) PH_RECORDS_KEY_(__VA_ARGS__)

/* clang-format off */
#define PH_FILLS_BOOL bool: 0
#define PH_FILLS_INTEGER int64_t: 0, uint64_t: 0
#define PH_FILLS_NUMBER double: 0
#define PH_FILLS_TEXT const char *: 0
#define PH_FILLS_PATH const char *: 0
#define PH_FILLS_CHOICE int: 0, unsigned: 0
#define PH_FILLS_INTEGERS struct ph__integer_list: 0
#define PH_FILLS_TEXTS struct ph__text_list: 0
#define PH_FILLS_RECORDS struct ph__record_list: 0
#define PH_KEY_HEAD_(type_, key_, settings_, member_, default_) \
    .key = (key_), .type = PH_OPTION_##type_, .default_text = (default_), .offset = offsetof(settings_, member_) + \
        0 * sizeof(_Generic(((settings_ *)0)->member_, PH_FILLS_##type_))
#define PH_PLAIN_KEY_(type_, key_, settings_, member_, default_, ...) \
    {PH_KEY_HEAD_(type_, key_, settings_, member_, default_), .help = __VA_ARGS__}
#define PH_RANGE_KEY_(type_, key_, settings_, member_, default_, min_, max_, ...) \
    {PH_KEY_HEAD_(type_, key_, settings_, member_, default_), .min = (min_), .max = (max_), .help = __VA_ARGS__}
#define PH_CHOICE_KEY_(key_, settings_, member_, default_, choices_, ...) \
    {PH_KEY_HEAD_(CHOICE, key_, settings_, member_, default_), .choices = (choices_), .help = __VA_ARGS__}
#define PH_RECORDS_KEY_(key_, settings_, member_, default_, records_, ...) \
    {PH_KEY_HEAD_(RECORDS, key_, settings_, member_, default_), .records = (records_), .help = __VA_ARGS__}
/* clang-format on */

/* A table and the struct that it fills. */
struct ph__section {
    const struct ph__option_table *table;
    void *settings;
};

/* Fills every section: defaults, then the file (NULL: none), then each "key=value" of sets in order. A set
 * addresses a member of a record list as key[index].member, or as key[name].member when the record has a
 * "name"; key=[{name: a}, ...] replaces the whole list. */
ph_status ph__config_read(const char *path, const char *const *sets, size_t num_sets,
    const struct ph__section *sections, size_t num_sections, struct ph__arena *arena);

/* Fills every section as above, from the text of a file in the place of the file. */
ph_status ph__config_read_text(const char *name, const char *text, const char *const *sets, size_t num_sets,
    const struct ph__section *sections, size_t num_sections, struct ph__arena *arena);

/* Fills some sections from a file, as above; ignores keys of the file that lie in none of them. */
ph_status ph__config_read_sections(
    const char *path, const struct ph__section *sections, size_t num_sections, struct ph__arena *arena);

/* Writes the effective config as YAML from which ph__config_read reads the same settings. */
ph_status ph__config_write(
    struct ph__writer *writer, const struct ph__section *sections, size_t num_sections);

/* Writes a text as a key or a value of such a file: quoted. PH_ERROR_USAGE when it is not UTF-8. */
ph_status ph__config_write_text(struct ph__writer *writer, const char *text);

/* Writes a path as the value of a key of such a file: quoted, and read back as the same path. */
ph_status ph__config_write_path(struct ph__writer *writer, const char *path);

/* Compares the keys that the filter selects. PH_ERROR_CONFIG naming the first key whose values differ, both
 * values and the violated rule ("may not change on resume"). Both arrays have the same tables in the same
 * order. */
ph_status ph__config_compare(const struct ph__section *before, const struct ph__section *after,
    size_t num_sections, struct ph__key_filter filter, const char *rule);

/* Gives settings of the table at their defaults, with empty lists of mappings, in the arena. */
ph_status ph__config_defaults(
    const struct ph__option_table *table, struct ph__arena *arena, void **settings_out);

/* Writes the selected keys that are not at their defaults, as lines "model.kind=fm". The text is the same for
 * settings of the same meaning, whatever keys a later version adds. In the arena. */
ph_status ph__config_changes(const struct ph__section *sections, size_t num_sections,
    struct ph__key_filter filter, struct ph__arena *arena, const char **text_out);
/* Writes all selected keys in the same form, also those at their defaults. */
ph_status ph__config_values(const struct ph__section *sections, size_t num_sections,
    struct ph__key_filter filter, struct ph__arena *arena, const char **text_out);

/* Tells whether the filter selects the option, by its own traits and those of its table. */
static inline bool ph__key_is_selected(
    const struct ph__option_table *table, const struct ph__option *option, struct ph__key_filter filter)
{
    const unsigned traits = table->traits | option->traits;
    return (traits & filter.with) == filter.with && (traits & filter.without) == 0;
}

/* Describes every key with type, default, range and help, as Markdown (docs/CONFIG.md) or plain text
 * (--help). */
ph_status ph__config_describe(struct ph__writer *writer, const struct ph__option_table *const *tables,
    size_t num_tables, bool is_markdown);

/* Adds a table's schema to a list: {section, help, keys: [{key, type, default, range, help,
 * may_change_on_resume}]}, with `records` in a key whose values are mappings. PH_ERROR_MEMORY. */
ph_status ph__config_schema_add(struct ph__json *list, const struct ph__option_table *table);

/* Returns the known word nearest to `word` by edit distance, or NULL when none is near enough. */
const char *ph__nearest_word(const char *word, const char *const *known, size_t num_known);

#endif
