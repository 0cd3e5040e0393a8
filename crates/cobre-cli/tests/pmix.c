/* A libpmix without a process manager: what ranks put lies in files of TEST_PMIX, which has as many ranks as
 * TEST_PMIX_SIZE says. TEST_PMIX_FAULT makes it another library: "version", "namespace", "type" or "fence". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { char nspace[256]; uint32_t rank; } proc_t;
typedef struct { uint16_t type; union { char *string; uint32_t number; char size[24]; } data; } value_t;

static int rank, connected;

static int fault(const char *name) {
    const char *set = getenv("TEST_PMIX_FAULT");
    return set && strcmp(set, name) == 0;
}

static char *path(const char *name, int of) {
    static char text[512];
    snprintf(text, sizeof text, "%s/%s-%d", getenv("TEST_PMIX"), name, of);
    return text;
}

static void mark(const char *name) {
    FILE *file = fopen(path(name, rank), "a");
    fputs("x", file);
    fclose(file);
}

const char *PMIx_Get_version(void) {
    return fault("version") ? "PMIx 1.2.5" : "OpenPMIx 4.2.2 (PMIx Standard: 4.2)";
}

const char *PMIx_Error_string(int status) {
    return status == -31 ? "NOT INITIALIZED" : "ERROR";
}

int PMIx_Init(proc_t *own, const void *info, size_t count) {
    rank = atoi(getenv("PMIX_RANK"));
    memset(own, 0, sizeof *own);
    strcpy(own->nspace, fault("namespace") ? "singleton" : getenv("PMIX_NAMESPACE"));
    own->rank = rank;
    connected = 1;
    mark("init");
    return info || count ? -27 : 0;
}

int PMIx_Finalize(const void *info, size_t count) {
    if (!connected) return -31;
    connected = 0;
    mark("finalize");
    return info || count ? -27 : 0;
}

int PMIx_Put(uint8_t scope, const char *key, const value_t *value) {
    if (!connected || scope != 3 || value->type != 3) return -27;
    FILE *file = fopen(path(key, rank), "w");
    fputs(value->data.string, file);
    fclose(file);
    return 0;
}

int PMIx_Commit(void) { return connected ? 0 : -31; }

int PMIx_Fence(const proc_t *procs, size_t count, const void *info, size_t infos) {
    if (count != 1 || procs->rank != UINT32_MAX - 1 || info || infos) return -27;
    mark("fence");
    for (int other = 0; other < atoi(getenv("TEST_PMIX_SIZE")) || fault("fence"); other++)
        while (access(path("fence", other), F_OK)) usleep(1000);
    return 0;
}

int PMIx_Get(const proc_t *of, const char *key, const void *info, size_t infos, value_t **found) {
    if (!connected || info || infos || strcmp(of->nspace, getenv("PMIX_NAMESPACE"))) return -27;
    /* Smaller than the values of any version: no more is read of them. */
    value_t *value = *found = calloc(1, 24);
    value->type = fault("type") ? 5 : 14;
    value->data.number = atoi(getenv("TEST_PMIX_SIZE"));
    if (strncmp(key, "pmix.", 5) == 0) return of->rank == UINT32_MAX - 1 ? 0 : -46;
    char text[1024] = "";
    FILE *file = fopen(path(key, of->rank), "r");
    if (!file) return -46;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    value->type = 3;
    value->data.string = strdup(text);
    return 0;
}
