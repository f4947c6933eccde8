//! Every call whose end is known (facts/verbs-failures.tsv), made one after the other: one table, one row each.

#define _GNU_SOURCE
#include "workload.h"

#include <grp.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, NOBODY = 65534, BIG = 4 << 20, MEMLOCK = 1 << 20 };

// What earlier calls made for later ones. Nothing is taken down: the kernel does it when the process ends, and a
// clean-up that failed would be a failure that no row tells of.
static struct bench bench;
static const char *device;
static struct ibv_device_attr limits;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static char *page;
static const union ibv_gid NOWHERE = {.raw = {[10] = 0xff, [11] = 0xff, 203, 0, 113, 9}};

static char *map(size_t length, int protection) {
    char *address = mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) fail("mmap", errno);
    return address;
}

static int reg(void *address, size_t length, unsigned access) {
    return made(ibv_reg_mr(bench.pd, address, length, access));
}

static int open_device(void) {
    bench.context = open_named(device);
    return made(bench.context);
}
static int query_device(void) {
    return ibv_query_device(bench.context, &limits);
}
static int alloc_pd(void) {
    bench.pd = ibv_alloc_pd(bench.context);
    return made(bench.pd);
}
static int reg_mr(void) {
    page = map(PAGE, PROT_READ | PROT_WRITE);
    mr = ibv_reg_mr(bench.pd, page, PAGE, IBV_ACCESS_LOCAL_WRITE);
    return made(mr);
}
static int reg_mr_remote_only(void) {
    return reg(page, PAGE, IBV_ACCESS_REMOTE_WRITE);
}
static int reg_mr_unknown_flag(void) {
    return reg(page, PAGE, IBV_ACCESS_LOCAL_WRITE | 1 << 18);
}
static int reg_mr_unmapped(void) {
    char *address = map(PAGE, PROT_READ | PROT_WRITE);
    munmap(address, PAGE);
    return reg(address, PAGE, IBV_ACCESS_LOCAL_WRITE);
}
static int reg_mr_readonly(void) {
    return reg(map(PAGE, PROT_READ), PAGE, IBV_ACCESS_LOCAL_WRITE);
}
static int reg_mr_empty(void) {
    return reg(page, 0, IBV_ACCESS_LOCAL_WRITE);
}
static int reg_mr_on_demand(void) {
    return reg(page, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
}
static int reg_mr_misaligned(void) {
    return made(ibv_reg_mr_iova(bench.pd, page, PAGE, (uintptr_t)page + 8, IBV_ACCESS_LOCAL_WRITE));
}
static int reg_dmabuf_mr(void) {
    return made(ibv_reg_dmabuf_mr(bench.pd, 0, PAGE, 0, -1, IBV_ACCESS_LOCAL_WRITE));
}
static int rereg_mr(void) {
    errno = 0;
    return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) ? errno : 0;
}
static int dealloc_pd_busy(void) {
    return ibv_dealloc_pd(bench.pd);
}

static int create_cq(int entries) {
    return made(ibv_create_cq(bench.context, entries, NULL, NULL, 0));
}
static int create_cq_empty(void) {
    return create_cq(0);
}
static int create_cq_over(void) {
    return create_cq(limits.max_cqe + 1);
}
static int create_cq_huge(void) {
    return create_cq(INT_MAX);
}
static int create_cq_ok(void) {
    bench.cq = ibv_create_cq(bench.context, 16, NULL, NULL, 0);
    return made(bench.cq);
}

static int create_qp(enum ibv_qp_type type, uint32_t wr, uint32_t sge) {
    struct ibv_qp_init_attr attr = {
        .send_cq = bench.cq,
        .recv_cq = bench.cq,
        .cap = {.max_send_wr = wr, .max_recv_wr = wr, .max_send_sge = sge, .max_recv_sge = sge},
        .qp_type = type,
    };
    return made(ibv_create_qp(bench.pd, &attr));
}
static int create_qp_wr(void) {
    return create_qp(IBV_QPT_RC, (uint32_t)limits.max_qp_wr + 1, 1);
}
static int create_qp_sge(void) {
    return create_qp(IBV_QPT_RC, 4, (uint32_t)limits.max_sge + 1);
}
static int create_qp_type(void) {
    return create_qp(0x42, 4, 1);
}
static int create_qp_packet(void) {
    return create_qp(IBV_QPT_RAW_PACKET, 4, 1);
}
static int create_qp_xrc(void) {
    return create_qp(IBV_QPT_XRC_SEND, 4, 1);
}
static int create_qp_ok(void) {
    qp = make_qp(&bench);
    return made(qp);
}
static int destroy_cq_busy(void) {
    return ibv_destroy_cq(bench.cq);
}

