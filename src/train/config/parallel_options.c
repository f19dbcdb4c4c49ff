#include "train/config/train_options.h"

#define PARALLEL(member) struct ph_parallel_settings, member

static const struct ph__option options[] = {
    PH_PATH_KEY("plan", PARALLEL(plan), "auto",
        "Plan that places rows and columns of tables on ranks. auto: made from the tables' bytes, pooling, "
        "nominal bandwidths and memory. none: every rank holds all tables. Else: a plan file "
        "(docs/PARALLEL.md).",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_PER_RANK),
    PH_CHOICE_KEY("dense_mode", PARALLEL(dense_mode), "auto",
        "auto|replicated|zero1|keep_after_forward|full|hybrid",
        "Way in which ranks hold the parameters of dense layers. replicated: whole, on every rank. zero1: "
        "whole, with a part of the optimizer's memory. keep_after_forward, full: a part, gathered for a "
        "step, "
        "or for each use. hybrid: full within groups of ranks. auto: as the plan file says; where ranks make "
        "the plan, the first of these that memory allows (docs/PARALLEL.md).",
        .traits = PH_KEY_MAY_CHANGE),
    PH_PATH_KEY("topology", PARALLEL(topology), "",
        "Topology file whose rates and memory plan: auto uses in place of the nominal ones, and whose groups "
        "and links parallel.collective goes by; rank 0 reads it (docs/PARALLEL.md). Empty: none.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_CHOICE_KEY("sync", PARALLEL(sync), "allreduce", "none|allreduce|hub",
        "Way in which ranks sum the gradients of dense layers. allreduce: among themselves, in the order of "
        "the ranks. hub: at parallel.hub, with the same bits. none: no sum; for a single rank only.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_CHOICE_KEY("collective", PARALLEL(collective), "exchange", "exchange|hierarchical|ring|auto",
        "Way in which all ranks sum the gradients of dense layers, and gather sharded ones. exchange: each "
        "with each other, added in the order of the ranks. hierarchical: within a host, or a group of the "
        "topology file, and then across. ring: each with the next one. auto: what takes least by the "
        "topology file, for each size; exchange without one. Sums differ by rounding. Gradients that a hub "
        "sums do not depend on it (docs/PARALLEL.md).",
        .traits = PH_KEY_MAY_CHANGE),
    PH_BOOL_KEY("collective_retry", PARALLEL(collective_retry), "false",
        "true, with collective: auto: every 50 steps, ranks compare the time of their largest sum with what "
        "was expected. Where it is 20 % longer, they try each collective and go on with the fastest, so that "
        "two runs may end in different bits (docs/PARALLEL.md).",
        .traits = PH_KEY_MAY_CHANGE),
    PH_TEXT_KEY("transport", PARALLEL(transport), "auto",
        "Carrier of messages between ranks. openmpi, mpich: that MPI. self: one rank, no messages. auto: by "
        "the launcher that started the processes.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME | PH_KEY_PER_RANK),
    PH_INTEGER_KEY("ranks_per_host", PARALLEL(ranks_per_host), "0", 0, 65536,
        "Number of consecutive ranks that count as one host. 0: ranks are grouped by the hosts that they run "
        "on.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_NUMBER_KEY("timeout_seconds", PARALLEL(timeout_seconds), "300", .001, 1e6,
        "Seconds that a rank waits for another one, at most; then all ranks end. It must be longer than the "
        "slowest rank takes to write its part of a checkpoint.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_INTEGER_KEY("memory_bytes", PARALLEL(memory_bytes), "0", 0, 9e15,
        "Bytes that a rank may spend on tables and their optimizer slots. A plan that is made keeps to them; "
        "any other plan, and a single rank, is refused where it takes more. 0: no limit, except that a plan "
        "that is made keeps to each rank's share of its machine's memory.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_CHOICE_KEY("forward", PARALLEL(forward), "fp32", "fp32|fp16|bf16|int8",
        "Number format in which pooled vectors travel between ranks. fp32: exact. fp16, bf16: 16 bits a "
        "number. int8: 8 bits a number and a scale for each vector."),
    PH_CHOICE_KEY("backward", PARALLEL(backward), "fp32", "fp32|fp16|bf16|int8",
        "Number format in which gradients of pooled vectors travel between ranks, as in parallel.forward."),
    PH_CHOICE_KEY("dense", PARALLEL(dense), "fp32", "fp32|fp16|bf16|int8",
        "Number format in which gradients of dense layers travel between ranks. fp32, fp16, bf16: as in "
        "parallel.forward. int8: 8 bits a number and a scale for each 256 numbers; not with sync: hub, or "
        "dense "
        "layers in shards."),
    PH_INTEGER_KEY("bucket_bytes", PARALLEL(bucket_bytes), "1048576", 1, 1e12,
        "Bytes of a bucket: gradients of dense layers that ranks sum at once. There may be at most 2048 "
        "buckets.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_BOOL_KEY("overlap", PARALLEL(overlap), "true",
        "true: gradients travel between ranks, and are summed, while further ones are computed.",
        .traits = PH_KEY_MAY_CHANGE),
    PH_TEXT_KEY("hub", PARALLEL(hub), "",
        "Address of the hub that sync: hub uses: host:port, or several that share the work, separated by "
        "commas. A single rank does not use it.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
    PH_PATH_KEY("hub_secret_file", PARALLEL(hub_secret_file), "",
        "Secret file of the hub. Empty: the hub has no secret and listens on the loopback.",
        .traits = PH_KEY_IS_PLACE),
    PH_TEXT_KEY("hub_job", PARALLEL(hub_job), "",
        "Name of this training at the hub, unique there. Empty: a name drawn at random.",
        .traits = PH_KEY_MAY_CHANGE | PH_KEY_NO_OUTCOME),
};

const struct ph__option_table ph__parallel_options = {
    .section = "parallel",
    .help = "Training on several ranks (docs/PARALLEL.md).",
    .options = options,
    .num_options = sizeof options / sizeof *options,
    .settings_size = sizeof(struct ph_parallel_settings),
};
