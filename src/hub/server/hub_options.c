#include "hub/server/hub_options.h"

#include <stddef.h>

#define HUB(member) offsetof(struct ph_hub_server_options, member)
#define MAX_BYTES 9e15

static const struct ph__option options[] = {
    {.key = "address",
        .type = PH_OPTION_TEXT,
        .offset = HUB(address),
        .default_text = "127.0.0.1:0",
        .help = "host:port to listen at. Port 0: one that is free. Beyond the loopback hub.secret_file is "
                "needed."},
    {.key = "secret_file",
        .type = PH_OPTION_PATH,
        .offset = HUB(secret_file),
        .default_text = "",
        .help = "File of 16 to 1024 random bytes that workers have too; nobody but its owner may read it."},
    {.key = "threads",
        .type = PH_OPTION_INTEGER,
        .offset = HUB(num_threads),
        .default_text = "0",
        .min = 0,
        .max = 128,
        .help = "Core threads, which sum gradients. 0: one a processor. No more than processors are pinned, "
                "each to its own."},
    {.key = "wait",
        .type = PH_OPTION_CHOICE,
        .offset = HUB(wait),
        .default_text = "auto",
        .choices = "auto|spin|spin_then_sleep|sleep",
        .help = "What core threads do while there is nothing to do. auto: spin, then sleep; sooner where "
                "threads and workers outnumber the processors."},
    {.key = "aggregation",
        .type = PH_OPTION_CHOICE,
        .offset = HUB(aggregation),
        .default_text = "tall",
        .choices = "tall|wide",
        .help = "tall: each chunk is summed by one core thread, in one pass. wide: all core threads work on "
                "each key together, one copy after the other, as other parameter servers do: to compare "
                "with; synchronous jobs in worker order alone, and no hub.checkpoint_folder."},
    {.key = "results",
        .type = PH_OPTION_CHOICE,
        .offset = HUB(results),
        .default_text = "auto",
        .choices = "auto|cached|non_temporal",
        .help =
            "How new parameters are written: through the caches or past them. auto: past them where they are "
            "sent over TCP and are more than the core threads' own caches hold. The same bits."},
    {.key = "max_bytes",
        .type = PH_OPTION_INTEGER,
        .offset = HUB(max_bytes),
        .default_text = "0",
        .min = 0,
        .max = MAX_BYTES,
        .help = "Memory of all jobs together. 0: what the machine has left at start."},
    {.key = "max_job_bytes",
        .type = PH_OPTION_INTEGER,
        .offset = HUB(max_job_bytes),
        .default_text = "0",
        .min = 0,
        .max = MAX_BYTES,
        .help = "Memory of one job. 0: no limit of its own."},
    {.key = "max_jobs",
        .type = PH_OPTION_INTEGER,
        .offset = HUB(max_jobs),
        .default_text = "64",
        .min = 1,
        .max = PH_HUB_MAX_JOBS,
        .help = "Services that there may be at a time."},
    {.key = "chunk_bytes",
        .type = PH_OPTION_INTEGER,
        .offset = HUB(chunk_bytes),
        .default_text = "0",
        .min = 0,
        .max = PH_HUB_MAX_CHUNK_BYTES,
        .help =
            "What is sent, summed and stepped as one, of jobs that name no size: a multiple of 64. 0: what "
            "is measured to be good when the first such job begins, 8 KiB to 2 MiB and 32 KiB where "
            "nothing is clearly better; less for jobs too small to keep all core threads busy; 32 KiB for "
            "jobs that clip, for their bits follow it."},
    {.key = "checkpoint_folder",
        .type = PH_OPTION_PATH,
        .offset = HUB(checkpoint_folder),
        .default_text = "",
        .help = "Folder of the jobs' checkpoints. Without it jobs are not kept."},
    {.key = "metrics_address",
        .type = PH_OPTION_TEXT,
        .offset = HUB(metrics_address),
        .default_text = "",
        .help = "host:port to serve Prometheus metrics at: http://host:port/metrics, to "
                "anybody who reaches it. Empty: none."},
    {.key = "trace",
        .type = PH_OPTION_PATH,
        .offset = HUB(trace_path),
        .default_text = "",
        .help = "File that gets a Chrome trace of the first chunks' ways when the hub stops; with tall "
                "aggregation."},
    {.key = "log",
        .type = PH_OPTION_CHOICE,
        .offset = HUB(log),
        .default_text = "text",
        .choices = "text|json|none",
        .help = "A line an event, on standard error. text: key=value."},
};

const struct ph__option_table ph__hub_options = {
    .section = "hub",
    .help = "What phloem hub starts with: a config of its own.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct ph_hub_server_options),
};
