/* Every change to a file below one folder, seen between the program and the kernel.

   Preloaded into a process (LD_PRELOAD). WRITES_BELOW is the folder; WRITES_LOG the file that takes each change, as it is
   made, with its bytes; WRITES_DIE "NAME\tFILE\tNUMBER\tPART" kills the process at the NUMBERth such change of files that
   match FILE: before it, or, if PART is 1, at the end of a page about half of its bytes on, as a kill can. Only the first process of a tree is killed. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char below[PATH_MAX];
static size_t below_length;
static int log_fd = -1;
static pid_t first_process;
static char die_name[32], die_file[PATH_MAX];
static long die_number, die_part;

#define PAGE 4096

struct head { char name[8]; uint32_t path, zero; uint64_t offset, bytes; };

__attribute__((constructor)) static void begin(void)
{
    const char *folder = getenv("WRITES_BELOW"), *log = getenv("WRITES_LOG"), *die = getenv("WRITES_DIE");
    if (folder == NULL || realpath(folder, below) == NULL) return;
    below_length = strlen(below);
    first_process = getpid();
    if (log != NULL) log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (die != NULL && sscanf(die, "%31[^\t]\t%4095[^\t]\t%ld\t%ld", die_name, die_file, &die_number, &die_part) != 4)
        abort();
    /* A process that this one starts must not be killed in its place. */
    unsetenv("WRITES_DIE");
}

/* The path relative to the folder, or NULL if it lies elsewhere. */
static const char *inside(const char *path)
{
    if (below_length == 0 || strncmp(path, below, below_length) != 0 || path[below_length] != '/') return NULL;
    return path + below_length + 1;
}

static const char *of_descriptor(int fd, char *room)
{
    char link[32];
    if (below_length == 0) return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, room, PATH_MAX - 1);
    if (size < 0) return NULL;
    room[size] = 0;
    /* Files without a name are gone with the process. */
    if (strstr(room, " (deleted)") != NULL) return NULL;
    return inside(room);
}

static const char *of_path(int folder, const char *path, char *room)
{
    char parent[PATH_MAX], whole[PATH_MAX];
    if (below_length == 0) return NULL;
    if (path[0] != '/' && folder != AT_FDCWD) {
        char link[32];
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t size = readlink(link, parent, PATH_MAX - 1);
        if (size < 0) return NULL;
        parent[size] = 0;
        if (snprintf(whole, sizeof whole, "%s/%s", parent, path) >= PATH_MAX) return NULL;
    } else if (snprintf(whole, sizeof whole, "%s", path) >= PATH_MAX) return NULL;
    char *slash = strrchr(whole, '/');
    const char *last = slash == NULL ? whole : slash + 1;
    if (slash != NULL) *slash = 0;
    if (realpath(slash == NULL ? "." : (whole[0] == 0 ? "/" : whole), parent) == NULL) return NULL;
    if (snprintf(room, PATH_MAX, "%s/%s", parent, last) >= PATH_MAX) return NULL;
    return inside(room);
}

static void put(const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t done = syscall(SYS_write, log_fd, at, size);
        if (done < 0) abort();
        at += done;
        size -= done;
    }
}

/* Called with the turn held, before the change is made. Returns how many of its bytes to make before dying, or -1. */
static ssize_t dies(const char *name, const char *file, size_t bytes, off_t place)
{
    if (die_number == 0 || getpid() != first_process || strcmp(name, die_name) != 0) return -1;
    if (fnmatch(die_file, file, 0) != 0 || --die_number > 0) return -1;
    off_t end = (place + bytes / 2 + PAGE - 1) / PAGE * PAGE;
    return die_part && end < place + (off_t)bytes ? end - place : 0;
}

static void die(void) { syscall(SYS_kill, getpid(), SIGKILL); for (;;) pause(); }

static void made(const char *name, const char *file, uint64_t offset, const struct iovec *parts, int count, size_t bytes)
{
    if (log_fd < 0) return;
    struct head head = {.path = strlen(file), .offset = offset, .bytes = bytes};
    strncpy(head.name, name, sizeof head.name);
    put(&head, sizeof head);
    put(file, head.path);
    for (int n = 0; n < count && bytes > 0; n++) {
        size_t size = parts[n].iov_len < bytes ? parts[n].iov_len : bytes;
        put(parts[n].iov_base, size);
        bytes -= size;
    }
}

static size_t size_of(const struct iovec *parts, int count)
{
    size_t size = 0;
    for (int n = 0; n < count; n++) size += parts[n].iov_len;
    return size;
}

