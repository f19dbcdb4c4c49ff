/* What the structs that callers fill in have in common. */
#ifndef PHLOEM_OPTIONS_H
#define PHLOEM_OPTIONS_H

#include <stddef.h>

/* A caller's memory for a text, which is cut to fit and ends in a NUL. Zero-initialised: the text is not wanted. */
struct ph_buffer {
    char *text;
    size_t size; /* bytes, the NUL included */
};

#endif
