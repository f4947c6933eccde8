//! A witness of what arrives at a device: TCP segments by their reserved bits and marks of congestion, and checksums
//! that are wrong.

#define _GNU_SOURCE
#include "network.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RESERVED = 0x0e, ROOM = 64 << 20 };

static unsigned char frame[1 << 17];
static struct {
    long segments, others, marked, reserved, wrong, ce;
    long long marked_bytes, ce_bytes;
} told;

static uint32_t sum(const unsigned char *bytes, size_t length, uint32_t sum) {
    for (size_t i = 0; i + 1 < length; i += 2) sum += (uint32_t)(bytes[i] << 8 | bytes[i + 1]);
    if (length & 1) sum += (uint32_t)bytes[length - 1] << 8;
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return sum;
}

// A frame of Ethernet; `complete` if its checksum is no one's to fill in later. Whether it is a whole segment of TCP.
static int look(size_t length, long mark, int complete) {
    const unsigned char *ip = frame + ETH_HLEN, *tcp;
    size_t rest;
    unsigned class;
    uint32_t pseudo;
    // Without either address of IPv6 there is no TCP behind it.
    if (length < ETH_HLEN + 40) return 0;
    if (frame[12] == 8 && frame[13] == 0 && ip[9] == IPPROTO_TCP) {
        size_t header = (size_t)(ip[0] & 15) * 4;
        tcp = ip + header;
        rest = (size_t)(ip[2] << 8 | ip[3]) - header;
        pseudo = sum(ip + 12, 8, IPPROTO_TCP + (uint32_t)rest);
        told.wrong += sum(ip, header, 0) != 0xffff;
        class = ip[1];
    } else if (frame[12] == 0x86 && frame[13] == 0xdd && ip[6] == IPPROTO_TCP) {
        tcp = ip + 40;
        rest = (size_t)(ip[4] << 8 | ip[5]);
        pseudo = sum(ip + 8, 32, IPPROTO_TCP + (uint32_t)rest);
        class = ip[1] >> 4;
    } else
        return 0;
    if (tcp + rest > frame + length) return 0;
    told.segments++;
    if ((class & 3) == 3) told.ce++, told.ce_bytes += (long long)length;
    told.reserved += (tcp[12] & RESERVED) != 0;
    if (tcp[12] & mark) {
        told.marked++;
        told.marked_bytes += (long long)rest - (tcp[12] >> 4) * 4;
    }
    told.wrong += complete && sum(tcp, rest, pseudo) != 0xffff;
    return 1;
}

// Looks at all that a device receives until its input is closed; MARK is the bit of a TCP header that is looked for.
int sniff(char **arguments) {
    struct sockaddr_ll from = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    from.sll_ifindex = (int)if_nametoindex(arguments[0]);
    long mark = number(arguments[1]);
    int fd = socket(AF_PACKET, SOCK_RAW, 0), room = ROOM, one = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room)) fail("a packet socket");
    if (setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof one)) fail("PACKET_AUXDATA");
    if (bind(fd, (struct sockaddr *)&from, sizeof from)) fail(arguments[0]);
    ready();
    struct pollfd both[2] = {{.fd = fd, .events = POLLIN}, {.fd = STDIN_FILENO, .events = POLLIN}};
    // All that has arrived is looked at, also when the input is closed already.
    while (poll(both, 2, -1) > 0 && (both[0].revents || !both[1].revents)) {
        if (!both[0].revents) continue;
        char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
        struct iovec part = {frame, sizeof frame};
        struct msghdr message = {&from, sizeof from, &part, 1, control, sizeof control, 0};
        ssize_t got = recvmsg(fd, &message, 0);
        if (got < 0) fail("recvmsg");
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        struct tpacket_auxdata more = {0};
        if (header && header->cmsg_type == PACKET_AUXDATA) memcpy(&more, CMSG_DATA(header), sizeof more);
        if (from.sll_pkttype == PACKET_OUTGOING) continue;
        told.others += !look((size_t)got, mark, !(more.tp_status & TP_STATUS_CSUMNOTREADY));
    }
    struct tpacket_stats lost = {0};
    socklen_t size = sizeof lost;
    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &lost, &size)) fail("PACKET_STATISTICS");
    printf("{\"segments\":%ld,\"others\":%ld,\"marked\":%ld,\"marked_bytes\":%lld,\"reserved\":%ld,\"wrong\":%ld,"
           "\"ce\":%ld,\"ce_bytes\":%lld,\"lost\":%u}\n",
           told.segments, told.others, told.marked, told.marked_bytes, told.reserved, told.wrong, told.ce, told.ce_bytes,
           lost.tp_drops);
    return 0;
}
