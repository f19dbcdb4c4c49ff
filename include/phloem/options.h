/* Members that callers' structs have in common: their size, so that structs can grow, and text buffers.
 *
 * An option struct begins with its size, which the caller sets; the rest is zero unless the caller sets it:
 *
 *     struct ph_backend_options options = {.size = sizeof options, .num_threads = 2};
 *
 * So a program and a library may have different versions of a struct. An older version is shorter: the
 * missing members are zero, the default. A newer version is longer: it is accepted when all members that the
 * library does not know are zero. Otherwise, or when the size is not set, calls fail with PH_ERROR_USAGE,
 * naming the struct. */
#ifndef PHLOEM_OPTIONS_H
#define PHLOEM_OPTIONS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A caller's memory for a text, which is cut to fit and ends in a NUL. Zero-initialised: none is wanted. */
struct ph_buffer {
    char *text;
    size_t size; /* bytes, the NUL included */
};

/* Frees a text that a function of the library gave to its caller; NULL is fine. */
void ph_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
