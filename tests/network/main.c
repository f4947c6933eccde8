//! The network tool of the tests: traffic whose amount is known, offloads, other people's programs. The table of modes.

#include "network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Longer than any mode takes in an emulated machine on a busy host.
enum { ALARM_SECONDS = 400 };

static const struct mode MODES[] = {
    {"serve-tcp", "ADDRESS PORT CONNECTIONS", 3, serve_tcp},
    {"serve-udp", "ADDRESS PORT", 2, serve_udp},
    {"check-tcp", "ADDRESS PORT", 2, check_tcp},
    {"send-tcp", "ADDRESS PORT BYTES", 3, send_tcp},
    {"send-udp", "ADDRESS PORT COUNT SIZE SEGMENT", 5, send_udp},
    {"send-each", "ADDRESS PORT TOS HEX,HEX...", 4, send_each},
    {"send-bursts", "ADDRESS PORT START_NS BURSTS GAP_US DATAGRAMS SIZE", 7, send_bursts},
    {"send-flows", "ADDRESS PORT FLOWS TIMES", 4, send_flows},
    {"offload", "DEVICE FEATURE on|off", 3, offload},
    {"pass", "DEVICE ingress|egress first|last VERDICT", 4, pass},
    {"drop", "DEVICE ONE_IN", 2, drop},
    {"sniff", "DEVICE MARK", 2, sniff},
    {"congest", "DEVICE ONE_IN", 2, congest},
    {"idle", "DEVICE empty|clock", 2, idle},
    {"hold-udp", "ADDRESS PORT", 2, hold_udp},
    {"feed", "PREFIX DEVICES INTERVAL_US", 3, feed},
    {"cost", "ADDRESS PORT BATCHES DATAGRAMS SIZE REPEAT", 6, cost},
    {"cost-tcp", "ADDRESS PORT BYTES", 3, cost_tcp},
};

static int usage(void) {
    fprintf(stderr, "usage:\n");
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++)
        fprintf(stderr, "  network %s %s\n", MODES[i].name, MODES[i].arguments);
    return 2;
}

int main(int argc, char **argv) {
    if (argc < 2) return usage();
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        if (strcmp(argv[1], MODES[i].name)) continue;
        if (argc - 2 != MODES[i].arguments_count) return usage();
        alarm(ALARM_SECONDS);
        setvbuf(stdout, NULL, _IOLBF, 0);
        return MODES[i].run(argv + 2);
    }
    return usage();
}

void fail(const char *what) {
    fprintf(stderr, "network: %s: %s\n", what, strerror(errno));
    exit(1);
}

long number(const char *text) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || end == text) {
        fprintf(stderr, "network: %s is no number\n", text);
        exit(2);
    }
    return value;
}

void ready(void) { printf("ready\n"); }

void wait_for_end(void) {
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
}
