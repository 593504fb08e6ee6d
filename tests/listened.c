/* Loaded before a command's other libraries, notes each socket on which the command, or a process
   of its, waits for others: one line "PROGRAM KIND ADDRESS WHO" in the file that $LISTENED names. WHO
   is "private" if only the same user and root can connect, by the rights of a socket's file, or as
   the network is not that of process $AROUND. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Whether others can neither write to a socket, nor enter one of the folders above it. */
static int is_private(const char *path) {
    char whole[PATH_MAX];
    struct stat found;
    if (realpath(path, whole) == NULL || stat(whole, &found) != 0)
        return 0;
    if (!(found.st_mode & (S_IWGRP | S_IWOTH)))
        return 1;
    for (char *slash; (slash = strrchr(whole, '/')) != NULL;) {
        *slash = '\0';
        if (stat(*whole ? whole : "/", &found) == 0 && !(found.st_mode & (S_IXGRP | S_IXOTH)))
            return 1;
    }
    return 0;
}

/* Whether this process has another network than the one that it was started from. */
static int is_enclosed(void) {
    char path[64], ours[64] = "", theirs[64] = "";
    const char *around = getenv("AROUND");
    if (around == NULL)
        return 0;
    snprintf(path, sizeof path, "/proc/%s/ns/net", around);
    if (readlink("/proc/self/ns/net", ours, sizeof ours - 1) < 0 ||
        readlink(path, theirs, sizeof theirs - 1) < 0)
        return 0;
    return strcmp(ours, theirs) != 0;
}

static void note(int socket, const char *kind) {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        struct sockaddr_un local;
        struct sockaddr_storage room;
    } at;
    socklen_t size = sizeof at;
    char host[INET6_ADDRSTRLEN], line[512];
    const char *file = getenv("LISTENED"), *who = is_enclosed() ? "private" : "open";
    int length, out;
    memset(&at, 0, sizeof at);
    if (file == NULL || getsockname(socket, &at.any, &size) != 0)
        return;
    if (at.any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &at.four.sin_addr, host, sizeof host);
        length = snprintf(line, sizeof line, "%s %s %s:%d %s\n", program_invocation_short_name,
                          kind, host, ntohs(at.four.sin_port), who);
    } else if (at.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &at.six.sin6_addr, host, sizeof host);
        length = snprintf(line, sizeof line, "%s %s [%s]:%d %s\n", program_invocation_short_name,
                          kind, host, ntohs(at.six.sin6_port), who);
    } else if (at.any.sa_family == AF_UNIX && at.local.sun_path[0]) {
        length = snprintf(line, sizeof line, "%s %s %s %s\n", program_invocation_short_name, kind,
                          at.local.sun_path, is_private(at.local.sun_path) ? "private" : "open");
    } else if (at.any.sa_family == AF_UNIX) { /* a name that is no file: everybody can connect */
        length = snprintf(line, sizeof line, "%s %s @%s %s\n", program_invocation_short_name,
                          kind, at.local.sun_path + 1, who);
    } else {
        return;
    }
    out = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (out < 0 || write(out, line, (size_t)length) != length)
        abort(); /* nothing may go unnoticed */
    close(out);
}

int listen(int socket, int backlog) {
    int (*usual)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "listen");
    int done = usual(socket, backlog), kept = errno;
    if (done == 0)
        note(socket, "stream");
    errno = kept;
    return done;
}

int bind(int socket, const struct sockaddr *address, socklen_t size) {
    int (*usual)(int, const struct sockaddr *, socklen_t) =
        (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
    int done = usual(socket, address, size), kept = errno, type = 0;
    socklen_t room = sizeof type;
    if (done == 0 && getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &room) == 0 &&
        type == SOCK_DGRAM) /* these need no listen */
        note(socket, "datagram");
    errno = kept;
    return done;
}
