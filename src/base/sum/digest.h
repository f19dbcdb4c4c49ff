/* SHA-256, over libcrypto. */
#ifndef PH_BASE_DIGEST_H
#define PH_BASE_DIGEST_H

#include <stddef.h>

#include "phloem/status.h"

#define PH_DIGEST_BYTES 32

struct ph_digest;

ph_status ph__digest_create(struct ph_digest **digest_out);
ph_status ph__digest_update(struct ph_digest *digest, const void *bytes, size_t size);
/* One of the two, once. */
ph_status ph__digest_finish(struct ph_digest *digest, char hex_out[65]);
ph_status ph__digest_finish_bytes(struct ph_digest *digest, unsigned char sum_out[PH_DIGEST_BYTES]);
ph_status ph__digest_file(const char *path, char hex_out[65]); /* PH_ERROR_DATA naming the path */
void ph__digest_destroy(struct ph_digest *digest);

#endif
