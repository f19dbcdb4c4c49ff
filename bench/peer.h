/* What a benchmark compares itself with: another program, driven line by line over pipes so that its rounds
 * and ours can take turns. A peer that cannot be had is no failure: the bench goes on without it.
 * CONTRIBUTING.md says what a peer reads and answers. */
#ifndef PH_BENCH_PEER_H
#define PH_BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct peer {         /* zero-initialised: there is none */
    const char *name; /* static */
    pid_t process;
    FILE *to, *from;
    char version[128]; /* its first line: "torch 2.1" */
    char *line;        /* its latest line, without the newline */
    size_t line_capacity;
};

/* Runs FOLDER/NAME.py by python3, or by what $PHLOEM_BENCH_PYTHON names; folder NULL: there is no peer. Its
 * first line is "NAME VERSION", or "missing WHY", and then one line says that it is skipped. The wait policy
 * that the bench runs under is not handed on; the library that $PHLOEM_BENCH_PEER_ALLOCATOR names is
 * preloaded, for the peer alone. */
void peer_start(struct peer *peer, const char *folder, const char *name);
/* Runs a program of ours that speaks the same lines, as it is: arguments begin with it, found like a shell's,
 * and end with NULL. */
void peer_start_own(struct peer *peer, const char *name, const char *const *arguments);
void peer_stop(struct peer *peer);
bool peer_is_there(const struct peer *peer);

/* Sends a line and returns the answer, borrowed until the next; NULL without a peer, and when it has gone. */
const char *peer_ask(struct peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for what a peer may refuse: whether it answers "ready". A line says why where it does not; it may
 * then be asked for something else. */
bool peer_accepts(struct peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