static int modify_rts(void) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}
static int modify_pkey(void) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .pkey_index = 999};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}
static int modify_missing(void) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}
static int modify_init(void) {
    return to_init(qp);
}
static int modify_sgid(void) {
    return to_rtr(qp, bench.gid, 200, IBV_MTU_1024);
}
static int modify_mtu(void) {
    return to_rtr(qp, bench.gid, bench.gid_index, 9);
}
static int modify_dead(void) {
    return to_rtr(qp, bench.dead_gid, bench.gid_index, IBV_MTU_1024);
}
static int modify_nowhere(void) {
    return to_rtr(qp, NOWHERE, bench.gid_index, IBV_MTU_1024);
}
static int modify_big_mtu(void) {
    return to_rtr(qp, bench.gid, bench.gid_index, IBV_MTU_4096);
}
static int create_ah_dead(void) {
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = PORT,
        .grh = {.dgid = bench.dead_gid, .sgid_index = (uint8_t)bench.gid_index, .hop_limit = 64},
    };
    return made(ibv_create_ah(bench.pd, &attr));
}

static int create_srq(uint32_t wr) {
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = wr, .max_sge = 1}};
    return made(ibv_create_srq(bench.pd, &attr));
}
static int create_srq_over(void) {
    return create_srq((uint32_t)limits.max_srq_wr + 1);
}
static int create_srq_ok(void) {
    return create_srq(8);
}
static int alloc_mw(void) {
    return made(ibv_alloc_mw(bench.pd, IBV_MW_TYPE_1));
}
static int create_flow(void) {
    struct ibv_flow_attr attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof attr, .port = PORT};
    return made(ibv_create_flow(qp, &attr));
}
static int open_xrcd(void) {
    struct ibv_xrcd_init_attr attr = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
        .fd = -1,
    };
    return made(ibv_open_xrcd(bench.context, &attr));
}
static int alloc_dm(void) {
    struct ibv_alloc_dm_attr attr = {.length = PAGE};
    return made(ibv_alloc_dm(bench.context, &attr));
}

static int bad_object(void) {
    return raw_bad_object(bench.context);
}
static int bad_method(void) {
    return raw_bad_method(bench.context);
}
static int bad_command(void) {
    return raw_bad_command(bench.context);
}
static int bad_address(void) {
    return raw_bad_address(bench.context);
}
static int short_write(void) {
    return raw_short_write(bench.context);
}
static int unknown_write(void) {
    return raw_unknown_write(bench.context);
}
static int reg_mr_big(void) {
    return reg(map(BIG, PROT_READ | PROT_WRITE), BIG, IBV_ACCESS_LOCAL_WRITE);
}

// Who makes a call: this process, or a child of its own under a limit on locked memory.
enum who { HERE, LIMITED_ROOT, LIMITED_NOBODY };

