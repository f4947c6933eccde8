//! Calls that reach the kernel past libibverbs: malformed ioctls and writes on the device's file.

#include "workload.h"

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

// Ids that no kernel gives to an object, a method, an ioctl or a command: far above all, below the drivers' own.
enum { BAD_OBJECT = 0xff0, BAD_METHOD = 0xff1, BAD_IOCTL = 0x7f, BAD_COMMAND = 99 };

// The driver's id is checked before object and method: the device must be a soft-RoCE one.
static int verbs_ioctl(struct ibv_context *context, uint16_t object, uint16_t method) {
    struct ib_uverbs_ioctl_hdr header = {
        .length = sizeof header,
        .object_id = object,
        .method_id = method,
        .driver_id = RDMA_DRIVER_RXE,
    };
    return ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, &header) ? errno : 0;
}

int raw_bad_object(struct ibv_context *context) {
    return verbs_ioctl(context, BAD_OBJECT, 0);
}

int raw_bad_method(struct ibv_context *context) {
    return verbs_ioctl(context, 0, BAD_METHOD);
}

int raw_bad_command(struct ibv_context *context) {
    return ioctl(context->cmd_fd, _IO(RDMA_IOCTL_MAGIC, BAD_IOCTL)) ? errno : 0;
}

int raw_bad_address(struct ibv_context *context) {
    return ioctl(context->cmd_fd, RDMA_VERBS_IOCTL, NULL) ? errno : 0;
}

int raw_short_write(struct ibv_context *context) {
    return write(context->cmd_fd, "abc", 3) == 3 ? 0 : errno;
}

int raw_unknown_write(struct ibv_context *context) {
    struct {
        uint32_t command;
        uint16_t in_words;
        uint16_t out_words;
    } header = {.command = BAD_COMMAND, .in_words = sizeof header / 4};
    return write(context->cmd_fd, &header, sizeof header) == sizeof header ? 0 : errno;
}

// The calls by which programs ask what a kernel can do.
static const struct {
    const char *name;
    int (*make)(struct ibv_context *context);
} PROBES[] = {
    {"raw ioctl(bad object)", raw_bad_object},
    {"raw ioctl(bad method)", raw_bad_method},
    {"raw ioctl(bad cmd)", raw_bad_command},
};

int probe_mode(int argc, char **argv) {
    (void)argc;
    uint64_t before = now_ns();
    struct ibv_context *context = open_named(argv[0]);
    print_row("open_device(ok)", made(context), before, now_ns());
    if (!context) return 1;
    for (size_t i = 0; i < sizeof PROBES / sizeof *PROBES; i++) {
        before = now_ns();
        int error = PROBES[i].make(context);
        print_row(PROBES[i].name, error, before, now_ns());
    }
    return 0;
}
