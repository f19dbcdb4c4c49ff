/* A foundation model's folder with its encoder, and rows of pairs for it. */
#ifndef PH_TEST_PAIR_FOLDER_H
#define PH_TEST_PAIR_FOLDER_H

#include "unit/serve/run_folder.h"

#include <string.h>

#include "serve/speculation/pair_teacher.h"
#include "store/checkpoint_names.h"

enum { PAIR_COLUMNS = 7, PAIR_DIM = 5, SAMPLE = 400 };

/* Row of user `user` and item `item`; user is column 2, item column 4 ("shop"). */
static inline void fill_pair(struct ph_cell *cells, int64_t user, int64_t item)
{
    static const int64_t list[] = {3, 7, 11};
    static char names[64][8];
    snprintf(names[user % 64], sizeof names[0], "u%d", (int)user);
    for (size_t c = 0; c < PAIR_COLUMNS; c++)
        cells[c] = c < 5 ? (struct ph_cell){.kind = PH_CELL_INTEGER, .integer = (user * 7 + item) % 40}
                         : (struct ph_cell){.kind = PH_CELL_INTEGERS, .integers = list, .count = 2};
    cells[2] =
        (struct ph_cell){.kind = PH_CELL_TEXT, .text = names[user % 64], .length = strlen(names[user % 64])};
    cells[4].integer = item;
}

/* Gives "hidden" and "logit" of rows. */
static inline void hidden_of(
    const char *folder, size_t count, const struct ph_cell *cells, float **z, float **logits, size_t *width)
{
    struct ph_session *session = NULL;
    assert_ok(ph_session_open(folder, NULL, &session));
    const size_t outputs[] = {ph_session_find_output(session, "hidden"), 1};
    *width = ph_session_output_width(session, outputs[0]);
    *z = calloc(count * *width, sizeof(float));
    *logits = calloc(count, sizeof(float));
    float *values[] = {*z, *logits};
    assert_ok(ph_session_score_outputs(session, count, cells, 2, outputs, values));
    ph_session_close(session);
}

/* Fits the encoder of a folder to rows, and puts it there. */
static inline void put_pair_encoder(const char *folder, size_t dim, size_t count, const struct ph_cell *cells)
{
    struct ph__pair_encoder encoder;
    float *z, *logits;
    size_t width;
    char path[600];
    hidden_of(folder, count, cells, &z, &logits, &width);
    assert_ok(ph__pair_encoder_fit(count, width, z, 1, logits, dim, &encoder));
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_ok(ph__checkpoint_read_seal(path, encoder.teacher));
    snprintf(path, sizeof path, "%s/" PH_PAIR_ENCODER_FILE, folder);
    assert_ok(ph__pair_encoder_save(&encoder, path));
    ph__pair_encoder_fini(&encoder);
    free(z);
    free(logits);
}

static inline void fit_pair_encoder(const char *folder, size_t dim)
{
    static struct ph_cell cells[SAMPLE][PAIR_COLUMNS];
    for (int64_t i = 0; i < SAMPLE; i++)
        fill_pair(cells[i], i % 23, i * 7 % 50);
    put_pair_encoder(folder, dim, SAMPLE, &cells[0][0]);
}

/* Gives e (count, dim) of pairs by the files of a folder alone. */
static inline void encode_pairs(const char *folder, size_t count, const struct ph_cell *cells, float *e)
{
    struct ph__pair_encoder encoder;
    float *z, *logits;
    size_t width;
    char path[600];
    snprintf(path, sizeof path, "%s/" PH_PAIR_ENCODER_FILE, folder);
    assert_ok(ph__pair_encoder_load(path, &encoder));
    hidden_of(folder, count, cells, &z, &logits, &width);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < encoder.dim; k++) {
            double sum = 0;
            for (size_t j = 0; j < width; j++)
                sum +=
                    (double)encoder.directions[k * width + j] * (double)(z[i * width + j] - encoder.mean[j]);
            e[i * encoder.dim + k] = (float)sum;
        }
    ph__pair_encoder_fini(&encoder);
    free(z);
    free(logits);
}

#endif
