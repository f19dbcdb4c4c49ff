/* Runs `phloem serve` in a process of its own, with one worker. */
#ifndef PH_BENCH_SERVE_PROCESS_H
#define PH_BENCH_SERVE_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

struct server_options {
    const char *repository; /* with a model dlrm */
    int processor;          /* that the server stays on */
    size_t max_batch;
    const char *set; /* a further KEY=VALUE; NULL: none */
};

struct server {
    struct server_options options;
    pid_t process;
    char http[64], grpc[64]; /* addresses */
};

/* Starts a server on free ports, and waits until the model is ready. Ends the program when it does not start.
 * The server is killed when the calling thread ends. */
void server_start(const struct server_options *options, struct server *server_out);
void server_restart(struct server *server); /* kills it, and starts it again on the same ports */
void server_kill(struct server *server);    /* by SIGKILL */

/* Makes a request without a body, "POST /v2/...", over a connection of its own. Returns the status of the
 * answer; 0: there is none within a minute. */
int server_ask(const struct server *server, const char *method_and_path);

/* Makes a request with a body, and copies the answer's body, cut to size; returns the status as above. */
int server_tell(
    const struct server *server, const char *method_and_path, const char *body, char *answer, size_t size);

double server_memory(const struct server *server);            /* resident bytes */
double server_processor_seconds(const struct server *server); /* that all its threads have had */

#endif
