//! What the parts of the network tool share.

#ifndef NETWORK_H
#define NETWORK_H

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

int serve_tcp(char **arguments);
int serve_udp(char **arguments);
int send_tcp(char **arguments);
int send_udp(char **arguments);
int send_each(char **arguments);
int send_flows(char **arguments);
int offload(char **arguments);
int pass(char **arguments);
int drop(char **arguments);

#endif
