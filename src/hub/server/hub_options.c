#include "hub/server/hub_options.h"

#include <stddef.h>

#define HUB(member) struct ph_hub_server_options, member
#define MAX_BYTES 9e15

static const struct ph__option options[] = {
    PH_TEXT_KEY("address", HUB(address), "127.0.0.1:0",
        "host:port to listen at. Port 0: one that is free. Beyond the loopback hub.secret_file is needed."),
    PH_PATH_KEY("secret_file", HUB(secret_file), "",
        "File of 16 to 1024 random bytes that workers have too; nobody but its owner may read it."),
    PH_INTEGER_KEY("threads", HUB(num_threads), "0", 0, 128,
        "Core threads, which sum gradients. 0: one a processor. No more than processors are pinned, each to "
        "its own."),
    PH_CHOICE_KEY("wait", HUB(wait), "auto", "auto|spin|spin_then_sleep|sleep",
        "What core threads do while there is nothing to do. auto: spin, then sleep; sooner where threads and "
        "workers outnumber the processors."),
    PH_CHOICE_KEY("aggregation", HUB(aggregation), "tall", "tall|wide",
        "tall: each chunk is summed by one core thread, in one pass. wide: all core threads work on each key "
        "together, one copy after the other, as other parameter servers do: to compare with; synchronous "
        "jobs in worker order alone, and no hub.checkpoint_folder."),
    PH_CHOICE_KEY("results", HUB(results), "auto", "auto|cached|non_temporal",
        "How new parameters are written: through the caches or past them. auto: past them where they are "
        "sent over TCP and are more than the core threads' own caches hold. The same bits."),
    PH_INTEGER_KEY("max_bytes", HUB(max_bytes), "0", 0, MAX_BYTES,
        "Memory of all jobs together. 0: what the machine has left at start."),
    PH_INTEGER_KEY(
        "max_job_bytes", HUB(max_job_bytes), "0", 0, MAX_BYTES, "Memory of one job. 0: no limit of its own."),
    PH_INTEGER_KEY(
        "max_jobs", HUB(max_jobs), "64", 1, PH_HUB_MAX_JOBS, "Services that there may be at a time."),
    PH_INTEGER_KEY("chunk_bytes", HUB(chunk_bytes), "0", 0, PH_HUB_MAX_CHUNK_BYTES,
        "What is sent, summed and stepped as one, of jobs that name no size: a multiple of 64. 0: what is "
        "measured to be good when the first such job begins, 8 KiB to 2 MiB and 32 KiB where nothing is "
        "clearly better; less for jobs too small to keep all core threads busy; 32 KiB for jobs that clip, "
        "for their bits follow it."),
    PH_PATH_KEY("checkpoint_folder", HUB(checkpoint_folder), "",
        "Folder of the jobs' checkpoints. Without it jobs are not kept."),
    PH_TEXT_KEY("metrics_address", HUB(metrics_address), "",
        "host:port to serve Prometheus metrics at: http://host:port/metrics, to anybody who reaches it. "
        "Empty: none."),
    PH_PATH_KEY("trace", HUB(trace_path), "",
        "File that gets a Chrome trace of the first chunks' ways when the hub stops; with tall aggregation."),
    PH_CHOICE_KEY(
        "log", HUB(log), "text", "text|json|none", "A line an event, on standard error. text: key=value."),
};

const struct ph__option_table ph__hub_options = {
    .section = "hub",
    .help = "What phloem hub starts with: a config of its own.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct ph_hub_server_options),
};
