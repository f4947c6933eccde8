//! A call that hangs for as long as it is told to: the kernel waits for memory that somebody else must bring.

#define _GNU_SOURCE
#include "workload.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, SECONDS_MAX = 120, FAULT_LIMIT_MS = 10000 };

struct hanging {
    struct bench bench;
    void *memory;
};

// modify_qp as libibverbs sends it, but for the place of the request. Memory to be registered would be simpler to let
// wait, but kernels before 6.2 do not wait for it.
static int modify_qp(struct ibv_context *context, void *request) {
    struct {
        struct ib_uverbs_ioctl_hdr header;
        struct ib_uverbs_attr attrs[2];
    } call = {
        .header = {.length = sizeof call,
                   .object_id = UVERBS_OBJECT_DEVICE,
                   .method_id = UVERBS_METHOD_INVOKE_WRITE,
                   .num_attrs = 2,
                   .driver_id = RDMA_DRIVER_RXE},
        .attrs = {{.attr_id = UVERBS_ATTR_WRITE_CMD,
                   .len = sizeof(uint64_t),
                   .flags = UVERBS_ATTR_F_MANDATORY,
                   .data = IB_USER_VERBS_CMD_MODIFY_QP},
                  {.attr_id = UVERBS_ATTR_CORE_IN,
                   .len = sizeof(struct ib_uverbs_modify_qp),
                   .flags = UVERBS_ATTR_F_MANDATORY,
                   .data = (uintptr_t)request}},
    };
    return ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, &call) ? errno : 0;
}

static void *call(void *argument) {
    struct hanging *hanging = argument;
    uint64_t before = now_ns();
    int error = modify_qp(hanging->bench.context, hanging->memory);
    print_row("modify_qp(hanging)", error, before, now_ns());
    return NULL;
}

static void *new_page(void) {
    void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("mmap", errno);
    return memory;
}

// Memory whose faults wait for an answer on the file that is returned; poll works only on one that does not block.
static int watched(void *memory) {
    int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (faults < 0) fail("userfaultfd", errno);
    struct uffdio_api api = {.api = UFFD_API};
    if (ioctl(faults, UFFDIO_API, &api)) fail("UFFDIO_API", errno);
    struct uffdio_register range = {
        .range = {.start = (uintptr_t)memory, .len = PAGE},
        .mode = UFFDIO_REGISTER_MODE_MISSING,
    };
    if (ioctl(faults, UFFDIO_REGISTER, &range)) fail("UFFDIO_REGISTER", errno);
    return faults;
}

int hang_mode(int argc, char **argv) {
    (void)argc;
    long seconds = number(argv[1], "SECONDS", SECONDS_MAX);
    struct hanging hanging = {.bench = make_bench(argv[0], 0), .memory = new_page()};
    struct ibv_qp *qp = make_qp(&hanging.bench);
    if (!qp) fail("create_qp", errno);
    // From RESET to RESET: a change that needs nothing else and always succeeds.
    struct ib_uverbs_modify_qp *request = new_page();
    request->qp_handle = qp->handle;
    request->attr_mask = IBV_QP_STATE;
    request->qp_state = IBV_QPS_RESET;
    int faults = watched(hanging.memory);
    pthread_t thread;
    int error = pthread_create(&thread, NULL, call, &hanging);
    if (error) fail("thread", error);
    // The fault says that the call has come to the kernel.
    struct pollfd ready = {.fd = faults, .events = POLLIN};
    if (poll(&ready, 1, FAULT_LIMIT_MS) != 1) fail("wait for a fault", ETIMEDOUT);
    struct uffd_msg message;
    if (read(faults, &message, sizeof message) != sizeof message) fail("read a fault", errno);
    nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
    struct uffdio_copy answer = {
        .dst = (uintptr_t)hanging.memory,
        .src = (uintptr_t)request,
        .len = PAGE,
    };
    if (ioctl(faults, UFFDIO_COPY, &answer)) fail("UFFDIO_COPY", errno);
    error = pthread_join(thread, NULL);
    if (error) fail("join", error);
    return 0;
}