/* The place is where the descriptor stands, or the end of the file, if `at` is negative. */
static ssize_t write_parts(int fd, const struct iovec *parts, int count, off_t at)
{
    char room[PATH_MAX];
    const char *file = of_descriptor(fd, room);
    if (file == NULL)
        return at < 0 ? syscall(SYS_writev, fd, parts, count) : syscall(SYS_pwritev, fd, parts, count, at, 0L);
    pthread_mutex_lock(&turn);
    int flags = fcntl(fd, F_GETFL);
    off_t place = at;
    if (flags & O_APPEND) {
        struct stat found;
        fstat(fd, &found);
        place = found.st_size;
    } else if (at < 0) place = lseek(fd, 0, SEEK_CUR);
    ssize_t part = dies("write", file, size_of(parts, count), place);
    if (part >= 0) {
        for (int n = 0; n < count && part > 0; n++) {
            size_t size = (size_t)part < parts[n].iov_len ? (size_t)part : parts[n].iov_len;
            syscall(SYS_pwrite64, fd, parts[n].iov_base, size, place);
            place += size;
            part -= size;
        }
        die();
    }
    ssize_t done = at < 0 ? syscall(SYS_writev, fd, parts, count) : syscall(SYS_pwritev, fd, parts, count, at, 0L);
    int error = errno;
    if (done > 0) {
        made("write", file, place, parts, count, done);
        if (flags & (O_DSYNC | O_SYNC)) made("sync", file, 0, NULL, 0, 0);
    }
    pthread_mutex_unlock(&turn);
    errno = error;
    return done;
}

ssize_t writev(int fd, const struct iovec *parts, int count) { return write_parts(fd, parts, count, -1); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return write_parts(fd, parts, count, at); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { return write_parts(fd, parts, count, at); }

ssize_t write(int fd, const void *data, size_t size)
{
    struct iovec part = {(void *)data, size};
    return write_parts(fd, &part, 1, -1);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    struct iovec part = {(void *)data, size};
    return write_parts(fd, &part, 1, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return pwrite(fd, data, size, at); }

/* One change that has no bytes, by a system call. */
static long change(const char *name, const char *file, uint64_t size, const char *to, long number, long a, long b, long c, long d)
{
    if (file == NULL) return syscall(number, a, b, c, d);
    struct iovec part = {(void *)to, to == NULL ? 0 : strlen(to)};
    pthread_mutex_lock(&turn);
    if (dies(name, file, 0, 0) >= 0) die();
    long done = syscall(number, a, b, c, d);
    int error = errno;
    if (done >= 0) made(name, file, size, &part, 1, part.iov_len);
    pthread_mutex_unlock(&turn);
    errno = error;
    return done;
}

int fsync(int fd)
{
    char room[PATH_MAX];
    return change("sync", of_descriptor(fd, room), 0, NULL, SYS_fsync, fd, 0, 0, 0);
}

int fdatasync(int fd)
{
    char room[PATH_MAX];
    return change("sync", of_descriptor(fd, room), 0, NULL, SYS_fdatasync, fd, 0, 0, 0);
}

int ftruncate(int fd, off_t size)
{
    char room[PATH_MAX];
    return change("resize", of_descriptor(fd, room), size, NULL, SYS_ftruncate, fd, size, 0, 0);
}

int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int truncate(const char *path, off_t size)
{
    char room[PATH_MAX];
    return change("resize", of_path(AT_FDCWD, path, room), size, NULL, SYS_truncate, (long)path, size, 0, 0);
}

int truncate64(const char *path, off64_t size) { return truncate(path, size); }

int posix_fallocate(int fd, off_t at, off_t size)
{
    char room[PATH_MAX];
    struct stat found;
    fstat(fd, &found);
    off_t end = at + size > found.st_size ? at + size : found.st_size;
    return change("resize", of_descriptor(fd, room), end, NULL, SYS_fallocate, fd, 0, at, size) < 0 ? errno : 0;
}

int posix_fallocate64(int fd, off64_t at, off64_t size) { return posix_fallocate(fd, at, size); }

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    char room[PATH_MAX], other[PATH_MAX];
    const char *file = of_path(from_folder, from, room), *target = of_path(to_folder, to, other);
    return change("rename", file, 0, target, SYS_renameat, from_folder, (long)from, to_folder, (long)to);
}

int rename(const char *from, const char *to) { return renameat(AT_FDCWD, from, AT_FDCWD, to); }

int unlinkat(int folder, const char *path, int flags)
{
    char room[PATH_MAX];
    return change("remove", of_path(folder, path, room), 0, NULL, SYS_unlinkat, folder, (long)path, flags, 0);
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int folder, const char *path, mode_t mode)
{
    char room[PATH_MAX];
    return change("mkdir", of_path(folder, path, room), 0, NULL, SYS_mkdirat, folder, (long)path, mode, 0);
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

static int opened(int folder, const char *path, int flags, mode_t mode)
{
    char room[PATH_MAX];
    const char *file = NULL;
    const char *name = "create";
    if ((flags & (O_CREAT | O_TRUNC)) && (flags & O_TMPFILE) != O_TMPFILE) {
        file = of_path(folder, path, room);
        struct stat found;
        int is_there = file != NULL && fstatat(folder, path, &found, 0) == 0;
        if (is_there && !(flags & O_TRUNC)) file = NULL;
        if (is_there) name = "resize";
    }
    return change(name, file, 0, NULL, SYS_openat, folder, (long)path, flags, mode);
}

#define MODE(flags) mode_t mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }

int open(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags) return opened(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags) return opened(folder, path, flags, mode); }
