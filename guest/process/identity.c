/* Looks up users and groups in the files of a container, which can contain anything. */
#include "identity.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FIELDS 7
#define MAX_LINE 8192
#define MAX_FILE (4 << 20)

/* Opens a file of lines, if it is a regular file: nothing else, which could block us. */
static FILE *open_lines(const char *path) {
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  struct stat stat;
  if (fd < 0) return NULL;
  if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode) || stat.st_size > MAX_FILE) {
    close(fd);
    return NULL;
  }
  FILE *file = fdopen(fd, "r");
  if (!file) close(fd);
  return file;
}

/* The next line with at least `wanted` fields, split at its colons. */
static bool next_entry(FILE *file, char line[MAX_LINE], char *fields[MAX_FIELDS], int wanted) {
  while (fgets(line, MAX_LINE, file)) {
    int count = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *at = line; at && count < MAX_FIELDS; count++) fields[count] = strsep(&at, ":");
    if (count >= wanted) return true;
  }
  return false;
}

static bool parse_number(const char *text, uint32_t *out) {
  if (*text == 0 || strspn(text, "0123456789") != strlen(text) || strlen(text) > 10) return false;
  unsigned long long value = strtoull(text, NULL, 10);
  if (value >= UINT32_MAX) return false;
  *out = (uint32_t)value;
  return true;
}

static bool find_group(const char *text, gid_t *out) {
  char line[MAX_LINE], *fields[MAX_FIELDS];
  bool found = false;
  FILE *file = open_lines("/etc/group");
  while (file && !found && next_entry(file, line, fields, 3)) found = strcmp(fields[0], text) == 0 && parse_number(fields[2], out);
  if (file) fclose(file);
  return found || parse_number(text, out);
}

static bool is_listed(char *members, const char *name) {
  for (char *member; (member = strsep(&members, ","));)
    if (strcmp(member, name) == 0) return true;
  return false;
}

static void add_groups_of(const char *name, struct identity *out) {
  char line[MAX_LINE], *fields[MAX_FIELDS];
  FILE *file = open_lines("/etc/group");
  gid_t gid;
  while (file && out->group_count < MAX_GROUPS && next_entry(file, line, fields, 4))
    if (is_listed(fields[3], name) && parse_number(fields[2], &gid)) out->groups[out->group_count++] = gid;
  if (file) fclose(file);
}

/* A name has precedence over a number, as in the engine. */
static bool find_user(const char *text, struct identity *out, char name[MAX_HOME]) {
  char line[MAX_LINE], *fields[MAX_FIELDS];
  uint32_t number;
  bool numeric = parse_number(text, &number), found = false;
  FILE *file = open_lines("/etc/passwd");
  while (file && !found && next_entry(file, line, fields, 6)) {
    uint32_t uid, gid;
    if (!parse_number(fields[2], &uid) || !parse_number(fields[3], &gid)) continue;
    found = strcmp(fields[0], text) == 0 || (numeric && uid == number);
    if (!found) continue;
    out->uid = uid;
    out->gid = gid;
    snprintf(name, MAX_HOME, "%s", fields[0]);
    if (fields[5][0] == '/') snprintf(out->home, sizeof out->home, "%s", fields[5]);
  }
  if (file) fclose(file);
  if (!found && numeric) out->uid = number;
  return found || numeric;
}

bool find_identity(const char *text, struct identity *out) {
  char user[MAX_HOME], name[MAX_HOME] = "";
  *out = (struct identity){.home = "/"};
  const char *colon = strchr(text, ':');
  size_t length = colon ? (size_t)(colon - text) : strlen(text);
  if (length >= sizeof user) return false;
  memcpy(user, text, length);
  user[length] = 0;
  if (!find_user(length == 0 ? "0" : user, out, name)) return false;
  if (colon && colon[1]) return find_group(colon + 1, &out->gid);
  if (name[0]) add_groups_of(name, out);
  return true;
}
