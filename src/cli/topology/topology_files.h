/* Files of a probe: FILE.part, which a later probe goes on from, and FILE, a topology file of kind measured
 * (plan/fabric.h). Both are replaced at once. */
#ifndef PH_CLI_TOPOLOGY_FILES_H
#define PH_CLI_TOPOLOGY_FILES_H

#include "comm/probe/probe_control.h"

struct cli_topology_files {
    const char *path;                      /* of FILE */
    char part_path[4096];                  /* of FILE.part */
    const struct ph__netprobe_host *hosts; /* their names */
    struct ph__netprobe_result result;
    size_t ranks_per_host;
};

/* Writes FILE.part. PH_ERROR_DISK. */
ph_status cli_topology_part_write(const struct cli_topology_files *file);
/* Reads pairs, or trunks where the groups are known, from FILE.part; none where there is no such file.
 * PH_ERROR_DATA: it is damaged, or of other hosts. */
ph_status cli_topology_part_read(struct cli_topology_files *file);
/* Writes FILE, and removes FILE.part. PH_ERROR_DISK. */
ph_status cli_topology_file_write(const struct cli_topology_files *file);

#endif