static const struct {
    const char *name;
    int (*make)(void);
    enum who who;
} RECIPES[] = {
    {"open_device(ok)", open_device, HERE},
    {"query_device(ok)", query_device, HERE},
    {"alloc_pd(ok)", alloc_pd, HERE},
    {"reg_mr(ok)", reg_mr, HERE},
    {"reg_mr(REMOTE_WRITE no LOCAL)", reg_mr_remote_only, HERE},
    {"reg_mr(unknown flag 1<<18)", reg_mr_unknown_flag, HERE},
    {"reg_mr(unmapped addr)", reg_mr_unmapped, HERE},
    {"reg_mr(readonly map LOCAL_WRITE)", reg_mr_readonly, HERE},
    {"reg_mr(len=0)", reg_mr_empty, HERE},
    {"reg_mr(ON_DEMAND)", reg_mr_on_demand, HERE},
    {"reg_mr_iova(misaligned iova)", reg_mr_misaligned, HERE},
    {"reg_dmabuf_mr(fd=-1)", reg_dmabuf_mr, HERE},
    {"rereg_mr(bad flags)", rereg_mr, HERE},
    {"dealloc_pd(busy: MR)", dealloc_pd_busy, HERE},
    {"create_cq(cqe=0)", create_cq_empty, HERE},
    {"create_cq(cqe=max+1)", create_cq_over, HERE},
    {"create_cq(cqe=INT_MAX)", create_cq_huge, HERE},
    {"create_cq(ok)", create_cq_ok, HERE},
    {"create_qp(max_wr too large)", create_qp_wr, HERE},
    {"create_qp(max_sge too large)", create_qp_sge, HERE},
    {"create_qp(bad type 0x42)", create_qp_type, HERE},
    {"create_qp(RAW_PACKET)", create_qp_packet, HERE},
    {"create_qp(XRC_SEND)", create_qp_xrc, HERE},
    {"create_qp(ok)", create_qp_ok, HERE},
    {"destroy_cq(busy: QP)", destroy_cq_busy, HERE},
    {"modify_qp(RESET->RTS)", modify_rts, HERE},
    {"modify_qp(INIT pkey=999)", modify_pkey, HERE},
    {"modify_qp(INIT missing attrs)", modify_missing, HERE},
    {"modify_qp(INIT ok)", modify_init, HERE},
    {"modify_qp(RTR sgid_index=200)", modify_sgid, HERE},
    {"modify_qp(RTR mtu=bad 9)", modify_mtu, HERE},
    {"modify_qp(RTR dead neighbour)", modify_dead, HERE},
    {"modify_qp(RTR no route)", modify_nowhere, HERE},
    {"modify_qp(RTR mtu=4096>active)", modify_big_mtu, HERE},
    {"create_ah(dead neighbour)", create_ah_dead, HERE},
    {"create_srq(max_wr+1)", create_srq_over, HERE},
    {"create_srq(ok)", create_srq_ok, HERE},
    {"alloc_mw(type 1)", alloc_mw, HERE},
    {"create_flow", create_flow, HERE},
    {"open_xrcd", open_xrcd, HERE},
    {"alloc_dm", alloc_dm, HERE},
    {"raw ioctl(bad object)", bad_object, HERE},
    {"raw ioctl(bad method)", bad_method, HERE},
    {"raw ioctl(bad cmd)", bad_command, HERE},
    {"raw ioctl(EFAULT)", bad_address, HERE},
    {"raw write(3 bytes)", short_write, HERE},
    {"raw write(unknown cmd 99)", unknown_write, HERE},
    {"reg_mr(4M, memlock 1M, root)", reg_mr_big, LIMITED_ROOT},
    {"reg_mr(4M, memlock 1M, nobody)", reg_mr_big, LIMITED_NOBODY},
};

static void make(const char *name, int (*call)(void)) {
    uint64_t before = now_ns();
    int error = call();
    print_row(name, error, before, now_ns());
}

// The child keeps the parent's open device: one more open would be one more probing call, which no row tells of.
static void make_limited(const char *name, int (*call)(void), enum who who) {
    pid_t child = fork();
    if (child < 0) fail("fork", errno);
    if (child == 0) {
        struct rlimit limit = {MEMLOCK, MEMLOCK};
        if (setrlimit(RLIMIT_MEMLOCK, &limit)) fail("setrlimit", errno);
        if (who == LIMITED_NOBODY && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))) fail("setuid", errno);
        make(name, call);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status) fail(name, ECHILD);
}

int truth_mode(int argc, char **argv) {
    (void)argc;
    device = argv[0];
    bench.gid_index = (int)number(argv[1], "GID_INDEX", 255);
    for (size_t i = 0; i < sizeof RECIPES / sizeof *RECIPES; i++) {
        if (RECIPES[i].who == HERE)
            make(RECIPES[i].name, RECIPES[i].make);
        else
            make_limited(RECIPES[i].name, RECIPES[i].make, RECIPES[i].who);
        if (i == 0) {
            if (!bench.context) return 1;
            if (ibv_query_gid(bench.context, PORT, bench.gid_index, &bench.gid)) fail("query_gid", errno);
            bench.dead_gid = dead_neighbour(bench.gid);
        }
    }
    return 0;
}
