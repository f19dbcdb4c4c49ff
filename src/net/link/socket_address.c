#include "net/link/socket_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* Gives an IPv4 address in the host's byte order, also one mapped to IPv6; false when the address has
 * none. */
static bool ipv4_of(const struct sockaddr *address, uint32_t *number_out)
{
    uint32_t number = 0;
    if (address->sa_family == AF_INET) {
        number = ((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr;
    } else if (address->sa_family == AF_INET6) {
        const struct in6_addr *bytes = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        if (!IN6_IS_ADDR_V4MAPPED(bytes))
            return false;
        memcpy(&number, bytes->s6_addr + sizeof bytes->s6_addr - sizeof number, sizeof number);
    } else {
        return false;
    }
    *number_out = ntohl(number);
    return true;
}

bool ph__is_loopback(const struct sockaddr *address)
{
    uint32_t number;
    if (ipv4_of(address, &number))
        return number >> 24 == IN_LOOPBACKNET;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* ---- addresses of sockets ---- */

typedef int name_function(int socket, struct sockaddr *address, socklen_t *size);

static ph_status write_address(int socket, name_function *name, char address_out[PH_ADDRESS_BYTES])
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char host[256], port[16];
    if (name(socket, (struct sockaddr *)&address, &size) != 0)
        return ph_fail(PH_ERROR_PEER, "cannot read a socket's address: %s", strerror(errno));
    const int error = getnameinfo((struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
        NI_NUMERICHOST | NI_NUMERICSERV);
    if (error != 0)
        return ph_fail(PH_ERROR_PEER, "cannot write a socket's address: %s", gai_strerror(error));
    snprintf(address_out, PH_ADDRESS_BYTES, address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    return PH_OK;
}

ph_status ph__socket_address(int socket, char address_out[PH_ADDRESS_BYTES])
{
    return write_address(socket, getsockname, address_out);
}

ph_status ph__socket_peer(int socket, char address_out[PH_ADDRESS_BYTES])
{
    return write_address(socket, getpeername, address_out);
}

static bool own_address(int socket, struct sockaddr_storage *address_out)
{
    socklen_t size = sizeof *address_out;
    return getsockname(socket, (struct sockaddr *)address_out, &size) == 0;
}

bool ph__socket_is_loopback(int socket)
{
    struct sockaddr_storage address;
    return own_address(socket, &address) && ph__is_loopback((const struct sockaddr *)&address);
}

bool ph__socket_is_ipv4(int socket)
{
    struct sockaddr_storage address;
    uint32_t number;
    return own_address(socket, &address) && ipv4_of((const struct sockaddr *)&address, &number);
}

bool ph__socket_is_wildcard(int listening)
{
    struct sockaddr_storage address;
    uint32_t number;
    if (!own_address(listening, &address))
        return false;
    if (ipv4_of((const struct sockaddr *)&address, &number))
        return number == INADDR_ANY;
    return address.ss_family == AF_INET6 &&
           IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)&address)->sin6_addr);
}

/* ---- hosts ---- */

bool ph__is_host(const char *text)
{
    struct in6_addr address;
    return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

ph_status ph__socket_peer_at(int socket, const char *host, char address_out[PH_ADDRESS_BYTES])
{
    char peer[PH_ADDRESS_BYTES];
    PH_TRY(ph__socket_peer(socket, peer));
    snprintf(address_out, PH_ADDRESS_BYTES, strchr(host, ':') != NULL ? "[%s]%s" : "%s%s", host,
        strrchr(peer, ':'));
    return PH_OK;
}
