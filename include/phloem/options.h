/* Members that the structs of callers have in common: their size, so that they can grow, and buffers for
 * texts.
 *
 * An option struct begins with its size, which the caller sets; the rest is zero unless the caller sets it:
 *
 *     struct ph_backend_options options = {.size = sizeof options, .num_threads = 2};
 *
 * So a program and a library may know different versions of a struct. One of an older version is shorter:
 * what it lacks is zero, the default. One of a newer version is longer: it is taken as long as all that the
 * library does not know is zero. Calls fail with PH_ERROR_USAGE, naming the struct, when it is not, or when
 * the size was not set. */
#ifndef PHLOEM_OPTIONS_H
#define PHLOEM_OPTIONS_H

#include <stddef.h>

/* A caller's memory for a text, which is cut to fit and ends in a NUL. Zero-initialised: the text is not
 * wanted. */
struct ph_buffer {
    char *text;
    size_t size; /* bytes, the NUL included */
};

#endif
