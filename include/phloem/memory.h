/* Hooks for programs that place or count the library's large memory: tensors, tables, workspaces and the
 * buffers of batches, which grow with the model and the data. Small objects come from malloc.
 *
 * The library writes no log of its own: notes of a training reach its observer (phloem/train.h). */
#ifndef PHLOEM_MEMORY_H
#define PHLOEM_MEMORY_H

#include <stddef.h>

#include "phloem/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ph_memory_hooks {
    size_t size; /* sizeof the struct: phloem/options.h */
    void *context;
    /* Returns memory for `bytes` bytes, at least 1, zeroed and aligned to 64; NULL: there is none. Any thread
     * calls it. */
    void *(*allocate)(void *context, size_t bytes);
    /* Frees what allocate returned for as many bytes. */
    void (*release)(void *context, void *pointer, size_t bytes);
};

/* Sets the hooks of the process; NULL: the library's own allocation again. Called by one thread while no
 * other one is in the library. PH_ERROR_USAGE: a function is missing, or memory from before is still in use.
 */
PH_MUST_CHECK ph_status ph_memory_set_hooks(const struct ph_memory_hooks *hooks);

#ifdef __cplusplus
}
#endif
#endif
