/* Files of a probe: FILE.part, from which a later probe goes on, and FILE, a topology file of kind measured
 * (plan/fabric.h). Each is replaced as a whole. */
#ifndef PH_CLI_TOPOLOGY_FILES_H
#define PH_CLI_TOPOLOGY_FILES_H

#include "comm/probe/probe_control.h"

struct cli_topology_files {
    const char *path, *part_path;          /* of FILE and FILE.part */
    const struct ph__netprobe_host *hosts; /* their names */
    struct ph__netprobe_result result;
    size_t ranks_per_host;
};

/* Writes FILE.part. PH_ERROR_DISK. */
ph_status cli_topology_part_write(const struct cli_topology_files *file);
/* Reads what FILE.part has; nothing where there is no such file. PH_ERROR_DATA: it is damaged, or of other
 * hosts. */
ph_status cli_topology_part_read(struct cli_topology_files *file);
/* Writes FILE, and removes FILE.part. PH_ERROR_DISK. */
ph_status cli_topology_file_write(const struct cli_topology_files *file);

#endif
