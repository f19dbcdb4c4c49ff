#include "smpi.h"

#include <stdlib.h>

static void write_links(FILE *file, const struct ph__fabric *fabric)
{
    for (size_t host = 0; host < fabric->num_hosts; host++)
        fprintf(file, "<host id=\"h%zu\" speed=\"1Gf\"/>\n", host);
    for (size_t i = 0; i < fabric->num_links; i++)
        fprintf(file, "<link id=\"l%zu\" bandwidth=\"%.17gBps\" latency=\"%.17gns\"/>\n", i,
            fabric->links[i].bytes_per_ns * 1e9, fabric->links[i].latency_ns);
}

static void write_route(FILE *file, const struct ph__fabric *fabric, size_t from, size_t to)
{
    uint32_t links[PH_FABRIC_MAX_HOPS];
    const size_t num_links = ph__fabric_route_of_hosts(fabric, from, to, links);
    fprintf(file, "<route src=\"h%zu\" dst=\"h%zu\" symmetrical=\"NO\">", from, to);
    for (size_t i = 0; i < num_links; i++)
        fprintf(file, "<link_ctn id=\"l%u\"/>", links[i]);
    fprintf(file, "</route>\n");
}

ph_status smpi_write_platform(const struct ph__fabric *fabric, const char *path)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return ph_fail(PH_ERROR_DISK, "%s: cannot write", path);
    fprintf(file, "<?xml version='1.0'?>\n"
                  "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                  "<platform version=\"4.1\">\n<zone id=\"all\" routing=\"Full\">\n");
    write_links(file, fabric);
    for (size_t from = 0; from < fabric->num_hosts; from++)
        for (size_t to = 0; to < fabric->num_hosts; to++)
            if (from != to)
                write_route(file, fabric, from, to);
    fprintf(file, "</zone>\n</platform>\n");
    const bool is_written = !ferror(file);
    return fclose(file) == 0 && is_written ? PH_OK : ph_fail(PH_ERROR_DISK, "%s: cannot write", path);
}

bool smpi_simulate(struct peer *smpi, const struct ph__fabric *fabric, const char *platform,
    const struct schedule *schedule, struct smpi_outcome *outcome_out)
{
    const struct ph__fabric_messages *messages = &fabric->messages;
    if (!peer_accepts(smpi,
            "case %s platform=%s ranks=%u bytes=%zu send_us=%.17g receive_us=%.17g eager=%lld "
            "ranks_per_host=%zu host_us=%.17g host_rate=%.17g",
            schedule_names[schedule->kind], platform, schedule->num_ranks, schedule->bytes, messages->send_us,
            messages->receive_us, (long long)messages->eager_bytes, fabric->ranks_per_host,
            messages->host_latency_us, fabric->machine.host_bytes_per_s))
        return false;
    const char *answer = peer_ask(smpi, "run 1");
    char *end = NULL;
    const double seconds = answer != NULL ? strtod(answer, &end) : 0;
    if (answer == NULL || end == answer) {
        printf("peer smpi: %s\n", answer != NULL ? answer : "no answer");
        return false;
    }
    answer = peer_ask(smpi, "took 1");
    *outcome_out = (struct smpi_outcome){seconds, answer != NULL ? strtod(answer, NULL) : 0};
    return true;
}
