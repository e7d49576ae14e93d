/* Tries to reach each address given, or listens on one, and says what came of it.
 * reach KIND:WHERE...   KIND is path, abstract, tcp4, tcp6, udp4, udp6, ping4 or ping6, WHERE a path, a name or address,port
 * reach --listen NAME   an abstract socket; says "listening", then "reached" for every connection */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t local_address(struct sockaddr_un *address, const char *name, int abstract) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  strncpy(address->sun_path + abstract, name, sizeof address->sun_path - 2);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)abstract + strlen(name) + (abstract ? 0 : 1));
}

static int reach_local(const char *name, int abstract) {
  struct sockaddr_un address;
  socklen_t length = local_address(&address, name, abstract);
  return connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, length);
}

static int reach_network(const char *where, int family, int type, int protocol) {
  char host[128];
  const char *comma = strchr(where, ',');
  if (!comma) return -1;
  snprintf(host, sizeof host, "%.*s", (int)(comma - where), where);
  in_port_t port = htons((in_port_t)atoi(comma + 1));
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = port};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = port};
  inet_pton(family, host, family == AF_INET ? (void *)&four.sin_addr : (void *)&six.sin6_addr);
  int end = socket(family, type, protocol);
  if (end < 0) return -1;
  struct timeval patience = {.tv_sec = 2};
  setsockopt(end, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
  if (connect(end, address, family == AF_INET ? sizeof four : sizeof six) != 0) return -1;
  /* An echo request, which to anybody else is a word like any other. */
  char word[8] = {family == AF_INET ? 8 : (char)128};
  return write(end, word, sizeof word) == sizeof word ? 0 : -1;
}

static int listen_at(const char *name) {
  struct sockaddr_un address;
  socklen_t length = local_address(&address, name, 1);
  int end = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(end, (struct sockaddr *)&address, length) != 0 || listen(end, 8) != 0) return 1;
  puts("listening");
  fflush(stdout);
  for (int one; (one = accept(end, NULL, NULL)) >= 0; close(one)) {
    puts("reached");
    fflush(stdout);
  }
  return 1;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--listen") == 0) return listen_at(argv[2]);
  for (int i = 1; i < argc; i++) {
    const char *where = strchr(argv[i], ':');
    if (!where) return 1;
    where++;
    int answer = -1;
    if (strncmp(argv[i], "path:", 5) == 0) answer = reach_local(where, 0);
    else if (strncmp(argv[i], "abstract:", 9) == 0) answer = reach_local(where, 1);
    else if (strncmp(argv[i], "tcp4:", 5) == 0) answer = reach_network(where, AF_INET, SOCK_STREAM, 0);
    else if (strncmp(argv[i], "tcp6:", 5) == 0) answer = reach_network(where, AF_INET6, SOCK_STREAM, 0);
    else if (strncmp(argv[i], "udp4:", 5) == 0) answer = reach_network(where, AF_INET, SOCK_DGRAM, 0);
    else if (strncmp(argv[i], "udp6:", 5) == 0) answer = reach_network(where, AF_INET6, SOCK_DGRAM, 0);
    else if (strncmp(argv[i], "ping4:", 6) == 0) answer = reach_network(where, AF_INET, SOCK_DGRAM, IPPROTO_ICMP);
    else if (strncmp(argv[i], "ping6:", 6) == 0) answer = reach_network(where, AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6);
    printf("%s %s\n", argv[i], answer == 0 ? "reached" : strerrorname_np(errno));
  }
  return 0;
}
