/* Reads an order of hosts, and finds the one that a process is on. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "preload/reorder.h"

char *ph__hosts_read(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    errno = 0;
    if (getdelim(&text, &size, '\0', file) < 0) { /* the file is empty, or no file of text */
        free(text);
        text = errno == 0 ? strdup("") : NULL;
    }
    const int error = errno;
    fclose(file);
    errno = error;
    return text;
}

/* Cuts "[::1]:4" to "::1" and "node7:4" to "node7"; of a bare IPv6 address, which has more colons, nothing.
 */
static char *cut_port(char *name)
{
    char *end = strchr(name, ':');
    if (*name == '[' && (end = strchr(name, ']')) != NULL)
        name++;
    else if (end == NULL || strchr(end + 1, ':') != NULL)
        return name;
    *end = '\0';
    return name;
}

bool ph__hosts_parse(char *text, struct ph__hosts *hosts_out)
{
    size_t num_lines = 1;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        num_lines++;
    struct ph__hosts hosts = {.list = malloc(num_lines * sizeof *hosts.list)};
    if (hosts.list == NULL)
        return false;
    char *line;
    for (int number = 1; (line = strsep(&text, "\n")) != NULL; number++) {
        line[strcspn(line, "#")] = '\0';
        line += strspn(line, " \t\r");
        line[strcspn(line, " \t\r")] = '\0';
        if (*line != '\0')
            hosts.list[hosts.num++] = (struct ph__host){cut_port(line), number};
    }
    *hosts_out = hosts;
    return true;
}

size_t ph__hosts_find_twice(const struct ph__hosts *hosts, size_t *again_out)
{
    for (size_t i = 0; i < hosts->num; i++)
        for (size_t k = i + 1; k < hosts->num; k++)
            if (strcasecmp(hosts->list[i].name, hosts->list[k].name) == 0) {
                *again_out = k;
                return i;
            }
    return hosts->num;
}

/* Compares names of hosts, one of which may lack the domain. */
static bool is_same(const char *a, const char *b)
{
    const size_t bytes = strcspn(a, ".");
    if (strcasecmp(a, b) == 0)
        return true;
    return strncasecmp(a, b, bytes) == 0 && strcspn(b, ".") == bytes &&
           (a[bytes] == '\0' || b[bytes] == '\0');
}

/* Loopback addresses are every host's, so they name none. */
static bool is_address(const char *name, const struct ifaddrs *interfaces)
{
    struct in6_addr v6;
    struct in_addr v4;
    const bool is_v4 = inet_pton(AF_INET, name, &v4) == 1, is_v6 = inet_pton(AF_INET6, name, &v6) == 1;
    for (const struct ifaddrs *at = interfaces; at != NULL; at = at->ifa_next) {
        if (at->ifa_addr == NULL || (at->ifa_flags & IFF_LOOPBACK) != 0)
            continue;
        const void *address = at->ifa_addr;
        const struct sockaddr_in *in4 = address;
        const struct sockaddr_in6 *in6 = address;
        if (is_v4 && at->ifa_addr->sa_family == AF_INET && memcmp(&in4->sin_addr, &v4, sizeof v4) == 0)
            return true;
        if (is_v6 && at->ifa_addr->sa_family == AF_INET6 && memcmp(&in6->sin6_addr, &v6, sizeof v6) == 0)
            return true;
    }
    return false;
}

size_t ph__hosts_find_own(
    const struct ph__hosts *hosts, size_t from, const char *own, const struct ifaddrs *interfaces)
{
    while (from < hosts->num && !is_same(hosts->list[from].name, own) &&
           !is_address(hosts->list[from].name, interfaces))
        from++;
    return from;
}
