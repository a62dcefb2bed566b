/* A stand-in for libnvidia-ml.so.1, for tests: made-up GPUs, and faults that a file scripts while it runs.
 *
 * It plays no driver: it answers what the tests ask and nothing else. Build:
 *   gcc -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 fakenvml.c
 *
 * Environment
 *   FAKE_NVML_COUNT   number of GPUs, 2 unless set
 *   FAKE_NVML_SCRIPT  a file read again on every call, one rule a line:
 *                       FUNCTION GPU CODE [MICROSECONDS]
 *                     FUNCTION may be *, GPU may be * or - (calls that name no GPU); the call sleeps, then returns
 *                     CODE unless it is 0. The last rule that fits wins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7 };
#define MOST 64
#define GIB (1024ULL * 1024 * 1024)

typedef int result;
typedef struct { int number; } device;
typedef struct { unsigned long long total, free, used; } memory_v1;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned int gpu, memory; } utilization;

static device devices[MOST];

static int count(void) {
    const char *told = getenv("FAKE_NVML_COUNT");
    int number = told ? atoi(told) : 2;
    return number < 0 ? 0 : number > MOST ? MOST : number;
}

/* The scripted answer of a call: number is the GPU, or -1 for calls that name none. */
static result scripted(const char *function, int number) {
    const char *path = getenv("FAKE_NVML_SCRIPT");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[256], name[128], gpu[16];
    long delay = 0, pause = 0;
    result code = SUCCESS, told;
    if (!file) return SUCCESS;
    while (fgets(line, sizeof line, file)) {
        pause = 0;
        if (sscanf(line, "%127s %15s %d %ld", name, gpu, &told, &pause) < 3) continue;
        if (strcmp(name, "*") && strcmp(name, function)) continue;
        if (strcmp(gpu, "*") && (number < 0 ? strcmp(gpu, "-") : atoi(gpu) != number || gpu[0] == '-')) continue;
        code = told, delay = pause;
    }
    fclose(file);
    if (delay > 0) usleep((useconds_t)delay);
    return code;
}

static result text(char *buffer, unsigned int size, const char *content) {
    if (strlen(content) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(buffer, content);
    return SUCCESS;
}

#define PLAYED(number) do { result code = scripted(__func__, number); if (code) return code; } while (0)

result nvmlInit_v2(void) { PLAYED(-1); return SUCCESS; }
result nvmlInitWithFlags(unsigned int flags) { (void)flags; PLAYED(-1); return SUCCESS; }
result nvmlShutdown(void) { PLAYED(-1); return SUCCESS; }
const char *nvmlErrorString(result code) { (void)code; return "scripted"; }

result nvmlSystemGetDriverVersion(char *buffer, unsigned int size) { PLAYED(-1); return text(buffer, size, "580.01.23"); }
result nvmlSystemGetNVMLVersion(char *buffer, unsigned int size) { PLAYED(-1); return text(buffer, size, "13.580.01.23"); }
result nvmlSystemGetCudaDriverVersion_v2(int *version) { PLAYED(-1); *version = 13010; return SUCCESS; }

result nvmlDeviceGetCount_v2(unsigned int *number) { PLAYED(-1); *number = (unsigned int)count(); return SUCCESS; }

result nvmlDeviceGetHandleByIndex_v2(unsigned int index, device **handle) {
    if (index >= (unsigned int)count()) return INVALID_ARGUMENT;
    PLAYED((int)index);
    devices[index].number = (int)index;
    *handle = &devices[index];
    return SUCCESS;
}

result nvmlDeviceGetUUID(device *gpu, char *buffer, unsigned int size) {
    char content[64];
    PLAYED(gpu->number);
    snprintf(content, sizeof content, "GPU-%08x-aaaa-bbbb-cccc-000000000000", 0xfab00000u + (unsigned int)gpu->number);
    return text(buffer, size, content);
}

result nvmlDeviceGetName(device *gpu, char *buffer, unsigned int size) {
    PLAYED(gpu->number);
    return text(buffer, size, "Fake Card 96GB");
}

result nvmlDeviceGetMemoryInfo(device *gpu, memory_v1 *memory) {
    PLAYED(gpu->number);
    memory->total = 96 * GIB, memory->used = 7 * GIB, memory->free = 89 * GIB; /* reserved counts as used */
    return SUCCESS;
}

result nvmlDeviceGetMemoryInfo_v2(device *gpu, memory_v2 *memory) {
    PLAYED(gpu->number);
    memory->total = 96 * GIB, memory->reserved = 1 * GIB, memory->used = 6 * GIB, memory->free = 89 * GIB;
    return SUCCESS;
}

result nvmlDeviceGetUtilizationRates(device *gpu, utilization *rates) {
    PLAYED(gpu->number);
    rates->gpu = 42, rates->memory = 17;
    return SUCCESS;
}

result nvmlDeviceGetTemperature(device *gpu, unsigned int sensor, unsigned int *celsius) {
    if (sensor) return INVALID_ARGUMENT;
    PLAYED(gpu->number);
    *celsius = 61;
    return SUCCESS;
}

result nvmlDeviceGetPowerUsage(device *gpu, unsigned int *milliwatts) { PLAYED(gpu->number); *milliwatts = 312500; return SUCCESS; }
result nvmlDeviceGetEnforcedPowerLimit(device *gpu, unsigned int *milliwatts) { PLAYED(gpu->number); *milliwatts = 600000; return SUCCESS; }

result nvmlDeviceGetClockInfo(device *gpu, unsigned int kind, unsigned int *megahertz) {
    PLAYED(gpu->number);
    *megahertz = kind == 1 ? 1755 : 2619;
    return SUCCESS;
}
