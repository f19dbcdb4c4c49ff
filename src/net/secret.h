/* A secret that both sides of a connection were given in a file: what proves to each that the other belongs to it. */
#ifndef PH_NET_SECRET_H
#define PH_NET_SECRET_H

#include <stddef.h>

#include "phloem/status.h"

#define PH_SECRET_MIN_BYTES 16
#define PH_SECRET_MAX_BYTES 1024

struct ph_secret {
    size_t size;
    unsigned char bytes[PH_SECRET_MAX_BYTES];
};

/* The bytes of a file, without the line end that an editor leaves behind the last of them. PH_ERROR_CONFIG naming the path
 * when it cannot be read, is too short or too long, or when its mode lets anyone but its owner at it. The bytes should be
 * drawn by chance: whoever has seen a handshake can try secrets as fast as he can compute. */
ph_status ph__secret_read(const char *path, struct ph_secret *secret_out);

/* Wipes it. */
void ph__secret_fini(struct ph_secret *secret);

#endif
