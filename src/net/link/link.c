/* See link.h. */
#include "net/link/link.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

ph_status ph__link_watch(const struct ph_link *link, int epoll)
{
    struct epoll_event event = {.events = link->transport->events | EPOLLET};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, link->descriptor, &event) != 0)
        return ph_fail(PH_ERROR_MEMORY, "a connection cannot be watched: %s", strerror(errno));
    return PH_OK;
}

void ph__link_destroy(struct ph_link *link)
{
    if (link != NULL)
        link->transport->destroy(link);
}
