//! What programs on a device's hooks cost: datagrams timed in batches, the kernel's own accounts, test runs. And programs
//! that do nothing, or read the clock, to compare with.

#define _GNU_SOURCE
#include "network.h"

#include <errno.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { GO_ON = -1, MOST_PROGRAMS = 4096, ETHERNET = 14, IP = 20, UDP = 8, TCP = 20 };

// A program that does nothing, or only reads the clock, on both hooks until the input is closed.
int idle(char **arguments) {
    const struct bpf_insn empty[] = {
        bpf_instruction(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, GO_ON),
        bpf_instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    };
    const struct bpf_insn clock[] = {
        bpf_instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ktime_get_ns),
        bpf_instruction(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, GO_ON),
        bpf_instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    };
    int reads = !strcmp(arguments[1], "clock");
    int program = reads ? bpf_load("clock", clock, sizeof clock / sizeof *clock)
                        : bpf_load("empty", empty, sizeof empty / sizeof *empty);
    bpf_attach(program, arguments[0], "ingress", 0);
    bpf_attach(program, arguments[0], "egress", 0);
    ready();
    wait_for_end();
    return 0;
}

// Receives nothing that it is sent, so that nobody is woken.
int hold_udp(char **arguments) {
    open_socket(arguments[0], arguments[1], SOCK_DGRAM, 0);
    ready();
    wait_for_end();
    return 0;
}

struct account {
    unsigned id;
    char name[BPF_OBJ_NAME_LEN];
    unsigned long long nanoseconds, runs;
};

// The programs that are loaded, with their accounts; those of traffic control are opened too if `files` is given.
static size_t accounts(struct account *list, int *files) {
    size_t count = 0;
    unsigned id = 0;
    for (;;) {
        union bpf_attr attribute = {.start_id = id};
        if (bpf(BPF_PROG_GET_NEXT_ID, &attribute, sizeof attribute)) break;
        id = attribute.next_id;
        memset(&attribute, 0, sizeof attribute);
        attribute.prog_id = id;
        int fd = bpf(BPF_PROG_GET_FD_BY_ID, &attribute, sizeof attribute);
        if (fd < 0) continue;
        struct bpf_prog_info info = {0};
        memset(&attribute, 0, sizeof attribute);
        attribute.info.bpf_fd = (uint32_t)fd;
        attribute.info.info_len = sizeof info;
        attribute.info.info = (uintptr_t)&info;
        int known = !bpf(BPF_OBJ_GET_INFO_BY_FD, &attribute, sizeof attribute);
        if (known && count < MOST_PROGRAMS) {
            if (files) files[count] = info.type == BPF_PROG_TYPE_SCHED_CLS ? dup(fd) : -1;
            struct account *one = &list[count++];
            *one = (struct account){.id = id, .nanoseconds = info.run_time_ns, .runs = info.run_cnt};
            memcpy(one->name, info.name, sizeof info.name);
        }
        close(fd);
    }
    return count;
}

static double nanoseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static char data[2048];

// What one datagram takes of this thread's CPU time in each of so many batches, its receipt in the kernel included.
static void batches(int fd, long count, long datagrams, size_t size) {
    for (long i = 0; i < count; i++) {
        double began = nanoseconds();
        for (long j = 0; j < datagrams; j++)
            if (send(fd, data, size, 0) < 0) fail("send");
        printf("{\"batch_ns\":%.1f}\n", (nanoseconds() - began) / (double)datagrams);
    }
}

// Packets of IPv4 that test runs are made on. A tag is one that lies in the packet.
static const struct shape {
    const char *name;
    int protocol, port, tagged;
} SHAPES[] = {
    {"udp", IPPROTO_UDP, 5002, 0},  {"tcp", IPPROTO_TCP, 5002, 0},   {"vlan", IPPROTO_UDP, 5002, 1},
    {"roce", IPPROTO_UDP, 4791, 0}, {"vxlan", IPPROTO_UDP, 4789, 0},
};

// Puts a header of IPv4 and one of UDP or TCP there; says where they end.
static unsigned char *headers(unsigned char *at, int protocol, int port) {
    memset(at, 0, IP + TCP);
    at[0] = 0x45;
    at[2] = 1400 >> 8, at[3] = 1400 & 255;
    at[8] = 64;
    at[9] = (unsigned char)protocol;
    memcpy(at + 12, (unsigned char[]){10, 77, 0, 2, 10, 77, 0, 1}, 8);
    memcpy(at + IP, (unsigned char[]){0x13, 0x89, (unsigned char)(port >> 8), (unsigned char)port}, 4);
    if (protocol != IPPROTO_TCP) return at + IP + UDP;
    at[IP + 12] = 0x50, at[IP + 13] = 0x10;
    return at + IP + TCP;
}

