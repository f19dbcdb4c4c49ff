/* The addresses at which other ranks may find this one (getifaddrs(3)). An address that is valid on one link alone (fe80::/10)
 * would need the name that the link has on the other host, and is left out. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "comm/watch/watch_state.h"

/* 0: no address of the Internet. */
static socklen_t address_size(const struct sockaddr *address)
{
    if (address == NULL)
        return 0;
    if (address->sa_family == AF_INET)
        return sizeof(struct sockaddr_in);
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : 0;
}

static bool is_of_one_link(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static bool is_wanted(const struct ifaddrs *interface, bool is_loopback)
{
    return (interface->ifa_flags & IFF_UP) != 0 && address_size(interface->ifa_addr) > 0 &&
           ph__is_loopback(interface->ifa_addr) == is_loopback && !is_of_one_link(interface->ifa_addr);
}

ph_status ph__watch_hosts(
    bool is_loopback, char hosts_out[PH_WATCH_MAX_ADDRESSES][PH_HOST_BYTES], size_t *num_out)
{
    struct ifaddrs *interfaces;
    size_t num = 0;
    if (getifaddrs(&interfaces) != 0)
        return ph_fail(PH_ERROR_PEER, "this host's addresses cannot be told: %s", strerror(errno));
    for (const struct ifaddrs *at = interfaces; at != NULL && num < PH_WATCH_MAX_ADDRESSES;
         at = at->ifa_next) {
        if (!is_wanted(at, is_loopback))
            continue;
        num += getnameinfo(at->ifa_addr, address_size(at->ifa_addr), hosts_out[num], PH_HOST_BYTES, NULL, 0,
                   NI_NUMERICHOST) == 0;
    }
    freeifaddrs(interfaces);
    *num_out = num;
    return PH_OK;
}
