//! What the files of the workload share: the rows they print, the clock, and the ways to a device.
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>

// The port every call uses: soft-RoCE devices have no other.
enum { PORT = 1 };

// A device with the things that most calls need.
struct bench {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    int gid_index;
    // The device's own address at that index, and one in its network that nobody has.
    union ibv_gid gid;
    union ibv_gid dead_gid;
};

// One mode: its arguments stand in `arguments`, from argv[2] on.
struct mode {
    const char *name;
    const char *arguments;
    int arguments_count;
    int (*run)(int argc, char **argv);
};

int truth_mode(int argc, char **argv);
int probe_mode(int argc, char **argv);
int decoy_mode(int argc, char **argv);
int storm_mode(int argc, char **argv);
int block_mode(int argc, char **argv);
int hang_mode(int argc, char **argv);
int mix_mode(int argc, char **argv);
int few_mode(int argc, char **argv);
int hold_mode(int argc, char **argv);

// Ends the process with status 1 and says what could not be set up.
_Noreturn void fail(const char *what, int error);

// Nanoseconds of CLOCK_MONOTONIC.
uint64_t now_ns(void);

// The name of an error, "ok" for 0.
const char *error_name(int error);

// A number of the command line from 0 to `most`; ends the process with status 2 for anything else.
long number(const char *text, const char *what, long most);

// Prints one row: what was called, how it ended, by whom and between which two instants.
void print_row(const char *recipe, int error, uint64_t before_ns, uint64_t after_ns);

// Opens a device by name; NULL with errno set when there is none or it cannot be opened.
struct ibv_context *open_named(const char *device);

// Opens a device and makes what most calls need; ends the process when that fails.
struct bench make_bench(const char *device, int gid_index);

// An address of the same IPv4 network that nobody has.
union ibv_gid dead_neighbour(union ibv_gid gid);

// A reliable QP in state RESET.
struct ibv_qp *make_qp(struct bench *bench);

// The change from RESET to INIT; 0 or the error.
int to_init(struct ibv_qp *qp);

// The change from INIT to RTR towards `remote`; 0 or the error.
int to_rtr(struct ibv_qp *qp, union ibv_gid remote, int sgid_index, enum ibv_mtu mtu);

// Calls that no function of libibverbs makes; 0 or the error.
int raw_bad_object(struct ibv_context *context);
int raw_bad_method(struct ibv_context *context);
int raw_bad_command(struct ibv_context *context);
int raw_bad_address(struct ibv_context *context);
int raw_short_write(struct ibv_context *context);
int raw_unknown_write(struct ibv_context *context);

// 0 when a call that returns a pointer gave one, else its error.
static inline int made(const void *object) {
    return object ? 0 : errno;
}
