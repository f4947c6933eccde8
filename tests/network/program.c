//! Other people's programs on a device's hooks: one that counts and gives a verdict, one that loses packets.

#define _GNU_SOURCE
#include "network.h"

#include <linux/bpf.h>
#include <net/if.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// Since Linux 6.6; headers may be older.
enum { TCX_INGRESS = 46, TCX_EGRESS = 47, BEFORE = 1 << 3, AFTER = 1 << 4 };

struct link_create {
    uint32_t program, target, type, flags, relative, padding;
    uint64_t revision;
};

int bpf(int command, void *attribute, unsigned size) {
    return (int)syscall(SYS_bpf, command, attribute, size);
}

struct bpf_insn bpf_instruction(int code, int target, int source, int offset, int value) {
    return (struct bpf_insn){(uint8_t)code, (uint8_t)target & 15, (uint8_t)source & 15, (int16_t)offset, value};
}

int bpf_load(const char *name, const struct bpf_insn *code, unsigned count) {
    union bpf_attr attribute = {0};
    attribute.prog_type = BPF_PROG_TYPE_SCHED_CLS;
    attribute.insns = (uintptr_t)code;
    attribute.insn_cnt = count;
    attribute.license = (uintptr_t) "GPL";
    strncpy(attribute.prog_name, name, sizeof attribute.prog_name - 1);
    int fd = bpf(BPF_PROG_LOAD, &attribute, sizeof attribute);
    if (fd < 0) fail("BPF_PROG_LOAD");
    return fd;
}

void bpf_attach(int program, const char *device, const char *hook, int first) {
    int type = strcmp(hook, "egress") ? TCX_INGRESS : TCX_EGRESS, flags = first ? BEFORE : AFTER;
    struct link_create attribute = {.program = (uint32_t)program, .type = (uint32_t)type, .flags = (uint32_t)flags};
    attribute.target = if_nametoindex(device);
    if (!attribute.target) fail(device);
    if (bpf(BPF_LINK_CREATE, &attribute, sizeof attribute) < 0) fail("BPF_LINK_CREATE");
}

// Counts packets until its input is closed.
int pass(char **arguments) {
    union bpf_attr attribute = {0};
    attribute.map_type = BPF_MAP_TYPE_ARRAY;
    attribute.key_size = 4;
    attribute.value_size = 8;
    attribute.max_entries = 1;
    int map = bpf(BPF_MAP_CREATE, &attribute, sizeof attribute), verdict = (int)number(arguments[3]);
    if (map < 0) fail("BPF_MAP_CREATE");
    const struct bpf_insn code[] = {
        bpf_instruction(BPF_ST | BPF_MEM | BPF_W, 10, 0, -4, 0),
        bpf_instruction(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, map),
        bpf_instruction(0, 0, 0, 0, 0),
        bpf_instruction(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
        bpf_instruction(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
        bpf_instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
        bpf_instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2, 0),
        bpf_instruction(BPF_ALU64 | BPF_MOV | BPF_K, 1, 0, 0, 1),
        bpf_instruction(BPF_STX | BPF_ATOMIC | BPF_DW, 0, 1, 0, BPF_ADD),
        bpf_instruction(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, verdict),
        bpf_instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    };
    int program = bpf_load("foreign", code, sizeof code / sizeof *code);
    bpf_attach(program, arguments[0], arguments[1], !strcmp(arguments[2], "first"));
    ready();
    wait_for_end();
    uint32_t key = 0;
    uint64_t seen = 0;
    memset(&attribute, 0, sizeof attribute);
    attribute.map_fd = (uint32_t)map;
    attribute.key = (uintptr_t)&key;
    attribute.value = (uintptr_t)&seen;
    if (bpf(BPF_MAP_LOOKUP_ELEM, &attribute, sizeof attribute)) fail("BPF_MAP_LOOKUP_ELEM");
    printf("{\"seen\":%llu}\n", (unsigned long long)seen);
    return 0;
}

// Loses one of so many received packets with payload, by chance, until its input is closed.
int drop(char **arguments) {
    enum { SHORT = 200, SHOT = 2, GO_ON = -1 };
    const struct bpf_insn code[] = {
        bpf_instruction(BPF_LDX | BPF_MEM | BPF_W, 2, 1, 0, 0),
        bpf_instruction(BPF_JMP | BPF_JLT | BPF_K, 2, 0, 5, SHORT),
        bpf_instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_prandom_u32),
        bpf_instruction(BPF_ALU | BPF_MOD | BPF_K, 0, 0, 0, (int)number(arguments[1])),
        bpf_instruction(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 2, 0),
        bpf_instruction(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, SHOT),
        bpf_instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
        bpf_instruction(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, GO_ON),
        bpf_instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    };
    bpf_attach(bpf_load("foreign", code, sizeof code / sizeof *code), arguments[0], "ingress", 0);
    ready();
    wait_for_end();
    return 0;
}

// Marks one of so many sent packets as having met congestion, by chance, if their connection may be told.
int congest(char **arguments) {
    enum { GO_ON = -1 };
    const struct bpf_insn code[] = {
        bpf_instruction(BPF_ALU64 | BPF_MOV | BPF_X, 6, 1, 0, 0),
        bpf_instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_prandom_u32),
        bpf_instruction(BPF_ALU | BPF_MOD | BPF_K, 0, 0, 0, (int)number(arguments[1])),
        bpf_instruction(BPF_JMP | BPF_JNE | BPF_K, 0, 0, 2, 0),
        bpf_instruction(BPF_ALU64 | BPF_MOV | BPF_X, 1, 6, 0, 0),
        bpf_instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_skb_ecn_set_ce),
        bpf_instruction(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, GO_ON),
        bpf_instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
    };
    bpf_attach(bpf_load("foreign", code, sizeof code / sizeof *code), arguments[0], "egress", 0);
    ready();
    wait_for_end();
    return 0;
}
