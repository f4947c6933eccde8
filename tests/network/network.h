//! What the parts of the network tool share.

#ifndef NETWORK_H
#define NETWORK_H

#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>

struct mode {
    const char *name;
    const char *arguments;
    int arguments_count;
    int (*run)(char **arguments);
};

// Ends the program with what failed and the system's reason.
void fail(const char *what);
// A number, or the end of the program.
long number(const char *text);
// Says that the others may go on, and at the end waits until the one who started this closes its input.
void ready(void);
void wait_for_end(void);
// A socket of the address's family and, if `peer`, connected to it; else bound.
int open_socket(const char *address, const char *port, int type, int peer);

// The system call, an instruction, a loaded program of traffic control, one on a device's hook by TCX.
int bpf(int command, void *attribute, unsigned size);
struct bpf_insn bpf_instruction(int code, int target, int source, int offset, int value);
int bpf_load(const char *name, const struct bpf_insn *code, unsigned count);
void bpf_attach(int program, const char *device, const char *hook, int first);

int serve_tcp(char **arguments);
int check_tcp(char **arguments);
int serve_udp(char **arguments);
int send_tcp(char **arguments);
int send_udp(char **arguments);
int send_each(char **arguments);
int send_bursts(char **arguments);
int send_flows(char **arguments);
int offload(char **arguments);
int pass(char **arguments);
int drop(char **arguments);
int sniff(char **arguments);
int congest(char **arguments);
int idle(char **arguments);
int hold_udp(char **arguments);
int feed(char **arguments);
int cost(char **arguments);
int cost_tcp(char **arguments);

#endif
