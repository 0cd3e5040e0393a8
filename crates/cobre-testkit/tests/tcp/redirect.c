/* Leads every connection of a process to a proxy, except those to one port. The proxy is told first, in two bytes, which
 * port was meant. Loaded into a rank by LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

int connect(int descriptor, const struct sockaddr *address, socklen_t length) {
    int (*real)(int, const struct sockaddr *, socklen_t) =
        (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
    const char *proxy = getenv("TEST_PROXY_PORT"), *spared = getenv("TEST_SPARED_PORT");
    if (address->sa_family != AF_INET || !proxy || !spared) return real(descriptor, address, length);
    struct sockaddr_in other = *(const struct sockaddr_in *)address;
    in_port_t meant = other.sin_port;
    if (ntohs(meant) == atoi(spared)) return real(descriptor, address, length);
    other.sin_port = htons((uint16_t)atoi(proxy));
    if (real(descriptor, (const struct sockaddr *)&other, sizeof other) != 0) {
        struct pollfd ready = {descriptor, POLLOUT, 0};
        if (errno != EINPROGRESS || poll(&ready, 1, 10000) != 1) return -1;
    }
    if (send(descriptor, &meant, sizeof meant, MSG_NOSIGNAL) != sizeof meant) {
        errno = ECONNREFUSED;
        return -1;
    }
    return 0;
}
