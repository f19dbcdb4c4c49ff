/* From a key to what it names, and what to say about a key that names nothing. Private to option_read.c. */
#ifndef PH_BASE_OPTION_FIND_H
#define PH_BASE_OPTION_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory/arena.h"
#include "base/option/option.h"
#include "phloem/status.h"

/* One option's state while a config is read. */
struct ph__option_state {
    bool is_given;
    bool *members_given;       /* RECORDS: (records, members) */
    const char **record_where; /* RECORDS: (records) "file:line" of each */
};

struct ph__config_reading {
    const struct ph__section *sections;
    size_t num_sections;
    struct ph__option_state **states; /* [section][option] */
    struct ph__arena *arena;
    bool skips_others; /* keys that lie in none of the sections are not looked at */
    const char *where; /* "file:line" or "--set key=value" of what is being read now */
};

/* What a key leads to. */
enum ph__target_kind {
    PH_TARGET_OPTION,
    PH_TARGET_ITEM, /* of a list of integers or texts */
    PH_TARGET_RECORD,
    PH_TARGET_MEMBER,
    PH_TARGET_MEMBER_ITEM /* of a record's list of texts */
};
struct ph__config_target {
    enum ph__target_kind kind;
    const struct ph__option *option;
    struct ph__option_state *state;
    void *member;                   /* of the option */
    const char *subscript;          /* behind the option's key, from '[' on */
    size_t index;                   /* ITEM, RECORD, MEMBER, MEMBER_ITEM */
    const struct ph__option *inner; /* MEMBER, MEMBER_ITEM: the record's option */
    size_t item;                    /* MEMBER_ITEM */
};

/* PH_ERROR_CONFIG "where: key: reason". */
ph_status ph__config_fail(const struct ph__config_reading *reading, const char *key, const char *reason);

/* `status` with "where: key: " put before the reason that is recorded; running out of memory stays as it is.
 */
ph_status ph__config_fail_reason(const struct ph__config_reading *reading, const char *key, ph_status status);

/* The option that `key` names or, with a subscript, begins with; false when there is none. */
bool ph__config_find_option(
    const struct ph__config_reading *reading, const char *key, struct ph__config_target *target_out);

/* Record `index` of the list that the target's option is. */
void *ph__config_record(const struct ph__config_target *target, size_t index);

/* What `key` names, subscript and all. PH_ERROR_CONFIG, complete with where, when it names nothing. */
ph_status ph__config_find(
    const struct ph__config_reading *reading, const char *key, struct ph__config_target *target_out);
#endif
