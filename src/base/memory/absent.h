/* Memory of numbers that are not there. A simulated rank's parameters, activations and gradients have
 * addresses and sizes, but no bytes: nothing computes them. To touch them is a bug, which ends the process
 * by SIGSEGV.
 *
 * A thread that uses an absent memory gets all its numbers from there. Threads may share one if one of them
 * runs at a time. */
#ifndef PH_BASE_ABSENT_H
#define PH_BASE_ABSENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phloem/status.h"

struct ph__absent {
    unsigned char *begin, *end, *next; /* addresses, reserved; those before next are given away */
};

/* Reserves addresses. PH_ERROR_MEMORY. */
ph_status ph__absent_init(struct ph__absent *absent);
void ph__absent_fini(struct ph__absent *absent);

/* Set and return the calling thread's absent memory. NULL: it has none. Borrowed. */
void ph__absent_use(struct ph__absent *absent);
const struct ph__absent *ph__absent_used(void);

/* Returns the bytes of numbers that the calling thread has allocated, and not freed, in absent memory. */
uint64_t ph__absent_live_bytes(void);

/* Returns true when the calling thread's absent memory has the address. */
bool ph__memory_is_absent(const void *pointer);

/* Names what the calling thread runs, for the error of a touch. Static or borrowed until the next call. */
void ph__absent_run(const char *what);
/* Lets a touch end the process with one line, which names what ran, and exit code 1. Called once, by a
 * program. */
void ph__absent_explain_touches(void);

/* Allocates memory for numbers that only operators and messages touch: as ph__memory_alloc does or, where the
 * thread uses an absent memory, there. Freed with ph__numbers_free by a thread that uses the same. */
ph_status ph__numbers_alloc(size_t size, const char *what, void **pointer_out);
void ph__numbers_free(void *pointer, size_t size);
/* Moves numbers as memmove does, unless either side is absent. */
void ph__numbers_move(void *to, const void *from, size_t bytes);

#endif
