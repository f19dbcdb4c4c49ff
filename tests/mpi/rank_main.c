/* See rank_main.h. */
#include "rank_main.h"

#include <stdio.h>
#include <string.h>

int rank_main(const char *program, size_t ranks_per_host, rank_run *run, int argc, char **argv)
{
    const struct ph_comm_options options = {
        .size = sizeof options, .timeout_seconds = 60, .ranks_per_host = ranks_per_host};
    struct ph_comm *comm;
    ph_status status = ph_comm_create(&options, &comm);
    if (status != PH_OK) {
        fprintf(stderr, "%s: %s\n", program, ph_error_text());
        return ph_status_exit_code(status);
    }
    status = run(comm, argc, argv);
    if (status == PH_OK)
        status = ph_comm_leave(comm);
    const char *name = ph_comm_describe(comm);
    if (status == PH_OK && ph_comm_rank(comm) == 0)
        printf("%zu ranks of %.*s: fine\n", ph_comm_world_size(comm), (int)strcspn(name, ","), name);
    if (status != PH_OK)
        ph_comm_fail(comm, status);
    const bool speaks = status != PH_OK && ph_comm_speaks(comm);
    ph_comm_destroy(comm);
    if (speaks)
        fprintf(stderr, "%s: %s\n", program, ph_error_text());
    return ph_status_exit_code(status);
}
