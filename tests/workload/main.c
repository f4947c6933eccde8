//! The programs that run inside the lab and make RDMA calls with a known end: the table of modes.
//!
//! Every mode prints JSON lines and ends by itself; a mode that hangs is ended by an alarm.

#define _GNU_SOURCE
#include "workload.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Longer than any mode takes in an emulated machine on a busy host.
enum { ALARM_SECONDS = 400 };

static const struct mode MODES[] = {
    {"truth", "DEVICE GID_INDEX", 2, truth_mode},
    {"probe", "DEVICE", 1, probe_mode},
    {"decoy", "DEVICE COUNT", 2, decoy_mode},
    {"storm", "DEVICE THREADS CALLS_PER_THREAD", 3, storm_mode},
    {"block", "DEVICE GID_INDEX THREADS CALLS_PER_THREAD", 4, block_mode},
    {"hang", "DEVICE SECONDS", 2, hang_mode},
    {"mix", "DEVICE COUNT BATCHES", 3, mix_mode},
    {"few", "DEVICE", 1, few_mode},
    {"hold", "DEVICE", 1, hold_mode},
};

static int usage(void) {
    fprintf(stderr, "usage:\n");
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++)
        fprintf(stderr, "  workload %s %s\n", MODES[i].name, MODES[i].arguments);
    return 2;
}

int main(int argc, char **argv) {
    if (argc < 2) return usage();
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        if (strcmp(argv[1], MODES[i].name)) continue;
        if (argc - 2 != MODES[i].arguments_count) return usage();
        alarm(ALARM_SECONDS);
        // Rows of a child process must not be printed twice, and must be there when something hangs.
        setvbuf(stdout, NULL, _IOLBF, 0);
        return MODES[i].run(argc - 2, argv + 2);
    }
    return usage();
}

void fail(const char *what, int error) {
    fprintf(stderr, "workload: %s: %s\n", what, error ? strerror(error) : "no such thing");
    exit(1);
}

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

const char *error_name(int error) {
    const char *name = error ? strerrorname_np(error) : "ok";
    return name ? name : "unnamed";
}

long number(const char *text, const char *what, long most) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > most) {
        fprintf(stderr, "workload: %s must be a number up to %ld, not '%s'\n", what, most, text);
        exit(2);
    }
    return value;
}

void print_row(const char *recipe, int error, uint64_t before_ns, uint64_t after_ns) {
    printf("{\"recipe\":\"%s\",\"errno\":\"%s\",\"pid\":%d,\"tid\":%d,\"before_ns\":%llu,\"after_ns\":%llu}\n", recipe,
           error_name(error), getpid(), gettid(), (unsigned long long)before_ns, (unsigned long long)after_ns);
}

struct ibv_context *open_named(const char *device) {
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (!list) return NULL;
    struct ibv_context *context = NULL;
    errno = ENODEV;
    for (int i = 0; i < count; i++) {
        if (strcmp(ibv_get_device_name(list[i]), device)) continue;
        context = ibv_open_device(list[i]);
        break;
    }
    int error = errno;
    ibv_free_device_list(list);
    errno = error;
    return context;
}

struct bench make_bench(const char *device, int gid_index) {
    struct bench bench = {.gid_index = gid_index};
    bench.context = open_named(device);
    if (!bench.context) fail(device, errno);
    bench.pd = ibv_alloc_pd(bench.context);
    if (!bench.pd) fail("alloc_pd", errno);
    bench.cq = ibv_create_cq(bench.context, 16, NULL, NULL, 0);
    if (!bench.cq) fail("create_cq", errno);
    if (ibv_query_gid(bench.context, PORT, gid_index, &bench.gid)) fail("query_gid", errno);
    bench.dead_gid = dead_neighbour(bench.gid);
    return bench;
}

union ibv_gid dead_neighbour(union ibv_gid gid) {
    // The lab counts its addresses from 1 and has at most 16.
    gid.raw[15] = 222;
    return gid;
}

struct ibv_qp *make_qp(struct bench *bench) {
    struct ibv_qp_init_attr attr = {
        .send_cq = bench->cq,
        .recv_cq = bench->cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    return ibv_create_qp(bench->pd, &attr);
}

int to_init(struct ibv_qp *qp) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int to_rtr(struct ibv_qp *qp, union ibv_gid remote, int sgid_index, enum ibv_mtu mtu) {
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu,
        .dest_qp_num = 17,
        .rq_psn = 1,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1,
                    .port_num = PORT,
                    .grh = {.dgid = remote, .sgid_index = (uint8_t)sgid_index, .hop_limit = 64}},
    };
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}
