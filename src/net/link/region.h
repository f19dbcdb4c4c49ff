/* Memory that processes of a host share: a memfd that its maker has mapped before anybody else sees it. Its
 * size is sealed, so that no holder of the descriptor can take pages away under another's feet. */
#ifndef PH_NET_REGION_H
#define PH_NET_REGION_H

#include <stdbool.h>
#include <stddef.h>

#include "phloem/status.h"

struct ph__region { /* zero-initialised: none */
    int descriptor; /* owned; -1 once it was given away or is not needed */
    size_t size;
    void *memory; /* mapped, zeros at first; aligned to a page, to 2 MiB where it is as large */
};

/* Makes `size` bytes > 0 under a name that /proc shows. PH_ERROR_MEMORY naming it and the size. */
ph_status ph__region_create(const char *name, size_t size, struct ph__region *region_out);

/* From now on nobody can map it for writing any more; the mapping that is there stays writable. */
ph_status ph__region_seal_read_only(const struct ph__region *region);

/* Maps what another process has made and sent; owns the descriptor from now on, also where it fails.
 * PH_ERROR_PEER unless it has exactly this size and is sealed. */
ph_status ph__region_open(int descriptor, size_t size, bool is_writable, struct ph__region *region_out);

/* Has the kernel back those pages of 2 MiB by large ones that begin in [begin, begin + size) of the region
 * and lie in it whole; where nothing was written there, of the NUMA node of the calling thread. Returns their
 * bytes. A wish: where it cannot be had, pages stay small. What they hold stays, whoever reads and writes it
 * meanwhile. */
size_t ph__region_enlarge_pages(const struct ph__region *region, const void *begin, size_t size);

void ph__region_close(struct ph__region *region);

#endif
