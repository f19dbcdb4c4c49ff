/* Trains by a config, then scores a row with the model: from the first to the last step in C.
 *
 *   train CONFIG DIR [KEY=VALUE...] <row
 *
 * CONFIG and KEY=VALUE are those of phloem train, DIR is a new folder, and the row is a line in the format of
 * the training data, with or without its label. The probability goes to standard output. */
#include <stdio.h>
#include <string.h>

#include "phloem/phloem.h"

static ph_status train(const struct ph_config *config, const char *folder)
{
    const struct ph_train_options options = {.size = sizeof options, .folder = folder};
    struct ph_train_summary summary;
    PH_TRY(ph_train_config(config, &options, &summary));
    fprintf(stderr, "trained %llu steps; model: %s/model.safetensors\n", (unsigned long long)summary.steps,
        folder);
    return PH_OK;
}

static ph_status score(const char *folder, const char *line)
{
    struct ph_session *session = NULL;
    float probability = 0; /* for one label */
    size_t num_rows = 0;
    PH_TRY(ph_session_open(folder, NULL, &session));
    ph_status status = PH_OK;
    if (ph_session_num_tasks(session) != 1)
        status = ph_fail(PH_ERROR_USAGE, "the model has several labels");
    if (status == PH_OK)
        status = ph_session_score_text(session, line, strlen(line), &probability, 1, &num_rows);
    ph_session_close(session);
    if (status == PH_OK && num_rows == 1)
        printf("%.9g\n", (double)probability);
    return status;
}

int main(int argc, char **argv)
{
    static char line[1 << 16];
    struct ph_config *config = NULL;
    if (argc < 3 || fgets(line, sizeof line, stdin) == NULL) {
        fprintf(stderr, "usage: train CONFIG DIR [KEY=VALUE...] <row\n");
        return 2;
    }
    const char *const *sets = (const char *const *)(argv + 3);
    ph_status status = ph_config_read(argv[1], sets, (size_t)argc - 3, &config);
    if (status == PH_OK)
        status = train(config, argv[2]);
    ph_config_destroy(config);
    if (status == PH_OK)
        status = score(argv[2], line);
    if (status != PH_OK)
        fprintf(stderr, "train: %s\n", ph_error_text());
    return ph_status_exit_code(status);
}
