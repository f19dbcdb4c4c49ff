/* phloem replay: a recorded stream of requests goes through the cache of pairs of a server, by the stream's
 * own clock (verb_replay.c), or to a running server (replay_server.c). replay_stream.c reads it. */
#ifndef PH_CLI_REPLAY_H
#define PH_CLI_REPLAY_H

#include "base/option/option.h"
#include "cli/foundation/learnt_rows.h"

extern const struct ph__option_table cli_replay_options; /* section "replay" */

/* Columns that say what a row is. */
struct cli_replay_columns {
    const char *time; /* seconds, ascending */
    const char *request;
    const char *user, *item; /* NULL: it does not matter */
};

/* Reads columns of a row, those of a session or of cli_replay_read. */
struct cli_replay_reader { /* places NULL: none are read */
    const struct ph_session *session;
    const char *filled; /* beginning of columns that the stream need not have; NULL: none */
    size_t num_columns;
    size_t *places;        /* (num_columns) */
    struct ph_cell *cells; /* (count, num_columns) of the request */
    size_t capacity;
};

/* A stream, and its current request: neighbouring rows with the same text in the request's column. */
struct cli_replay_stream { /* zero-initialised is closed */
    struct ph__keyed_lines lines;
    size_t time, request, user, item; /* places */
    bool has_line;                    /* a line is read that belongs to the next request */
    struct ph__arena arena;           /* of the current request */
    double seconds;                   /* of its first row */
    const char *name;                 /* in the request's column */
    size_t count, capacity;
    uint64_t *users, *items;    /* (count) hashes, as a server makes them */
    struct ph__bytes *texts;    /* (count) rows as they stand in the file */
    struct ph_cell *user_cells; /* (count) */
    struct cli_replay_reader student, teacher;
    const struct ph__key_map *learnt; /* rows that the teacher has learnt from are refused; NULL: none are */
    const char *folder;               /* the teacher's */
};

/* Opens a stream; student and teacher have their sessions, NULL: none. PH_ERROR_DATA. Close it also after a
 * failure. */
ph_status cli_replay_open(struct cli_replay_stream *stream, const char *path,
    const struct cli_replay_columns *columns, struct ph_session *student, struct ph_session *teacher);
/* Reads these columns as the student's, instead of a session's. PH_ERROR_DATA: the stream lacks one. */
ph_status cli_replay_read(struct cli_replay_stream *stream, const char *const *columns, size_t num_columns);
/* Reads the next request. PH_ERROR_DATA naming file and line. */
ph_status cli_replay_next(struct cli_replay_stream *stream, bool *has_request_out);
void cli_replay_close(struct cli_replay_stream *stream);

/* Times at which pairs are asked for. */
struct cli_replay_survey { /* zero-initialised is empty */
    uint64_t num_requests;
    double first, last; /* seconds */
    struct cli_replay_ask {
        uint64_t pair;
        double seconds;
    } * asks; /* (num_asks) by pair, then time */
    size_t num_asks, capacity, num_pairs;
    struct ph__key_map places; /* of each pair's first ask */
};

/* Reads a whole stream. fini also after a failure. */
ph_status cli_replay_survey(
    const char *path, const struct cli_replay_columns *columns, struct cli_replay_survey *survey);
void cli_replay_survey_fini(struct cli_replay_survey *survey);
/* Returns how often a pair is asked for after `from`, up to `to`. */
size_t cli_replay_asks(
    const struct cli_replay_survey *survey, uint64_t user, uint64_t item, double from, double to);

/* Copies the rows of a stream for which a server's feature log has features, with these, and prints how many
 * there were. PH_ERROR_DATA. */
ph_status cli_replay_join(const char *path, const char *log, const char *request_column, const char *out);

/* A model of a running server. */
struct cli_replay_target {
    const char *address, *model, *token_file; /* REST; token_file NULL: none */
    double speed;                             /* seconds of the stream in one of the clock */
    size_t num_connections;
};

/* Sends a stream, each request when it is due, and prints what came of it. PH_ERROR_PEER: a request failed.
 */
ph_status cli_replay_send(
    const char *path, const struct cli_replay_columns *columns, const struct cli_replay_target *target);

#endif
