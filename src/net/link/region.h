/* Memory that processes of a host share: a memfd that its maker maps before any other process sees it. Its
 * size is sealed, so that no holder of the descriptor can take pages away from another. */
#ifndef PH_NET_REGION_H
#define PH_NET_REGION_H

#include <stdbool.h>
#include <stddef.h>

#include "phloem/status.h"

struct ph__region { /* zero-initialised: none */
    int descriptor; /* owned; -1 when given away or not needed */
    size_t size;
    void *memory; /* mapped, zeros at first; aligned to a page, to 2 MiB when it is that large */
};

/* Creates a region of `size` bytes > 0 under a name that /proc shows. PH_ERROR_MEMORY naming name and
 * size. */
ph_status ph__region_create(const char *name, size_t size, struct ph__region *region_out);

/* Forbids new writable mappings from now on; the existing mapping stays writable. */
ph_status ph__region_seal_read_only(const struct ph__region *region);

/* Maps a region that another process has created and sent. Owns the descriptor, also after an error.
 * PH_ERROR_PEER unless the region has exactly this size and is sealed. */
ph_status ph__region_open(int descriptor, size_t size, bool is_writable, struct ph__region *region_out);

/* Asks the kernel to back with large pages those pages of 2 MiB that begin in [begin, begin + size) and lie
 * in the region whole. Unwritten memory comes from the calling thread's NUMA node. Returns their bytes. Only
 * a hint: pages may stay small. The content stays, also under concurrent reads and writes. */
size_t ph__region_enlarge_pages(const struct ph__region *region, const void *begin, size_t size);

void ph__region_close(struct ph__region *region);

#endif
