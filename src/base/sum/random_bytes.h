/* Bytes that nobody can guess, from the kernel: for nonces, never for training (base/rng.h). Any thread. */
#ifndef PH_BASE_RANDOM_BYTES_H
#define PH_BASE_RANDOM_BYTES_H

#include <stddef.h>

#include "phloem/status.h"

/* Waits where the machine has just started and has gathered too little chance so far. PH_ERROR_BUG where the
 * system has none to give; then nothing of bytes_out may be used. */
ph_status ph__random_bytes(void *bytes_out, size_t size);

#endif
