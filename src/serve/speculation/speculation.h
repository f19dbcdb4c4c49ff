/* Computes what a foundation model says of pairs of user and item before a served model asks for it.
 *
 *     asked ──> predictor ──> work: the teacher's rows within a budget ──> cache
 *                                                                           │
 *     look_up: a pair's own numbers, else the mean of the user's pairs, ────┘
 *              else that of similar users, else nothing
 *
 * The served model reads columns fm_1 ... fm_d, fm_pair, fm_user, fm_near (1: on which rung they were found)
 * and fm_age (in lives of a row, 0 to 1); all are 0 where nothing was found.
 *
 * Any thread looks up. One thread at a time, the worker, calls all else. Everything is in the caller's
 * seconds, from 0 on, so that recorded streams can be replayed.
 *
 * Source: SOLARIS (arXiv 2604.12110): the ladder, the split of worker and cache; sizes, predictor and life of
 * rows are ours. */
#ifndef PH_SERVE_SPECULATION_H
#define PH_SERVE_SPECULATION_H

#include "base/text/name_index.h"
#include "phloem/server.h"
#include "serve/speculation/pair_cache.h"
#include "serve/speculation/pair_predictor.h"
#include "serve/speculation/pair_teacher.h"

extern const struct ph__option_table ph__speculation_options;      /* section "serve.model.speculation" */
extern const struct ph__option_table ph__speculation_file_options; /* section "speculation" */

struct ph__speculation;

/* predictor: its policy, seed and known asks; all else is set. NULL: by expected asks. PH_ERROR_CONFIG: a key
 * is missing; PH_ERROR_CHECKPOINT: as ph__pair_teacher_open; PH_ERROR_MEMORY: the cache does not fit. */
ph_status ph__speculation_create(const struct ph_speculation_settings *settings,
    const struct ph__pair_options *predictor, struct ph__speculation **speculation_out);
void ph__speculation_destroy(struct ph__speculation *speculation);

/* Returns the settings as they were given; texts are the speculation's, none is NULL. */
const struct ph_speculation_settings *ph__speculation_settings(const struct ph__speculation *speculation);

/* Returns the names of the columns that a served model reads. */
const struct ph__name_index *ph__speculation_columns(const struct ph__speculation *speculation);

/* ---- any thread ---- */

/* Returns the cache, in which keys of users and items are hashes: to look up. */
struct ph__pair_cache *ph__speculation_cache(struct ph__speculation *speculation);

struct ph__speculation_figures {
    uint64_t rungs[PH_NUM_RUNGS];           /* rows that were looked up, by where they were found */
    uint64_t stale;                         /* pairs that were there, but too old */
    uint64_t teacher_rows;                  /* rows that the teacher computed */
    uint64_t teacher_ns;                    /* time in which it did */
    uint64_t num_rows, capacity;            /* of the cache */
    uint64_t written, replaced, never_read; /* rows of the cache */
    uint64_t reloads;                       /* of a changed teacher */
    uint64_t foreign_rows; /* that were computed by threads that do not own the speculation */
};
void ph__speculation_figures(
    const struct ph__speculation *speculation, struct ph__speculation_figures *figures_out);

/* Opens what stands in the teacher's folder if it is not of this version, else *teacher_out is closed.
 * PH_ERROR_CHECKPOINT: as ph__pair_teacher_open, or served models could not read what it tells. */
ph_status ph__speculation_find_teacher(
    const struct ph__speculation *speculation, uint64_t version, struct ph__pair_teacher *teacher_out);

/* ---- the worker ---- */

/* Makes the calling thread the owner: rows that other threads have computed are counted apart from then on.
 */
void ph__speculation_own(struct ph__speculation *speculation);

/* Rows of a request that was answered; neighbouring ones of a user are a slate. */
struct ph__asked {
    size_t count;
    const uint64_t *users, *items;    /* (count) */
    const float *scores;              /* (count) */
    const struct ph_cell *user_cells; /* (count), for the teacher's embedding of the user */
    struct ph__request *request;      /* gives the teacher's columns of the rows */
};

/* Takes what was asked and answered. PH_ERROR_DATA: the teacher cannot read a row. */
ph_status ph__speculation_asked(
    struct ph__speculation *speculation, double now, const struct ph__asked *asked);

/* Spends what the budget has for the time since the last call, user by user while must_go_on (NULL: always).
 */
ph_status ph__speculation_work(
    struct ph__speculation *speculation, double now, bool (*must_go_on)(void *context), void *context);

/* Takes a teacher, and gives back the former one, which the caller closes: nothing is computed while it is a
 * closed one. Rows of another version are not found any more. Returns whether it is another one than that
 * whose rows are found. */
bool ph__speculation_take_teacher(struct ph__speculation *speculation, struct ph__pair_teacher *teacher);

/* Removes all that is kept of a user, or of an item: rows, slates, and means that it may be part of. */
void ph__speculation_forget_user(struct ph__speculation *speculation, uint64_t user);
void ph__speculation_forget_item(struct ph__speculation *speculation, uint64_t item);

/* Returns the teacher, for callers that compute rows on the spot. */
struct ph__pair_teacher *ph__speculation_teacher(struct ph__speculation *speculation);

#endif
