/* A peer of a benchmark: another program, driven line by line over pipes so that its rounds and ours can take
 * turns. A peer that cannot be had is no failure: the bench goes on without it. CONTRIBUTING.md describes a
 * peer's lines and answers. */
#ifndef PH_BENCH_PEER_H
#define PH_BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct peer {         /* zero-initialised: no peer */
    const char *name; /* static */
    pid_t process;
    FILE *to, *from;
    char version[128]; /* its first line: "torch 2.1" */
    char *line;        /* its latest line, without the newline */
    size_t line_capacity;
};

/* Runs FOLDER/NAME.py by python3, or by $PHLOEM_BENCH_PYTHON; folder NULL: no peer. The script's first line
 * is "NAME VERSION"; or it is "missing WHY", and a printed line says that the peer is skipped. The peer does
 * not get the bench's wait policy; the library named by $PHLOEM_BENCH_PEER_ALLOCATOR is preloaded, for the
 * peer alone. */
void peer_start(struct peer *peer, const char *folder, const char *name);
/* Runs a program of ours that speaks the same lines, without changes to its environment: arguments begin with
 * the program, found as by a shell, and end with NULL. */
void peer_start_own(struct peer *peer, const char *name, const char *const *arguments);
void peer_stop(struct peer *peer);
bool peer_is_there(const struct peer *peer);

/* Sends a line and returns the answer, borrowed until the next; NULL without a peer or once it has ended. */
const char *peer_ask(struct peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the number at *text, and moves *text past it; NAN where there is none, or no text. */
double peer_number(const char **text);

/* Sends a line that a peer may refuse. Returns true when the peer answers "ready"; else prints why. The peer
 * may then be asked for something else. */
bool peer_accepts(struct peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
