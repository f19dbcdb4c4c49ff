/* Structs and buffers that callers hand to the library (phloem/options.h): structs that begin with their
 * size, and buffers for texts.
 *
 * A function of a public header copies such a struct once, on entry, and passes the copy on. A new member
 * goes behind the last one and never into padding, which may hold anything in an older caller's struct. */
#ifndef PH_BASE_CALLER_H
#define PH_BASE_CALLER_H

#include "phloem/options.h"
#include "phloem/status.h"

/* Copies a caller's struct of any version into the library's, own (own_size bytes), and sets its size.
 * Members that the caller's struct lacks become zero; given NULL: all members. PH_ERROR_USAGE naming the
 * struct, without "struct", when the size is impossible, or a member is set that the library does not know;
 * own is undefined then. */
PH_MUST_CHECK ph_status ph__options_copy(void *own, size_t own_size, const void *given, const char *name);

/* Copies into the caller's struct the members that both structs have. Leaves its size, and members that the
 * library does not know. Errors as above. */
PH_MUST_CHECK ph_status ph__options_give(const void *own, size_t own_size, void *given_out, const char *name);

/* Writes the text, cut to fit, into the buffer; does nothing when the buffer is NULL. */
void ph__buffer_set(struct ph_buffer buffer, const char *text);

#endif
