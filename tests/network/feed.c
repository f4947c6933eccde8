//! Many devices that carry something all the time: a datagram for each of them in each interval.

#define _GNU_SOURCE
#include "network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { MOST_DEVICES = 256, FRAME = 1000, LOOK = 64 };

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (long long)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void sleep_until(long long ns) {
    struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

// Sends by PREFIX0, PREFIX1 and so on until the input is closed, and tells how many rounds it made in how many seconds. A
// round that is late is not made up for.
int feed(char **arguments) {
    long count = number(arguments[1]);
    long long interval = number(arguments[2]) * 1000LL;
    if (count < 1 || count > MOST_DEVICES || interval < 1000) return 2;
    int fd = socket(AF_PACKET, SOCK_RAW, 0);
    if (fd < 0) fail("a packet socket");
    static struct sockaddr_ll devices[MOST_DEVICES];
    for (long i = 0; i < count; i++) {
        char name[IFNAMSIZ];
        snprintf(name, sizeof name, "%.9s%ld", arguments[0], i);
        devices[i] = (struct sockaddr_ll){.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
        devices[i].sll_ifindex = (int)if_nametoindex(name);
        if (!devices[i].sll_ifindex) fail(name);
    }
    // To nobody's address: the other end counts it and lets it go.
    static unsigned char frame[FRAME] = {2, 0, 0, 0, 0, 99, 2, 0, 0, 0, 0, 98, 8, 0, 0x45, 0, (FRAME - 14) >> 8, (FRAME - 14) & 255};
    frame[22] = 64, frame[23] = 17;
    memcpy(frame + 26, (unsigned char[]){10, 88, 0, 1, 10, 88, 0, 2, 0x13, 0x88, 0x13, 0x89}, 12);
    ready();
    long long begin = now(), due = begin;
    unsigned long long rounds = 0;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (rounds % LOOK || poll(&input, 1, 0) == 0) {
        for (long i = 0; i < count; i++)
            if (sendto(fd, frame, sizeof frame, 0, (struct sockaddr *)&devices[i], sizeof *devices) < 0 && errno != ENOBUFS)
                fail("sendto");
        rounds++;
        due += interval;
        if (due > now())
            sleep_until(due);
        else
            due = now();
    }
    printf("{\"rounds\":%llu,\"seconds\":%.3f}\n", rounds, (double)(now() - begin) / 1e9);
    return 0;
}