// What a run takes of each open program, on a packet of this shape.
static void test_runs(const struct account *list, const int *files, size_t count, const struct shape *shape, int repeat) {
    unsigned char packet[1434] = {0}, *at = packet + ETHERNET;
    if (shape->tagged) {
        memcpy(packet + 12, (unsigned char[]){0x81, 0, 0, 7, 8, 0}, 6);
        at += 4;
    } else {
        packet[12] = 8;
    }
    at = headers(at, shape->protocol, shape->port);
    // A request to write that expects an answer to it; a frame within, after the header of VXLAN.
    if (shape->port == 4791) at[0] = 0x0a;
    if (shape->port == 4789) at[8 + 12] = 8, headers(at + 8 + ETHERNET, IPPROTO_UDP, 5002);
    for (size_t i = 0; i < count; i++) {
        if (files[i] < 0) continue;
        union bpf_attr attribute = {0};
        attribute.test.prog_fd = (uint32_t)files[i];
        attribute.test.data_in = (uintptr_t)packet;
        attribute.test.data_size_in = sizeof packet;
        attribute.test.repeat = (uint32_t)repeat;
        if (bpf(BPF_PROG_TEST_RUN, &attribute, sizeof attribute)) fail("BPF_PROG_TEST_RUN");
        printf("{\"test_run\":\"%s\",\"id\":%u,\"protocol\":\"%s\",\"ns\":%u}\n", list[i].name, list[i].id, shape->name,
               attribute.test.duration);
    }
}

static struct account before[MOST_PROGRAMS], after[MOST_PROGRAMS];
static int files[MOST_PROGRAMS];
static size_t known;

// Lets the kernel keep accounts until the descriptor is closed.
static int begin_accounts(void) {
    union bpf_attr attribute = {.enable_stats.type = BPF_STATS_RUN_TIME};
    int statistics = bpf(BPF_ENABLE_STATS, &attribute, sizeof attribute);
    if (statistics < 0) fail("BPF_ENABLE_STATS");
    known = accounts(before, NULL);
    return statistics;
}

// Tells what has run since. Of how many programs there are only those are left open that ran so often: others' would count
// test runs as packets.
static size_t end_accounts(int statistics, unsigned long long often) {
    size_t count = accounts(after, files);
    close(statistics);
    for (size_t i = 0; i < count; i++) {
        unsigned long long runs = 0;
        for (size_t j = 0; j < known; j++) {
            if (after[i].id != before[j].id) continue;
            runs = after[i].runs - before[j].runs;
            if (runs)
                printf("{\"account\":\"%s\",\"id\":%u,\"ns\":%llu,\"runs\":%llu}\n", after[i].name, after[i].id,
                       after[i].nanoseconds - before[j].nanoseconds, runs);
        }
        if (runs < often && files[i] >= 0) close(files[i]), files[i] = -1;
    }
    return count;
}

// Sends batches with nothing else on, then as many datagrams while the kernel keeps accounts, then runs the programs.
int cost(char **arguments) {
    int fd = open_socket(arguments[0], arguments[1], SOCK_DGRAM, 1), repeat = (int)number(arguments[5]);
    long count = number(arguments[2]), datagrams = number(arguments[3]), size = number(arguments[4]);
    if (size < 0 || size > (long)sizeof data) return 2;
    // So that others who want to compute do not disturb. Where that is not allowed, they do.
    const struct sched_param first = {.sched_priority = 10};
    if (sched_setscheduler(0, SCHED_FIFO, &first) && errno != EPERM) fail("SCHED_FIFO");
    batches(fd, count, datagrams, (size_t)size);
    int statistics = begin_accounts();
    for (long i = 0; i < count * datagrams; i++)
        if (send(fd, data, (size_t)size, 0) < 0) fail("send");
    size_t programs = end_accounts(statistics, (unsigned long long)(count * datagrams));
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++)
        test_runs(after, files, programs, &SHAPES[i], repeat);
    return 0;
}

// Sends by TCP while the kernel keeps accounts.
int cost_tcp(char **arguments) {
    int statistics = begin_accounts(), status = send_tcp(arguments);
    end_accounts(statistics, 0);
    return status;
}
