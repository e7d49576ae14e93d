/* socket-owner: reads connections on stdin, and writes for each the user whose socket is at its other end, or NOBODY. TCP itself does not
 * say, and to read the list of all sockets takes the kernel many milliseconds. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../guest.h"

#define NOBODY UINT32_MAX
#define LISTENING 10 /* TCP_LISTEN; the header of the C library that has it cannot be combined with those of the kernel */

/* One request, in network byte order. The first address and port are those of the socket that is looked up. */
struct connection {
  uint8_t is_ipv6, unused[3];
  uint16_t port, peer_port;
  uint8_t address[16], peer_address[16];
};

/* 0: it was asked, and *uid is set; else the kernel cannot be asked in this way. */
static int ask_kernel(int netlink, const struct connection *about, uint32_t *uid) {
  struct {
    struct nlmsghdr header;
    struct inet_diag_req_v2 body;
  } request = {.header = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
               .body = {.sdiag_family = about->is_ipv6 ? AF_INET6 : AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u,
                        .id = {.idiag_sport = about->port, .idiag_dport = about->peer_port, .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}}};
  size_t length = about->is_ipv6 ? 16 : 4;
  memcpy(request.body.id.idiag_src, about->address, length);
  memcpy(request.body.id.idiag_dst, about->peer_address, length);
  if (send(netlink, &request, sizeof request, 0) != sizeof request) return -1;
  union {
    struct nlmsghdr header;
    uint8_t bytes[4096];
  } reply;
  ssize_t got = recv(netlink, &reply, sizeof reply, 0);
  if (got < (ssize_t)sizeof reply.header) return -1;
  if (reply.header.nlmsg_type == NLMSG_ERROR) {
    const struct nlmsgerr *error = NLMSG_DATA(&reply.header);
    /* Without its module the kernel says ENOENT too, so the list decides. */
    return got >= (ssize_t)NLMSG_LENGTH(sizeof error->error) && error->error == -ENOENT ? -ENOENT : -1;
  }
  const struct inet_diag_msg *found = NLMSG_DATA(&reply.header);
  if (reply.header.nlmsg_type != SOCK_DIAG_BY_FAMILY || got < (ssize_t)NLMSG_LENGTH(sizeof *found)) return -1;
  /* A listener on that port is found too. A socket without an inode was closed, and no longer says whose it was. */
  bool good = found->idiag_state != LISTENING && found->id.idiag_dport == about->peer_port && found->idiag_inode != 0;
  *uid = good ? found->idiag_uid : NOBODY;
  return 0;
}

/* As the list prints it: 32-bit words in the byte order of the machine. */
static void print_address(char *to, const uint8_t *address, size_t length) {
  for (size_t at = 0; at < length; at += 4) {
    uint32_t word;
    memcpy(&word, address + at, 4);
    to += sprintf(to, "%08X", word);
  }
}

static uint32_t look_up(const char *list, const uint8_t *address, const uint8_t *peer_address, size_t length, const struct connection *about) {
  char local[33], remote[33], line[512], here[33], there[33];
  print_address(local, address, length);
  print_address(remote, peer_address, length);
  FILE *file = fopen(list, "re");
  uint32_t owner = NOBODY;
  while (file && owner == NOBODY && fgets(line, sizeof line, file)) {
    unsigned port, peer_port, uid;
    unsigned long inode;
    if (sscanf(line, " %*d: %32[0-9A-F]:%x %32[0-9A-F]:%x %*x %*x:%*x %*x:%*x %*x %u %*d %lu", here, &port, there, &peer_port, &uid, &inode) != 6) continue;
    if (port != ntohs(about->port) || peer_port != ntohs(about->peer_port) || inode == 0) continue;
    if (strcmp(here, local) == 0 && strcmp(there, remote) == 0) owner = uid;
  }
  if (file) fclose(file);
  return owner;
}

static uint32_t search_lists(const struct connection *about) {
  if (about->is_ipv6) return look_up("/proc/self/net/tcp6", about->address, about->peer_address, 16, about);
  uint32_t owner = look_up("/proc/self/net/tcp", about->address, about->peer_address, 4, about);
  if (owner != NOBODY) return owner;
  /* A socket for both protocols is in the other list. */
  uint8_t address[16] = {[10] = 0xff, [11] = 0xff}, peer_address[16] = {[10] = 0xff, [11] = 0xff};
  memcpy(address + 12, about->address, 4);
  memcpy(peer_address + 12, about->peer_address, 4);
  return look_up("/proc/self/net/tcp6", address, peer_address, 16, about);
}

int socket_owner_main(void) {
  int netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  struct connection about;
  bool is_known = false; /* the kernel has found a socket before: then one that it does not find is gone */
  for (size_t have = 0;;) {
    ssize_t got = read(0, (uint8_t *)&about + have, sizeof about - have);
    if (got <= 0) return got == 0 ? 0 : 1;
    have += (size_t)got;
    if (have < sizeof about) continue;
    have = 0;
    uint32_t uid = NOBODY;
    int error = netlink < 0 ? -1 : ask_kernel(netlink, &about, &uid);
    if (error && !(is_known && error == -ENOENT)) uid = search_lists(&about);
    is_known = is_known || !error;
    uint8_t reply[4];
    write_u32(reply, uid);
    if (write(1, reply, sizeof reply) != sizeof reply) return 1;
  }
}
