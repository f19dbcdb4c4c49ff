/* Unpredictable bytes from the kernel: for nonces, never for training (base/rng.h). Any thread. */
#ifndef PH_BASE_RANDOM_BYTES_H
#define PH_BASE_RANDOM_BYTES_H

#include <stddef.h>

#include "phloem/status.h"

/* Gives random bytes. Waits on a machine that has just started and lacks entropy. PH_ERROR_BUG when the
 * system has none to give; bytes_out must not be used then. */
ph_status ph__random_bytes(void *bytes_out, size_t size);

#endif
