//! Traffic of known amount, by TCP and UDP over IPv4 and IPv6, and the offloads of a device.

#define _GNU_SOURCE
#include "network.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

static char buffer[65536];

int open_socket(const char *address, const char *port, int type, int peer) {
    struct addrinfo hints = {.ai_socktype = type, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *found;
    if (getaddrinfo(address, port, &hints, &found)) fail(address);
    int fd = socket(found->ai_family, type, 0), one = 1;
    if (fd < 0) fail("socket");
    if (!peer && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one)) fail("SO_REUSEADDR");
    int failed = peer ? connect(fd, found->ai_addr, found->ai_addrlen) : bind(fd, found->ai_addr, found->ai_addrlen);
    if (failed) fail(address);
    freeaddrinfo(found);
    return fd;
}

// One connection after the other, each to its end.
int serve_tcp(char **arguments) {
    int listener = open_socket(arguments[0], arguments[1], SOCK_STREAM, 0);
    if (listen(listener, 16)) fail("listen");
    ready();
    for (long connections = number(arguments[2]); connections > 0; connections--) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) fail("accept");
        ssize_t got;
        while ((got = read(fd, buffer, sizeof buffer)) > 0) {
        }
        if (got < 0) fail("read");
        close(fd);
    }
    return 0;
}

// The byte that TCP carries at a place.
static char byte_at(long long place) { return (char)(place * 2654435761 >> 13); }

// One connection to its end: what arrives is what was sent.
int check_tcp(char **arguments) {
    int listener = open_socket(arguments[0], arguments[1], SOCK_STREAM, 0);
    if (listen(listener, 16)) fail("listen");
    ready();
    int fd = accept(listener, NULL, NULL);
    if (fd < 0) fail("accept");
    long long bytes = 0, wrong = 0;
    ssize_t got;
    while ((got = read(fd, buffer, sizeof buffer)) > 0)
        for (ssize_t i = 0; i < got; i++) wrong += buffer[i] != byte_at(bytes++);
    if (got < 0) fail("read");
    printf("{\"bytes\":%lld,\"wrong\":%lld}\n", bytes, wrong);
    return 0;
}

int serve_udp(char **arguments) {
    int fd = open_socket(arguments[0], arguments[1], SOCK_DGRAM, 0);
    ready();
    struct pollfd both[2] = {{.fd = fd, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    long datagrams = 0;
    while (poll(both, 2, -1) > 0 && !both[1].revents) {
        if (recv(fd, buffer, sizeof buffer, 0) < 0) fail("recv");
        datagrams++;
    }
    printf("{\"datagrams\":%ld}\n", datagrams);
    return 0;
}

// Sends, waits until the other side has read all and closed, and tells what TCP says of itself.
int send_tcp(char **arguments) {
    int fd = open_socket(arguments[0], arguments[1], SOCK_STREAM, 1);
    long all = number(arguments[2]);
    for (long at = 0; at < all;) {
        size_t size = all - at < (long)sizeof buffer ? (size_t)(all - at) : sizeof buffer;
        for (size_t i = 0; i < size; i++) buffer[i] = byte_at(at + (long long)i);
        ssize_t sent = write(fd, buffer, size);
        if (sent < 0) fail("write");
        at += sent;
    }
    if (shutdown(fd, SHUT_WR)) fail("shutdown");
    if (read(fd, buffer, 1) != 0) fail("read");
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size)) fail("TCP_INFO");
    printf("{\"bytes_retrans\":%llu,\"retransmits\":%u}\n", (unsigned long long)info.tcpi_bytes_retrans,
           info.tcpi_total_retrans);
    return 0;
}

// Datagrams of one size; with a segment size the kernel cuts each into datagrams of that.
int send_udp(char **arguments) {
    int fd = open_socket(arguments[0], arguments[1], SOCK_DGRAM, 1);
    long count = number(arguments[2]), size = number(arguments[3]);
    int segment = (int)number(arguments[4]);
    if (size < 0 || size > (long)sizeof buffer) return 2;
    if (segment && setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment)) fail("UDP_SEGMENT");
    for (long i = 0; i < count; i++)
        // A receiver that is not there answers with an error on a later send.
        if (send(fd, buffer, (size_t)size, 0) < 0 && errno != ECONNREFUSED) fail("send");
    return 0;
}

