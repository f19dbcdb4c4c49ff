/* See doorbell.h. MSG_DONTWAIT holds for one call, and unlike O_NONBLOCK no holder of the other end can undo it. */
#include "net/doorbell.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

ph_status ph__doorbell_create(int ends_out[2])
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return ph_fail(PH_ERROR_MEMORY, "no doorbell: %s", strerror(errno));
    ends_out[0] = ends[0];
    ends_out[1] = ends[1];
    return PH_OK;
}

void ph__doorbell_ring(int end)
{
    /* A full socket has rung already, and a closed one has nobody to wake. */
    (void)!send(end, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool ph__doorbell_answer(int end)
{
    char rung[256];
    ssize_t received;
    do
        received = recv(end, rung, sizeof rung, MSG_DONTWAIT);
    while (received < 0 && errno == EINTR);
    return received > 0 || (received < 0 && errno == EAGAIN);
}
