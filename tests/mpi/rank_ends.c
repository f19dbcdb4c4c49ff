/* A rank that does not end as it should, among others that send each other messages until then.
 *
 *     rank_ends forever FOLDER   goes on until it is killed; leaves its process id in FOLDER/<rank> when it
 * has met the others rank_ends fails CODE       all ranks leave one after the other, the transport closed as
 * after a failure, with that code
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/wire/transport_open.h"
#include "rank_support.h"

/* Long enough for a launcher to do something about those that have ended. */
static void wait_for_turn(void)
{
    const struct timespec turn = {.tv_nsec = 100000000};
    for (size_t i = 0; i < rank_transport.rank; i++)
        nanosleep(&turn, NULL);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    if (ph__transport_open(NULL, &rank_transport) != PH_OK) {
        fprintf(stderr, "rank_ends: %s\n", ph_error_text());
        return 2;
    }
    rank_meet();
    if (strcmp(argv[1], "forever") == 0) {
        rank_leave_process(argv[2], rank_transport.rank);
        for (;;)
            rank_meet();
    }
    wait_for_turn();
    rank_transport.close(rank_transport.context, false);
    return atoi(argv[2]);
}
