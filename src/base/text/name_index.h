/* Finds the number of a name in constant time: a hash table over texts that the caller owns.
 *
 * Names are numbered 0, 1, 2 ... in the order in which they are added, so that an array beside the index can
 * hold the data of each. A name may be added several times: all its numbers are linked, in ascending order.
 * Texts are borrowed until fini. While one thread adds, no other may look up. */
#ifndef PH_BASE_NAME_INDEX_H
#define PH_BASE_NAME_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

#define PH_NO_NAME SIZE_MAX

struct ph__indexed_name;

struct ph__name_index {             /* zero-initialised: empty */
    struct ph__indexed_name *names; /* (count) */
    size_t count, capacity;
    size_t *slots;    /* (num_slots) 1 + the first number of the slot's name, 0: free */
    size_t num_slots; /* a power of two, at least twice the number of names */
};

/* Makes room: adding up to `count` names in all cannot fail then. PH_ERROR_MEMORY. */
ph_status ph__name_index_reserve(struct ph__name_index *index, size_t count);
/* Gives `name` the next number, `count` before the call. PH_ERROR_MEMORY leaves the index as it was. */
ph_status ph__name_index_add(struct ph__name_index *index, const char *name);
void ph__name_index_fini(struct ph__name_index *index);

/* Returns the least number of the name; PH_NO_NAME when the name was not added. */
size_t ph__name_index_find(const struct ph__name_index *index, const char *name);
size_t ph__name_index_find_bytes(const struct ph__name_index *index, const char *name, size_t length);
/* Returns the next number of the same name; PH_NO_NAME behind the last one. */
size_t ph__name_index_next(const struct ph__name_index *index, size_t number);

/* Returns the name of a number below count. */
const char *ph__name_index_text(const struct ph__name_index *index, size_t number);

#endif
