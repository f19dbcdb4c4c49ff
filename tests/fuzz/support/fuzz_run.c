#include "support/fuzz_run.h"

#include <stdio.h>
#include <string.h>

static const char config_text[] =
    "seed: 1\n"
    "threads: 1\n"
    "data:\n"
    "  prefetch: 0\n"
    "  fields:\n"
    "    - {name: y, kind: label}\n"
    "    - {name: w, kind: weight}\n"
    "    - {name: d, kind: dense, transform: log1p_standardise}\n"
    "    - {name: t, kind: id, list: true}\n"
    "    - {name: h, kind: id, encoding: hash, rows: 5}\n"
    "    - {name: b, from: d, kind: id, encoding: log_bucket}\n"
    "model: {embedding_dim: 1, hidden_units: [2]}\n"
    "train: {epochs: 1, batch_size: 4, report_seconds: 0, checkpoint_seconds: 0}\n";

static const char rows_text[] = "y,w,d,t,h\n"
                                "1,1,2.5,a|b,x\n"
                                "0,0.5,,b,y\n"
                                "1,1,7,,x\n"
                                "0,2,0,a,z\n"
                                "1,1,1e3,b|b,\n";

void fuzz_run_init(struct fuzz_run *run, const char *model_kind)
{
    char rows[64], config[64], data_set[96], model_set[96];
    fuzz_folder_path("rows.csv", rows);
    fuzz_folder_path("job.yaml", config);
    fuzz_folder_path("run", run->folder);
    snprintf(data_set, sizeof data_set, "data.train=%s", rows);
    snprintf(model_set, sizeof model_set, "model.kind=%s", model_kind);
    const char *const sets[] = {data_set, model_set};
    fuzz_put(rows, rows_text, strlen(rows_text));
    fuzz_put(config, config_text, strlen(config_text));
    fuzz_require(ph_config_read(config, sets, 2, &run->config) == PH_OK);
    fuzz_require(ph_encoder_create(ph_config_data(run->config), &run->encoder) == PH_OK);
}

struct ph__train_job fuzz_run_job(const struct fuzz_run *run)
{
    struct ph__train_job job = ph__config_job(run->config);
    job.encoder = run->encoder;
    job.options.folder = run->folder;
    return job;
}

void fuzz_run_train(struct fuzz_run *run)
{
    char path[80];
    struct ph_train_summary summary;
    const struct ph__train_job job = fuzz_run_job(run);
    fuzz_require(ph__train(&job, &summary) == PH_OK);
    snprintf(path, sizeof path, "%s/config.yaml", run->folder);
    fuzz_require(ph_config_write(run->config, path) == PH_OK);
}
