#include "train/config/train_options.h"

#define PARALLEL(member) struct ph_parallel_settings, member

static const struct ph__option options[] = {
    PH_PATH_KEY("plan", PARALLEL(plan), "auto",
        "Which rank holds which rows and columns of which table. A plan file (docs/PARALLEL.md); auto: one "
        "is made from bytes, pooling, nominal bandwidth and memory; none: every rank holds all tables.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_PER_RANK),
    PH_CHOICE_KEY("sync", PARALLEL(sync), "allreduce", "none|allreduce|hub",
        "How ranks share the gradients of dense layers. allreduce: all ranks sum them in the order of the "
        "ranks; hub: parallel.hub does, with the same bits; none: there is one rank.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_TEXT_KEY("transport", PARALLEL(transport), "auto",
        "What carries messages between ranks: openmpi, mpich, self (one rank); auto: by what has started "
        "them.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME | PH_KEY_PER_RANK),
    PH_INTEGER_KEY("ranks_per_host", PARALLEL(ranks_per_host), "0", 0, 65536,
        "0: ranks are on the hosts that they run on; else as many in a row count as one host.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_NUMBER_KEY("timeout_seconds", PARALLEL(timeout_seconds), "300", .001, 1e6,
        "Of every wait for another rank, after which all of them end. Ranks wait for the slowest to write "
        "its part of a checkpoint.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_INTEGER_KEY("memory_bytes", PARALLEL(memory_bytes), "0", 0, 9e15,
        "What a rank may spend on tables and their optimizer's memory: a plan that is made keeps to it, any "
        "other, and one rank alone, must not take more; 0: no limit, but a plan that is made keeps to each "
        "rank's share of its machine's memory.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_CHOICE_KEY("forward", PARALLEL(forward), "fp32", "fp32|fp16|bf16|int8",
        "How pooled vectors travel between ranks. int8: in a byte each, and a scale a vector."),
    PH_CHOICE_KEY("backward", PARALLEL(backward), "fp32", "fp32|fp16|bf16|int8",
        "How the gradients of pooled vectors travel between ranks."),
    PH_CHOICE_KEY("dense", PARALLEL(dense), "fp32", "fp32|fp16|bf16|int8",
        "How the gradients of dense layers travel between ranks. int8: a scale for each 256 of them; not to "
        "a hub."),
    PH_INTEGER_KEY("bucket_bytes", PARALLEL(bucket_bytes), "1048576", 1, 1e12,
        "Gradients of dense layers that are summed over ranks as one, in up to 2048 such buckets.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_BOOL_KEY("overlap", PARALLEL(overlap), "true",
        "Gradients travel between ranks, and are summed, while further ones are computed.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_TEXT_KEY("hub", PARALLEL(hub), "",
        "Of sync: hub, where phloem hub is ready: host:port, or several that share the work, with commas "
        "between them. A rank that is alone asks none.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_PATH_KEY("hub_secret_file", PARALLEL(hub_secret_file), "",
        "The hub's secret file. Without it the hub listens on the loopback.", .traits = PH_KEY_IS_PLACE),
    PH_TEXT_KEY("hub_job", PARALLEL(hub_job), "",
        "What the hub calls this training, which no other one there may be called. Empty: a name drawn by "
        "chance.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
};

const struct ph__option_table ph__parallel_options = {
    .section = "parallel",
    .help = "Training on several ranks.",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct ph_parallel_settings),
};
