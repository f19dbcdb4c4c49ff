/* Finds the option that a key names, and reports keys that name none. Private to option_read.c. */
#ifndef PH_BASE_OPTION_FIND_H
#define PH_BASE_OPTION_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory/arena.h"
#include "base/option/option.h"
#include "phloem/status.h"

/* State of one option while a config is read. */
struct ph__option_state {
    bool is_given;
    bool *members_given;       /* RECORDS: (records, members) */
    const char **record_where; /* RECORDS: (records) "file:line" of each record */
};

struct ph__config_reading {
    const struct ph__section *sections;
    size_t num_sections;
    struct ph__option_state **states; /* [section][option] */
    struct ph__arena *arena;
    bool skips_others; /* keys outside the sections are ignored */
    const char *where; /* "file:line" or "--set key=value" of the current key */
};

/* Target of a key. */
enum ph__target_kind {
    PH_TARGET_OPTION,
    PH_TARGET_ITEM, /* item of a list of integers or texts */
    PH_TARGET_RECORD,
    PH_TARGET_MEMBER,
    PH_TARGET_MEMBER_ITEM /* item of a record's list of texts */
};
struct ph__config_target {
    enum ph__target_kind kind;
    const struct ph__option *option;
    struct ph__option_state *state;
    void *member;                   /* the option's member of the settings */
    const char *subscript;          /* behind the option's key, from '[' on */
    size_t index;                   /* ITEM, RECORD, MEMBER, MEMBER_ITEM */
    const struct ph__option *inner; /* MEMBER, MEMBER_ITEM: the record's option */
    size_t item;                    /* MEMBER_ITEM */
};

/* Fails with PH_ERROR_CONFIG "where: key: reason". */
ph_status ph__config_fail(const struct ph__config_reading *reading, const char *key, const char *reason);

/* Fails with `status`, putting "where: key: " before the recorded reason. PH_ERROR_MEMORY stays as it is. */
ph_status ph__config_fail_reason(const struct ph__config_reading *reading, const char *key, ph_status status);

/* Finds the option that `key` names or, with a subscript, begins with; false when there is none. */
bool ph__config_find_option(
    const struct ph__config_reading *reading, const char *key, struct ph__config_target *target_out);

/* Returns record `index` of the target's list. */
void *ph__config_record(const struct ph__config_target *target, size_t index);

/* Finds the target of `key`, including its subscript. PH_ERROR_CONFIG, with the place, when the key names
 * nothing. */
ph_status ph__config_find(
    const struct ph__config_reading *reading, const char *key, struct ph__config_target *target_out);
#endif
