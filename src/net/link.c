/* See link.h. */
#include "net/link.h"

void ph__link_destroy(struct ph_link *link)
{
    if (link != NULL)
        link->transport->destroy(link);
}
