/* The cases of `cobre bench collectives` on any MPI library, measured the same way:
 * calls back to back, timed on rank 0; a broadcast is as slow as its slowest rank, and ranks begin it at the
 * same moment of the machine's clock, after an untimed barrier; the first result of every case is checked. One JSON object per line.
 * Arguments: seconds per case, name of the configuration, largest number of bytes (0: all), level of
 * thread support (MPI_THREAD_SINGLE if absent). */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BARRIER, SUM, MIN, GATHER, BROADCAST };
static const char *name_of[] = {"barrier", "allreduce_sum", "allreduce_min", "allgatherv", "broadcast"};
static const struct { int op; size_t bytes; } cases[] = {
    {BARRIER, 0}, {SUM, 8}, {SUM, 32}, {SUM, 256}, {SUM, 8192}, {SUM, 1 << 20}, {MIN, 32},
    {GATHER, 32}, {GATHER, 4096}, {GATHER, 65536}, {GATHER, 3200000}, {GATHER, 32000000}, {GATHER, 206000000},
    {BROADCAST, 4096}, {BROADCAST, 1 << 20}, {BROADCAST, 20 << 20},
};
enum { MOST = 1 << 20, FEWEST = 5 };

static int rank, size, counts[256], displs[256];
static double *send_buffer, *recv_buffer;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Waits for the next tick of 8 us, at which all ranks of a machine go on. */
static void next_tick(void) {
    uint64_t tick = now() >> 13;
    while (now() >> 13 == tick) {}
}

static double element(int r, size_t i) { return 0.1 + (double)((size_t)r * 31 + i % 1009) * 1.7; }

/* An eighth more on even ranks, an eighth less on odd ones, what is left over from rank 0 on. */
static void share_out(size_t elements) {
    size_t base = elements / (size_t)size, used = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = (int)(r % 2 ? base - base / 8 : r + 1 < size ? base + base / 8 : base);
        used += (size_t)counts[r];
    }
    for (int r = 0; r < size && used < elements; r++, used++) counts[r]++;
    for (int r = 0, at = 0; r < size; at += counts[r++]) displs[r] = at;
}

static void call(int op, size_t elements) {
    switch (op) {
    case BARRIER: MPI_Barrier(MPI_COMM_WORLD); break;
    case SUM: MPI_Allreduce(send_buffer, recv_buffer, (int)elements, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); break;
    case MIN: MPI_Allreduce(send_buffer, recv_buffer, (int)elements, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD); break;
    case GATHER:
        MPI_Allgatherv(send_buffer, counts[rank], MPI_DOUBLE, recv_buffer, counts, displs, MPI_DOUBLE, MPI_COMM_WORLD);
        break;
    default: MPI_Bcast(recv_buffer, (int)elements, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
}

static int right(int op, size_t elements) {
    for (size_t i = 0; op != BARRIER && i < elements; i++) {
        double found = recv_buffer[i], want = element(0, i);
        if (op == SUM) {
            for (int r = 1; r < size; r++) want += element(r, i);
            if (found < want * (1 - 1e-12) || found > want * (1 + 1e-12)) return 0; /* any order of addition */
            continue;
        }
        if (op == GATHER) {
            int r = size - 1;
            while ((size_t)displs[r] > i || counts[r] == 0) r--;
            want = element(r, i - (size_t)displs[r]);
        }
        if (found != want) return 0;
    }
    return 1;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Before a broadcast, all ranks wait for each other. */
static void start_together(int op) {
    if (op != BROADCAST) return;
    MPI_Barrier(MPI_COMM_WORLD);
    next_tick();
}

static int calibrate(int op, size_t elements, double seconds) {
    for (int calls = 1;; calls *= 2) {
        uint64_t start = now();
        for (int i = 0; i < calls; i++) {
            start_together(op);
            call(op, elements);
        }
        double elapsed = (double)(now() - start) * 1e-9;
        MPI_Bcast(&elapsed, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (elapsed > seconds / 10 || calls >= MOST) {
            double fitting = seconds / (elapsed / calls);
            return fitting < FEWEST ? FEWEST : fitting > MOST ? MOST : (int)fitting;
        }
    }
}

int main(int argc, char **argv) {
    int asked = argc > 4 && strcmp(argv[4], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, granted;
    MPI_Init_thread(&argc, &argv, asked, &granted);
    if (granted < asked) {
        fprintf(stderr, "this MPI does not let several threads call it\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double seconds = argc > 1 ? atof(argv[1]) : 0.5;
    const char *configuration = argc > 2 ? argv[2] : "mpi";
    size_t most = argc > 3 ? (size_t)atol(argv[3]) : 0;
    size_t largest = 206000000 / sizeof(double);
    send_buffer = malloc(largest * sizeof(double));
    recv_buffer = malloc(largest * sizeof(double));
    uint64_t *times = malloc(MOST * sizeof *times), *slowest = malloc(MOST * sizeof *slowest);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int op = cases[k].op, ok, all;
        size_t elements = cases[k].bytes / sizeof(double);
        if (most && cases[k].bytes > most) continue;
        share_out(elements);
        size_t sent = op == GATHER ? (size_t)counts[rank] : elements;
        for (size_t i = 0; i < sent; i++) send_buffer[i] = element(rank, i);
        memset(recv_buffer, 0xff, elements * sizeof(double));
        if (op == BROADCAST && rank == 0) memcpy(recv_buffer, send_buffer, elements * sizeof(double));
        call(op, elements);
        ok = right(op, elements);
        MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (!all) {
            if (rank == 0) fprintf(stderr, "%s of %zu bytes: wrong result\n", name_of[op], cases[k].bytes);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        int calls = calibrate(op, elements, seconds);
        for (int i = 0; i < calls; i++) {
            start_together(op);
            uint64_t start = now();
            call(op, elements);
            times[i] = now() - start;
        }
        uint64_t *shown = times;
        if (op == BROADCAST) {
            MPI_Reduce(times, slowest, calls, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
            shown = slowest;
        }
        if (rank == 0) {
            qsort(shown, (size_t)calls, sizeof *shown, ascending);
            printf("{\"backend\":\"%s\",\"op\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"iterations\":%d,\"p50_us\":%.3f,\"p99_us\":%.3f}\n",
                   configuration, name_of[op], size, cases[k].bytes, calls,
                   (double)shown[(calls - 1) / 2] * 1e-3, (double)shown[(size_t)((calls - 1) * 0.99)] * 1e-3);
            fflush(stdout);
        }
    }
    MPI_Finalize();
    return 0;
}
