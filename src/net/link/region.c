/* Memory regions. For seals see memfd_create(2), fcntl(2). */
#include "net/link/region.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sizes.h"

#define LARGE_PAGE ((size_t)2 << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; unlike MADV_HUGEPAGE, needs no setting of the machine */
#endif

static ph_status map_at(
    const char *name, int descriptor, size_t size, bool is_writable, void *address, void **memory_out)
{
    const int protection = is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
    const int flags = address != NULL ? MAP_SHARED | MAP_FIXED : MAP_SHARED;
    void *memory = mmap(address, size, protection, flags, descriptor, 0);
    if (memory == MAP_FAILED)
        return ph_fail(PH_ERROR_MEMORY, "%s: %zu bytes of shared memory cannot be mapped: %s", name, size,
            strerror(errno));
    *memory_out = memory;
    return PH_OK;
}

/* Maps a region. Large regions lie on a multiple of 2 MiB, so that the kernel can use pages of that size
 * (ph__region_enlarge_pages). */
static ph_status map_region(
    const char *name, int descriptor, size_t size, bool is_writable, void **memory_out)
{
    if (size < LARGE_PAGE)
        return map_at(name, descriptor, size, is_writable, NULL, memory_out);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t reserved = ph__round_up(size, page) + LARGE_PAGE;
    char *reservation = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reservation == MAP_FAILED)
        return ph_fail(
            PH_ERROR_MEMORY, "%s: cannot reserve addresses for %zu bytes: %s", name, size, strerror(errno));
    char *aligned = (char *)ph__round_up((size_t)reservation, LARGE_PAGE);
    const ph_status status = map_at(name, descriptor, size, is_writable, aligned, memory_out);
    if (status != PH_OK) {
        munmap(reservation, reserved);
        return status;
    }
    char *end = aligned + ph__round_up(size, page);
    if (aligned > reservation)
        munmap(reservation, (size_t)(aligned - reservation));
    if (reservation + reserved > end)
        munmap(end, (size_t)(reservation + reserved - end));
    return PH_OK;
}

static ph_status set_size(const char *name, int descriptor, size_t size)
{
    if (ftruncate(descriptor, (off_t)size) != 0 ||
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return ph_fail(PH_ERROR_MEMORY, "%s: cannot reserve %zu bytes of shared memory: %s", name, size,
            strerror(errno));
    return PH_OK;
}

ph_status ph__region_create(const char *name, size_t size, struct ph__region *region_out)
{
    struct ph__region region = {
        .descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), .size = size};
    if (region.descriptor < 0)
        return ph_fail(PH_ERROR_MEMORY, "%s: cannot create shared memory: %s", name, strerror(errno));
    ph_status status = set_size(name, region.descriptor, size);
    if (status == PH_OK)
        status = map_region(name, region.descriptor, size, true, &region.memory);
    if (status != PH_OK) {
        close(region.descriptor);
        return status;
    }
    *region_out = region;
    return PH_OK;
}

ph_status ph__region_seal_read_only(const struct ph__region *region)
{
    if (fcntl(region->descriptor, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0)
        return ph_fail(PH_ERROR_MEMORY, "shared memory cannot be sealed: %s", strerror(errno));
    return PH_OK;
}

static ph_status check_sent_region(int descriptor, size_t size)
{
    struct stat about;
    if (fstat(descriptor, &about) != 0)
        return ph_fail(PH_ERROR_PEER, "received shared memory cannot be examined: %s", strerror(errno));
    if (about.st_size < 0 || (size_t)about.st_size != size)
        return ph_fail(PH_ERROR_PEER, "received shared memory has %lld bytes instead of %zu",
            (long long)about.st_size, size);
    const int seals = fcntl(descriptor, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0)
        return ph_fail(PH_ERROR_PEER, "received shared memory is not sealed: it could shrink");
    return PH_OK;
}

ph_status ph__region_open(int descriptor, size_t size, bool is_writable, struct ph__region *region_out)
{
    struct ph__region region = {.descriptor = descriptor, .size = size};
    ph_status status = check_sent_region(descriptor, size);
    if (status == PH_OK)
        status = map_region("received shared memory", descriptor, size, is_writable, &region.memory);
    if (status != PH_OK) {
        close(descriptor);
        return status;
    }
    *region_out = region;
    return PH_OK;
}

/* Touches the first small page of each large one, since the kernel collapses only pages that exist. The
 * atomic OR of 0 loses no concurrent write. */
size_t ph__region_enlarge_pages(const struct ph__region *region, const void *begin, size_t size)
{
    char *memory = region->memory;
    const size_t first = (size_t)((const char *)begin - memory), end = first + size;
    size_t bytes = 0;
    for (size_t at = ph__round_up(first, LARGE_PAGE); at < end && at + LARGE_PAGE <= region->size;
         at += LARGE_PAGE, bytes += LARGE_PAGE) {
        __atomic_fetch_or(memory + at, 0, __ATOMIC_RELAXED);
        madvise(memory + at, LARGE_PAGE, MADV_COLLAPSE);
    }
    return bytes;
}

void ph__region_close(struct ph__region *region)
{
    if (region->memory == NULL)
        return;
    munmap(region->memory, region->size);
    if (region->descriptor >= 0)
        close(region->descriptor);
    *region = (struct ph__region){.descriptor = -1};
}
