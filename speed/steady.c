/* A server that takes as long as it is told: HTTP/1.1 on loopback, a thread a connection, and a log of every call.

   Its latency law is known, its clock is its own, and nothing of it is ours but this file: what a load test says is held
   against what this server did.  steady PORT_FILE SEED uniform|lognormal A B [PIECES GAP_S]
   uniform: from A to B seconds; lognormal: median A seconds, sigma B. A body with "stream":true is answered in PIECES,
   GAP_S apart, the first when a whole answer would come. GET /log: a line a call, in the order they came:
   "arrived drawn answered", in seconds. */

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { HEAD_MAX = 1 << 14, CALLS_MAX = 1 << 20, STACK = 1 << 18, PIECE_MAX = 256 };

struct row { double arrived, drawn, answered; };

static struct row *rows;
static long calls;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t seed;
static int is_lognormal, pieces = 1;
static double law_a, law_b, gap_s;

static const char WHOLE[] =
    "{\"id\":\"c\",\"object\":\"chat.completion\",\"created\":0,\"model\":\"steady\",\"choices\":[{\"index\":0,"
    "\"message\":{\"role\":\"assistant\",\"content\":\"one two three four\"},\"finish_reason\":\"stop\"}],"
    "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4,\"total_tokens\":14}}";

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void sleep_until(double due) {
    double left;
    while ((left = due - now()) > 0) {
        struct timespec wait = {(time_t)left, (long)((left - (double)(time_t)left) * 1e9)};
        nanosleep(&wait, NULL);
    }
}

/* The number of a call decides its draw, so that a seed's law is the same whoever calls, and when. */
static double draw(uint64_t number, uint64_t salt) {
    uint64_t x = seed + (2 * number + salt + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return ((double)((x ^ (x >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double latency_of(uint64_t number) {
    double u = draw(number, 0);
    if (!is_lognormal) return law_a + u * (law_b - law_a);
    return law_a * exp(law_b * sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * draw(number, 1)));
}

static int send_all(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t sent = send(fd, data, size, 0);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return -1;
        data += sent;
        size -= (size_t)sent;
    }
    return 0;
}

static int send_chunk(int fd, const char *event) {
    char out[PIECE_MAX + 32];
    int size = snprintf(out, sizeof out, "%zx\r\n%s\r\n", strlen(event), event);
    return send_all(fd, out, (size_t)size);
}

static int stream(int fd, double due) {
    static const char head[] =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    char event[PIECE_MAX];
    if (send_all(fd, head, sizeof head - 1)) return -1;
    for (int piece = 0; piece < pieces; piece++) {
        sleep_until(due + piece * gap_s);
        snprintf(event, sizeof event, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n");
        if (send_chunk(fd, event)) return -1;
    }
    snprintf(event, sizeof event,
             "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],"
             "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\n",
             pieces, pieces + 10);
    return send_chunk(fd, event) || send_chunk(fd, "data: [DONE]\n\n") || send_all(fd, "0\r\n\r\n", 5) ? -1 : 0;
}

static int answer(int fd, double arrived, int is_streamed) {
    char head[128];
    pthread_mutex_lock(&lock);
    if (calls == CALLS_MAX) exit(3);
    long number = calls++;
    double drawn = latency_of((uint64_t)number);
    rows[number].arrived = arrived;
    rows[number].drawn = drawn;
    pthread_mutex_unlock(&lock);
    int failed;
    if (is_streamed) {
        failed = stream(fd, arrived + drawn);
    } else {
        sleep_until(arrived + drawn);
        int size = snprintf(head, sizeof head,
                            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                            sizeof WHOLE - 1);
        char whole[sizeof head + sizeof WHOLE];
        memcpy(whole, head, (size_t)size);
        memcpy(whole + size, WHOLE, sizeof WHOLE - 1);
        failed = send_all(fd, whole, (size_t)size + sizeof WHOLE - 1);
    }
    double answered = now();
    pthread_mutex_lock(&lock);
    rows[number].answered = answered;
    pthread_mutex_unlock(&lock);
    return failed;
}

static int tell_log(int fd) {
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n";
    char line[128];
    pthread_mutex_lock(&lock);
    long count = calls;
    pthread_mutex_unlock(&lock);
    if (send_all(fd, head, sizeof head - 1)) return -1;
    for (long number = 0; number < count; number++) {
        pthread_mutex_lock(&lock);
        struct row row = rows[number];
        pthread_mutex_unlock(&lock);
        int size = snprintf(line, sizeof line, "%.6f %.6f %.6f\n", row.arrived, row.drawn, row.answered);
        if (send_all(fd, line, (size_t)size)) return -1;
    }
    return -1; /* the end of the log is that of the connection */
}

/* One request after the other; what is read beyond the end of one begins the next. */
static void *serve(void *given) {
    int fd = (int)(intptr_t)given;
    char *buffer = malloc(HEAD_MAX + 1);
    size_t have = 0;
#ifdef __linux__
    prctl(PR_SET_TIMERSLACK, 1UL);
#endif
    while (buffer) {
        char *end;
        buffer[have] = 0;
        while (!(end = strstr(buffer, "\r\n\r\n"))) {
            ssize_t came = have < HEAD_MAX ? recv(fd, buffer + have, HEAD_MAX - have, 0) : 0;
            if (came <= 0) goto done;
            have += (size_t)came;
            buffer[have] = 0;
        }
        size_t head = (size_t)(end - buffer) + 4, length = 0;
        char *field = strcasestr(buffer, "\r\ncontent-length:");
        if (field && field < end) length = strtoul(field + 17, NULL, 10);
        int is_log = strncmp(buffer, "GET /log", 8) == 0;
        while (have < head + length) { /* a body that is too long for the buffer is read and forgotten */
            if (have == HEAD_MAX) {
                length -= HEAD_MAX - head;
                have = head;
            }
            ssize_t came = recv(fd, buffer + have, HEAD_MAX - have, 0);
            if (came <= 0) goto done;
            have += (size_t)came;
        }
        double arrived = now();
        char kept = buffer[head + length];
        buffer[head + length] = 0;
        int is_streamed = strstr(buffer + head, "\"stream\":true") != NULL;
        buffer[head + length] = kept;
        if (is_log ? tell_log(fd) : answer(fd, arrived, is_streamed)) break;
        have -= head + length;
        memmove(buffer, buffer + head + length, have);
    }
done:
    free(buffer);
    close(fd);
    return NULL;
}

int main(int count, char **given) {
    if (count != 6 && count != 8) return 2;
    seed = strtoull(given[2], NULL, 10);
    is_lognormal = strcmp(given[3], "lognormal") == 0;
    law_a = atof(given[4]);
    law_b = atof(given[5]);
    if (count == 8) {
        pieces = atoi(given[6]);
        gap_s = atof(given[7]);
    }
    signal(SIGPIPE, SIG_IGN);
    rows = calloc(CALLS_MAX, sizeof *rows);
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (!rows || listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    char whole[4096];
    snprintf(whole, sizeof whole, "%s.new", given[1]);
    FILE *file = fopen(whole, "w");
    if (!file || fprintf(file, "%d\n", ntohs(address.sin_port)) < 0 || fclose(file) || rename(whole, given[1])) return 1;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
    for (;;) {
        pthread_t thread;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (pthread_create(&thread, &small, serve, (void *)(intptr_t)fd)) close(fd);
    }
}
