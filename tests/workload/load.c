//! Calls in numbers: only good ones, failing ones as fast as they go, hanging ones, and a timed mix.

#define _GNU_SOURCE
#include "workload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, THREADS_MAX = 256 };

static void *page(void) {
    void *address = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) fail("mmap", errno);
    // Touched once, so that no call pays for the first use.
    memset(address, 1, PAGE);
    return address;
}

static void must(const char *what, int error) {
    if (error) fail(what, error);
}

// Each round makes and ends one of each; the device is opened once.
int decoy_mode(int argc, char **argv) {
    (void)argc;
    long rounds = number(argv[1], "COUNT", 1000000);
    struct ibv_context *context = open_named(argv[0]);
    if (!context) fail(argv[0], errno);
    void *memory = page();
    for (long i = 0; i < rounds; i++) {
        struct bench bench = {.context = context};
        must("alloc_pd", made(bench.pd = ibv_alloc_pd(context)));
        struct ibv_mr *mr = ibv_reg_mr(bench.pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
        must("reg_mr", made(mr));
        must("create_cq", made(bench.cq = ibv_create_cq(context, 16, NULL, NULL, 0)));
        struct ibv_qp *qp = make_qp(&bench);
        must("create_qp", made(qp));
        must("modify_qp", to_init(qp));
        must("destroy_qp", ibv_destroy_qp(qp));
        must("destroy_cq", ibv_destroy_cq(bench.cq));
        must("dereg_mr", ibv_dereg_mr(mr));
        must("dealloc_pd", ibv_dealloc_pd(bench.pd));
    }
    ibv_close_device(context);
    printf("{\"mode\":\"decoy\",\"open_device\":1,\"alloc_pd\":%1$ld,\"reg_mr\":%1$ld,\"create_cq\":%1$ld,"
           "\"create_qp\":%1$ld,\"modify_qp\":%1$ld,\"destroy_qp\":%1$ld,\"destroy_cq\":%1$ld,\"dereg_mr\":%1$ld,"
           "\"dealloc_pd\":%1$ld,\"failed\":0}\n",
           rounds);
    return 0;
}

// Threads that start together and call one function; what they saw is added up.
struct gang {
    struct bench bench;
    const char *mode;
    int expected;
    long calls_each;
    pthread_barrier_t start;
    atomic_long failed, other;
    atomic_ullong shortest_ns, longest_ns;
    // Makes one call for a thread, which may keep something of its own for all its calls.
    int (*call)(struct gang *gang, void *own);
    void *(*prepare)(struct gang *gang);
};

static void note_duration(struct gang *gang, unsigned long long took) {
    unsigned long long seen = atomic_load(&gang->shortest_ns);
    while (took < seen && !atomic_compare_exchange_weak(&gang->shortest_ns, &seen, took)) {}
    seen = atomic_load(&gang->longest_ns);
    while (took > seen && !atomic_compare_exchange_weak(&gang->longest_ns, &seen, took)) {}
}

static void *member(void *argument) {
    struct gang *gang = argument;
    void *own = gang->prepare(gang);
    long failed = 0, other = 0;
    pthread_barrier_wait(&gang->start);
    for (long i = 0; i < gang->calls_each; i++) {
        uint64_t before = now_ns();
        int error = gang->call(gang, own);
        note_duration(gang, now_ns() - before);
        failed += error == gang->expected;
        other += error != gang->expected;
    }
    atomic_fetch_add(&gang->failed, failed);
    atomic_fetch_add(&gang->other, other);
    return NULL;
}

static int run_gang(struct gang *gang, long threads) {
    pthread_t members[THREADS_MAX];
    must("barrier", pthread_barrier_init(&gang->start, NULL, (unsigned)threads + 1));
    atomic_store(&gang->shortest_ns, ~0ull);
    for (long i = 0; i < threads; i++) must("thread", pthread_create(&members[i], NULL, member, gang));
    pthread_barrier_wait(&gang->start);
    uint64_t before = now_ns();
    for (long i = 0; i < threads; i++) must("join", pthread_join(members[i], NULL));
    uint64_t took = now_ns() - before;
    printf("{\"mode\":\"%s\",\"threads\":%ld,\"calls\":%ld,\"failed\":%ld,\"errno\":\"%s\",\"other\":%ld,"
           "\"shortest_ns\":%llu,\"longest_ns\":%llu,\"took_ns\":%llu}\n",
           gang->mode, threads, threads * gang->calls_each, atomic_load(&gang->failed), error_name(gang->expected),
           atomic_load(&gang->other), atomic_load(&gang->shortest_ns), atomic_load(&gang->longest_ns),
           (unsigned long long)took);
    return atomic_load(&gang->other) ? 1 : 0;
}

static void *own_page(struct gang *gang) {
    (void)gang;
    return page();
}

static int register_nothing(struct gang *gang, void *memory) {
    return made(ibv_reg_mr(gang->bench.pd, memory, 0, IBV_ACCESS_LOCAL_WRITE));
}

int storm_mode(int argc, char **argv) {
    (void)argc;
    long threads = number(argv[1], "THREADS", THREADS_MAX);
    struct gang gang = {
        .mode = "storm",
        .expected = EINVAL,
        .calls_each = number(argv[2], "CALLS_PER_THREAD", 10000000),
        .call = register_nothing,
        .prepare = own_page,
        .bench = make_bench(argv[0], 0),
    };
    return run_gang(&gang, threads);
}

static void *own_qp(struct gang *gang) {
    struct ibv_qp *qp = make_qp(&gang->bench);
    must("create_qp", made(qp));
    must("modify_qp to INIT", to_init(qp));
    return qp;
}

static int connect_to_nobody(struct gang *gang, void *qp) {
    return to_rtr(qp, gang->bench.dead_gid, gang->bench.gid_index, IBV_MTU_1024);
}

int block_mode(int argc, char **argv) {
    (void)argc;
    int gid_index = (int)number(argv[1], "GID_INDEX", 255);
    long threads = number(argv[2], "THREADS", THREADS_MAX);
    struct gang gang = {
        .mode = "block",
        .expected = ETIMEDOUT,
        .calls_each = number(argv[3], "CALLS_PER_THREAD", 100),
        .call = connect_to_nobody,
        .prepare = own_qp,
        .bench = make_bench(argv[0], gid_index),
    };
    return run_gang(&gang, threads);
}

// Timed in short batches, so that on a busy host some of them are undisturbed.
int mix_mode(int argc, char **argv) {
    (void)argc;
    long rounds = number(argv[1], "COUNT", 10000000);
    long batches = number(argv[2], "BATCHES", 1000000);
    if (rounds == 0) fail("COUNT", EINVAL);
    struct bench bench = make_bench(argv[0], 0);
    void *memory = page();
    struct ibv_port_attr port;
    for (long batch = 0; batch < batches; batch++) {
        uint64_t start = now_ns();
        for (long i = 0; i < rounds; i++) must("query_port", ibv_query_port(bench.context, PORT, &port));
        uint64_t middle = now_ns();
        for (long i = 0; i < rounds; i++) {
            struct ibv_mr *mr = ibv_reg_mr(bench.pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
            must("reg_mr", made(mr));
            must("dereg_mr", ibv_dereg_mr(mr));
        }
        uint64_t end = now_ns();
        printf("{\"mode\":\"mix\",\"rounds\":%ld,\"query_port_ns\":%.1f,\"reg_dereg_ns\":%.1f}\n", rounds,
               (double)(middle - start) / (double)rounds, (double)(end - middle) / (double)rounds);
    }
    return 0;
}