// Datagrams of these bytes, with this type of service.
int send_each(char **arguments) {
    int fd = open_socket(arguments[0], arguments[1], SOCK_DGRAM, 1), tos = (int)number(arguments[2]);
    if (setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos)) fail("IP_TOS");
    for (char *text = strtok(arguments[3], ","); text; text = strtok(NULL, ",")) {
        size_t size = 0;
        for (unsigned byte; sscanf(text + 2 * size, "%2x", &byte) == 1; size++) buffer[size] = (char)byte;
        if (send(fd, buffer, size, 0) < 0 && errno != ECONNREFUSED) fail("send");
    }
    return 0;
}

// One datagram from each of so many ports, as fast as can be, and again after a while.
int send_flows(char **arguments) {
    const struct timespec pause = {.tv_nsec = 25000000};
    long flows = number(arguments[2]);
    int *sockets = calloc((size_t)flows, sizeof *sockets);
    if (!sockets) fail("calloc");
    for (long i = 0; i < flows; i++) sockets[i] = open_socket(arguments[0], arguments[1], SOCK_DGRAM, 1);
    for (long times = number(arguments[3]); times > 0; times--) {
        nanosleep(&pause, NULL);
        for (long i = 0; i < flows; i++)
            if (send(sockets[i], buffer, 100, 0) < 0 && errno != ECONNREFUSED) fail("send");
    }
    return 0;
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// Bursts of datagrams on a timer of the wall clock. Tells of each when the first datagram was about to be sent, when it
// was sent, when the last one was, and the longest time that two datagrams in a row took.
int send_bursts(char **arguments) {
    enum { MOST = 10000 };
    static long long before[MOST + 1];
    int fd = open_socket(arguments[0], arguments[1], SOCK_DGRAM, 1);
    long long start = number(arguments[2]), gap = number(arguments[4]) * 1000;
    long bursts = number(arguments[3]), datagrams = number(arguments[5]), size = number(arguments[6]);
    if (datagrams < 2 || datagrams > MOST || size < 0 || size > (long)sizeof buffer) return 2;
    // So that others who want to compute do not tear the bursts. Where that is not allowed, what is told shows it.
    const struct sched_param first = {.sched_priority = 10};
    if (sched_setscheduler(0, SCHED_FIFO, &first) && errno != EPERM) fail("SCHED_FIFO");
    for (long i = 0; i < bursts; i++) {
        long long at = start + i * gap, longest = 0;
        const struct timespec timer = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
        if (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &timer, NULL)) fail("clock_nanosleep");
        for (long j = 0; j < datagrams; j++) {
            before[j] = now();
            if (send(fd, buffer, (size_t)size, 0) < 0) fail("send");
        }
        before[datagrams] = now();
        for (long j = 2; j <= datagrams; j++)
            if (before[j] - before[j - 2] > longest) longest = before[j] - before[j - 2];
        printf("{\"start_ns\":%lld,\"first_ns\":%lld,\"end_ns\":%lld,\"longest_ns\":%lld}\n", before[0], before[1],
               before[datagrams], longest);
    }
    return 0;
}

int offload(char **arguments) {
    static const struct {
        const char *name;
        uint32_t command;
    } FEATURES[] = {{"gro", ETHTOOL_SGRO}, {"gso", ETHTOOL_SGSO}, {"tso", ETHTOOL_STSO}, {"tx", ETHTOOL_STXCSUM}};
    for (size_t i = 0; i < sizeof FEATURES / sizeof *FEATURES; i++) {
        if (strcmp(arguments[1], FEATURES[i].name)) continue;
        struct ethtool_value value = {.cmd = FEATURES[i].command, .data = !strcmp(arguments[2], "on")};
        struct ifreq request = {.ifr_data = (char *)&value};
        strncpy(request.ifr_name, arguments[0], IFNAMSIZ - 1);
        int fd = socket(AF_INET, SOCK_DGRAM, 0);
        if (fd < 0 || ioctl(fd, SIOCETHTOOL, &request)) fail(arguments[1]);
        return 0;
    }
    return 2;
}
