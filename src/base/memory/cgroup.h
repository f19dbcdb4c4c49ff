/* What the control groups of this process allow: the tightest limit of its own group and all groups above it.
 * `root` stands before every path that is read: "" is the machine, a folder is a test's imitation of one.
 * Every function gives false when no limit is known; unreadable files count as no limit. */
#ifndef PH_BASE_CGROUP_H
#define PH_BASE_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes until the memory limit: limit - usage + page cache that the kernel would give up first. */
bool ph__cgroup_memory_remaining(const char *root, uint64_t *bytes_out);

/* The memory limit itself, whatever is used of it. */
bool ph__cgroup_memory_limit(const char *root, uint64_t *bytes_out);

/* Processor time a wall-clock second: 1.5 is one and a half processors. */
bool ph__cgroup_cpu_quota(const char *root, double *processors_out);

#endif
