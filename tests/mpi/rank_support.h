/* What programs of ranks share: one rank's end of a transport that this process has opened, and messages that
 * know what must be in them. Whatever goes wrong ends the process with a line that names the rank, and exit
 * code 1. One thread. */
#ifndef PH_TEST_RANK_SUPPORT_H
#define PH_TEST_RANK_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

#include "comm/wire/transport.h"

extern struct ph__transport rank_transport;

_Noreturn void rank_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A message that this rank sends (it is filled when it is started) or receives (it is checked when it is
 * waited for). What is in it follows from both ranks, the tag and its number: how many of that tag went
 * before it. */
struct rank_message {
    size_t other;
    int tag;
    size_t number, bytes;
    size_t room; /* of a receive: at least so many bytes of memory */
    uint8_t *data;
    struct ph__transport_request request;
};
void rank_send(struct rank_message *message);
void rank_receive(struct rank_message *message);
void rank_wait_sent(struct rank_message *message);
void rank_wait_received(struct rank_message *message);

/* Waits for a receive that must end with an error. */
void rank_expect_error(struct rank_message *message, const char *part);

/* All ranks have called it when it returns; tag 0. */
void rank_meet(void);

/* Writes this process's id to FOLDER/<rank>, whole as soon as it is there. */
void rank_leave_process(const char *folder, size_t rank);

#endif
