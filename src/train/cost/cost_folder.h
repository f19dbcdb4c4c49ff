/* Learnt costs on disk: a folder with the nets, model.safetensors, and cost.json, which says where, when and
 * how well they were learnt. Times of one kind of processor say little of another's. */
#ifndef PH_TRAIN_COST_FOLDER_H
#define PH_TRAIN_COST_FOLDER_H

#include "train/cost/cost_nets.h"

#define PH_COST_FOREIGN_FLAG "--foreign-cost" /* of commands that load costs: may_be_foreign */

/* Members of cost.json. */
struct ph__cost_facts {
    char machine[128];   /* host name */
    char processor[128]; /* "Intel(R) Xeon(R) Processor @ 2.60GHz" */
    char isa[16];        /* of the kernels that were measured: "avx512" */
    char date[32];       /* "2026-11-28 03:00 UTC" */
    uint64_t batch_size, labels;
    double lookup_share; /* of the time of sets */
    double mape, tau;    /* of the compute net, on labels held out: mean relative error, Kendall's tau */
    double repeat_error; /* of measuring a label again */
};

/* Fills machine, processor, ISA and date, those of here and now; the rest stays. PH_ERROR_USAGE: of
 * PHLOEM_ISA. */
ph_status ph__cost_facts_here(struct ph__cost_facts *facts);

/* PH_ERROR_CONFIG: these costs, of the file at `path`, were learnt on another kind of processor or with
 * another ISA than this machine's. */
ph_status ph__cost_check_machine(const char *path, const struct ph__cost_facts *facts);

/* Saves the nets, and facts with their batch size and share of lookups, in the folder, which is created.
 * PH_ERROR_DISK, PH_ERROR_MEMORY. */
ph_status ph__cost_save(
    const struct ph__cost_nets *nets, const char *folder, const struct ph__cost_facts *facts);
/* Loads nets. PH_ERROR_CHECKPOINT: a file is missing or damaged; PH_ERROR_CONFIG: they were learnt on another
 * kind of processor or with another ISA, unless may_be_foreign. facts_out NULL: not wanted. */
ph_status ph__cost_load(const char *folder, bool may_be_foreign, struct ph__cost_nets **nets_out,
    struct ph__cost_facts *facts_out);

#endif
