#include "hub/server/hub_options.h"

#include <stddef.h>

#define HUB(member) struct ph_hub_server_options, member
#define MAX_BYTES 9e15

static const struct ph__option options[] = {
    PH_TEXT_KEY("address", HUB(address), "127.0.0.1:0",
        "Address to listen at, host:port. Port 0: a free one. An address that other hosts can reach requires "
        "hub.secret_file."),
    PH_PATH_KEY("secret_file", HUB(secret_file), "",
        "File of 16 to 1024 random bytes that the workers have, too; only its owner may have access to it. "
        "Empty: no secret."),
    PH_INTEGER_KEY("threads", HUB(num_threads), "0", 0, 128,
        "Number of core threads, which sum gradients. 0: one for each processor. Each is pinned to a "
        "processor, unless there are more of them than processors."),
    PH_CHOICE_KEY("wait", HUB(wait), "auto", "auto|spin|spin_then_sleep|sleep",
        "Behaviour of idle core threads. auto: as spin_then_sleep, but spins shorter and yields its "
        "processor where threads and workers outnumber the processors. spin: keeps looking for work. "
        "spin_then_sleep: looks for 100 us, then sleeps. sleep: sleeps at once."),
    PH_CHOICE_KEY("aggregation", HUB(aggregation), "tall", "tall|wide",
        "Division of the sums among core threads. tall: one core thread sums a chunk, in one pass. wide: all "
        "core threads sum each key together, one copy after another, as other parameter servers do. wide is "
        "meant for comparisons: only synchronous jobs in worker order, and no hub.checkpoint_folder."),
    PH_CHOICE_KEY("results", HUB(results), "auto", "auto|cached|non_temporal",
        "Way in which new parameters are written to memory; the bits are the same. cached: through the "
        "caches. non_temporal: past them. auto: past them where they are sent over TCP and exceed the core "
        "threads' own caches."),
    PH_INTEGER_KEY("max_bytes", HUB(max_bytes), "0", 0, MAX_BYTES,
        "Bytes of memory for all jobs together. 0: the free memory of the machine at start."),
    PH_INTEGER_KEY("max_job_bytes", HUB(max_job_bytes), "0", 0, MAX_BYTES,
        "Bytes of memory for one job. 0: no limit besides hub.max_bytes."),
    PH_INTEGER_KEY(
        "max_jobs", HUB(max_jobs), "64", 1, PH_HUB_MAX_JOBS, "Maximum number of services at a time."),
    PH_INTEGER_KEY("chunk_bytes", HUB(chunk_bytes), "0", 0, PH_HUB_MAX_CHUNK_BYTES,
        "Bytes of a chunk, the unit that is sent, summed and stepped, for jobs that set no size: a multiple "
        "of 64. 0: measured when the first such job begins, 8 KiB to 2 MiB, and 32 KiB where no size is "
        "clearly better; smaller for jobs too small to keep all core threads busy; 32 KiB for jobs that "
        "clip, since their bits depend on it."),
    PH_PATH_KEY("checkpoint_folder", HUB(checkpoint_folder), "",
        "Folder of the jobs' checkpoints. Empty: no checkpoints; jobs end with the hub."),
    PH_TEXT_KEY("metrics_address", HUB(metrics_address), "",
        "Address of Prometheus metrics, host:port: anybody who can reach it can read "
        "http://host:port/metrics. Empty: no metrics."),
    PH_PATH_KEY("trace", HUB(trace_path), "",
        "File that the hub writes when it stops: a Chrome trace of the first chunks. Only with tall "
        "aggregation."),
    PH_CHOICE_KEY("log", HUB(log), "text", "text|json|none",
        "Format of the log on standard error, one line for each event. text: key=value. json: an object. "
        "none: no log."),
};

const struct ph__option_table ph__hub_options = {
    .section = "hub",
    .help = "Keys of phloem hub, in a config of its own.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct ph_hub_server_options),
};
