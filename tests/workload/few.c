//! Few calls: one of each kind that asks a device's firmware, and one on a device that may have gone meanwhile.

#define _GNU_SOURCE
#include "workload.h"

#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void *page(void) {
    void *address = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) fail("mmap", errno);
    return address;
}

int few_mode(int argc, char **argv) {
    (void)argc;
    struct ibv_context *context = open_named(argv[0]);
    if (!context) fail(argv[0], errno);
    uint64_t before = now_ns();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    print_row("alloc_pd", made(pd), before, now_ns());
    if (!pd) return 0;
    void *memory = page();
    before = now_ns();
    struct ibv_mr *mr = ibv_reg_mr(pd, memory, PAGE, IBV_ACCESS_LOCAL_WRITE);
    print_row("reg_mr", made(mr), before, now_ns());
    before = now_ns();
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    print_row("create_cq", made(cq), before, now_ns());
    return 0;
}

// The device is open before a line is printed, and used after one was read.
int hold_mode(int argc, char **argv) {
    (void)argc;
    struct ibv_context *context = open_named(argv[0]);
    if (!context) fail(argv[0], errno);
    struct ibv_pd *pd = ibv_alloc_pd(context);
    if (!pd) fail("alloc_pd", errno);
    print_row("open_device", 0, now_ns(), now_ns());
    char letter;
    if (read(STDIN_FILENO, &letter, 1) != 1) fail("read", errno);
    uint64_t before = now_ns();
    struct ibv_mr *mr = ibv_reg_mr(pd, page(), 0, IBV_ACCESS_LOCAL_WRITE);
    print_row("reg_mr", made(mr), before, now_ns());
    return 0;
}
