/* A stand-in for libnvidia-ml.so.1, for tests: made-up GPUs, and faults that a file scripts while it runs.
 *
 * It plays no driver: it answers what the tests and the tools they compare with ask. Build:
 *   gcc -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o libnvidia-ml.so.1 fakenvml.c
 * With -DOLD_DRIVER it lacks functions that drivers before 2022 lack.
 *
 * Environment
 *   FAKE_NVML_COUNT   number of GPUs, 2 unless set
 *   FAKE_NVML_SCRIPT  a file read again on every call, one rule a line:
 *     FUNCTION GPU CODE [MICROSECONDS]  the call sleeps, then returns CODE unless it is 0; -1 microseconds: it hangs
 *                                       until the file has no such rule any more. FUNCTION may be *, GPU may be * or
 *                                       - (calls that name no GPU). The last rule that fits wins. A code of 13 is
 *                                       what a driver that lacks the function amounts to.
 *     order A B ...                     the card at index 0 is card A, at index 1 card B ...
 *     process GPU PID KIND MIB          a process; KIND is C or G, MIB -1 is memory that is not told
 *     xid GPU CODE                      an event; each line is told once
 *     mig GPU COUNT                     the card is divided into COUNT slices of 12 GiB
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS, UNINITIALIZED, INVALID_ARGUMENT, NOT_SUPPORTED, NOT_FOUND = 6, INSUFFICIENT_SIZE, TIMEOUT = 10 };
enum { DOUBLE, UNSIGNED, UNSIGNED_LONG, UNSIGNED_LONG_LONG };
#define MOST 64
#define SLICES 7
#define GIB (1024ULL * 1024 * 1024)
#define NOT_TOLD 0xFFFFFFFFFFFFFFFFULL

typedef int result;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef struct { int number, slice; } device;
typedef struct { u64 total, free, used; } memory_v1;
typedef struct { u32 version; u64 total, reserved, free, used; } memory_v2;
typedef struct { u32 gpu, memory; } utilization;
typedef struct { u32 version; int sensor, celsius; } sensor_reading;
typedef struct { char legacy[16]; u32 domain, bus, device, id, subsystem; char name[32]; } pci;
typedef struct { u32 pid; u64 memory; u32 gpu_instance, compute_instance; } process;
typedef struct { u32 field, scope; long long when, took; u32 kind; result code; union { double d; u32 u; u64 ull; } value; } field_value;
typedef struct { device *gpu; u64 kind, data; u32 gpu_instance, compute_instance; } event;

static device devices[MOST], slices[MOST][SLICES];
static int sessions, told;

static int count(void) {
    const char *set = getenv("FAKE_NVML_COUNT");
    int number = set ? atoi(set) : 2;
    return number < 0 ? 0 : number > MOST ? MOST : number;
}

static FILE *script(void) {
    const char *path = getenv("FAKE_NVML_SCRIPT");
    return path ? fopen(path, "r") : NULL;
}

/* The rule for a call: its code, and through delay its microseconds. number is the GPU, or -1 for calls that name none. */
static result ruled(const char *function, int number, long *delay) {
    char line[256], name[128], gpu[16];
    long pause;
    result code = SUCCESS, found;
    FILE *file = script();
    *delay = 0;
    if (!file) return SUCCESS;
    while (fgets(line, sizeof line, file)) {
        pause = 0;
        if (sscanf(line, "%127s %15s %d %ld", name, gpu, &found, &pause) < 3) continue;
        if (strcmp(name, "*") && strcmp(name, function)) continue;
        if (strcmp(gpu, "*") && (number < 0 ? strcmp(gpu, "-") : atoi(gpu) != number || gpu[0] == '-')) continue;
        code = found, *delay = pause;
    }
    fclose(file);
    return code;
}

static result scripted(const char *function, int number) {
    long delay;
    result code = ruled(function, number, &delay);
    if (delay > 0) usleep((useconds_t)delay);
    while (delay < 0) {
        usleep(10000);
        code = ruled(function, number, &delay);
    }
    return code;
}

static result text(char *buffer, u32 size, const char *content) {
    if (strlen(content) + 1 > size) return INSUFFICIENT_SIZE;
    strcpy(buffer, content);
    return SUCCESS;
}

/* The first number after `word number` in the script, or `otherwise`. */
static int told_of(const char *word, int number, int otherwise) {
    char line[256], name[128];
    int gpu, value;
    FILE *file = script();
    if (!file) return otherwise;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%127s %d %d", name, &gpu, &value) == 3 && !strcmp(name, word) && gpu == number) otherwise = value;
    fclose(file);
    return otherwise;
}

static int card_at(int index) {
    char line[256];
    FILE *file = script();
    int place, used, next, card = index;
    if (!file) return card;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "order ", 6)) continue;
        for (place = 0, used = 6; sscanf(line + used, "%d%n", &next, &place) == 1; used += place, index--)
            if (index == 0 && next >= 0 && next < MOST) card = next;
    }
    fclose(file);
    return card;
}

#define PLAYED(number) do { result code = sessions ? scripted(__func__, number) : UNINITIALIZED; if (code) return code; } while (0)
#define ANSWER(type, expression) (device *gpu, type *answer) { PLAYED(gpu->number); *answer = (expression); return SUCCESS; }

static result begin(const char *function) {
    result code = scripted(function, -1);
    if (!code) sessions++;
    return code;
}
result nvmlInit_v2(void) { return begin(__func__); }
result nvmlInitWithFlags(u32 flags) { (void)flags; return begin(__func__); }
result nvmlShutdown(void) { PLAYED(-1); sessions--; return SUCCESS; }
const char *nvmlErrorString(result code) { (void)code; return "scripted"; }

result nvmlSystemGetDriverVersion(char *buffer, u32 size) { PLAYED(-1); return text(buffer, size, "580.01.23"); }
result nvmlSystemGetNVMLVersion(char *buffer, u32 size) { PLAYED(-1); return text(buffer, size, "13.580.01.23"); }
result nvmlSystemGetCudaDriverVersion(int *version) { PLAYED(-1); *version = 13010; return SUCCESS; }
result nvmlSystemGetCudaDriverVersion_v2(int *version) { PLAYED(-1); *version = 13010; return SUCCESS; }
result nvmlSystemGetProcessName(u32 pid, char *buffer, u32 size) { PLAYED(-1); (void)pid; return text(buffer, size, "fake"); }

result nvmlDeviceGetCount_v2(u32 *number) { PLAYED(-1); *number = (u32)count(); return SUCCESS; }

static device *the(int number) { devices[number].number = number; devices[number].slice = -1; return &devices[number]; }

result nvmlDeviceGetHandleByIndex_v2(u32 index, device **handle) {
    int card = card_at((int)index);
    if (index >= (u32)count()) return INVALID_ARGUMENT;
    PLAYED(card);
    *handle = the(card);
    return SUCCESS;
}

static void uuid_of(const device *gpu, char *content, size_t size) {
    if (gpu->slice < 0) snprintf(content, size, "GPU-%08x-aaaa-bbbb-cccc-000000000000", 0xfab00000u + (u32)gpu->number);
    else snprintf(content, size, "MIG-%08x-aaaa-bbbb-cccc-%012d", 0xfab00000u + (u32)gpu->number, gpu->slice);
}

result nvmlDeviceGetUUID(device *gpu, char *buffer, u32 size) {
    char content[64];
    PLAYED(gpu->number);
    uuid_of(gpu, content, sizeof content);
    return text(buffer, size, content);
}

result nvmlDeviceGetHandleByUUID(const char *uuid, device **handle) {
    char content[64];
    PLAYED(-1);
    for (int number = 0; number < count(); number++) {
        uuid_of(the(number), content, sizeof content);
        if (!strcmp(uuid, content)) { *handle = the(number); return SUCCESS; }
    }
    return NOT_FOUND;
}

result nvmlDeviceGetHandleByPciBusId_v2(const char *name, device **handle) {
    u32 bus;
    PLAYED(-1);
    if (sscanf(name, "%*x:%x", &bus) != 1 || bus < 0x10 || bus >= 0x10u + (u32)count()) return NOT_FOUND;
    *handle = the((int)bus - 0x10);
    return SUCCESS;
}

result nvmlDeviceGetName(device *gpu, char *buffer, u32 size) { PLAYED(gpu->number); return text(buffer, size, "Fake Card 96GB"); }
result nvmlDeviceGetSerial(device *gpu, char *buffer, u32 size) { PLAYED(gpu->number); return text(buffer, size, "0"); }
result nvmlDeviceGetIndex ANSWER(u32, (u32)gpu->number)
result nvmlDeviceGetMinorNumber ANSWER(u32, (u32)gpu->number)
result nvmlDeviceGetBrand ANSWER(int, 14)
result nvmlDeviceGetArchitecture ANSWER(u32, 9)
result nvmlDeviceGetCudaComputeCapability(device *gpu, int *major, int *minor) { PLAYED(gpu->number); *major = 9, *minor = 0; return SUCCESS; }

result nvmlDeviceGetPciInfo_v3(device *gpu, pci *info) {
    PLAYED(gpu->number);
    memset(info, 0, sizeof *info);
    info->bus = 0x10 + (u32)gpu->number, info->id = 0x233010de;
    snprintf(info->legacy, sizeof info->legacy, "0000:%02X:00.0", info->bus & 0xff);
    snprintf(info->name, sizeof info->name, "00000000:%02X:00.0", info->bus & 0xff);
    return SUCCESS;
}

result nvmlDeviceGetMemoryInfo(device *gpu, memory_v1 *memory) {
    PLAYED(gpu->number);
    if (gpu->slice >= 0) { memory->total = 12 * GIB, memory->used = 1 * GIB, memory->free = 11 * GIB; return SUCCESS; }
    memory->total = 96 * GIB, memory->used = 7 * GIB, memory->free = 89 * GIB; /* reserved counts as used */
    return SUCCESS;
}

#ifndef OLD_DRIVER
result nvmlDeviceGetMemoryInfo_v2(device *gpu, memory_v2 *memory) {
    PLAYED(gpu->number);
    memory->reserved = 1 * GIB;
    if (gpu->slice >= 0) { memory->total = 12 * GIB, memory->used = 1 * GIB, memory->free = 10 * GIB; return SUCCESS; }
    memory->total = 96 * GIB, memory->used = 6 * GIB, memory->free = 89 * GIB;
    return SUCCESS;
}
#endif

result nvmlDeviceGetBAR1MemoryInfo(device *gpu, memory_v1 *memory) {
    PLAYED(gpu->number);
    memory->total = 128 * GIB, memory->used = GIB, memory->free = 127 * GIB;
    return SUCCESS;
}

result nvmlDeviceGetUtilizationRates ANSWER(utilization, ((utilization){42, 17}))
result nvmlDeviceGetEncoderUtilization(device *gpu, u32 *percent, u32 *period) { PLAYED(gpu->number); *percent = 0, *period = 100000; return SUCCESS; }
result nvmlDeviceGetDecoderUtilization(device *gpu, u32 *percent, u32 *period) { PLAYED(gpu->number); *percent = 0, *period = 100000; return SUCCESS; }

result nvmlDeviceGetTemperature(device *gpu, u32 sensor, u32 *celsius) {
    if (sensor) return INVALID_ARGUMENT;
    PLAYED(gpu->number);
    *celsius = 61;
    return SUCCESS;
}

result nvmlDeviceGetTemperatureV(device *gpu, sensor_reading *reading) { PLAYED(gpu->number); reading->celsius = 61; return SUCCESS; }

result nvmlDeviceGetTemperatureThreshold(device *gpu, u32 kind, u32 *celsius) {
    static const u32 limits[] = {92, 87, 95};
    PLAYED(gpu->number);
    if (kind > 2) return NOT_SUPPORTED;
    *celsius = limits[kind];
    return SUCCESS;
}

result nvmlDeviceGetPowerUsage ANSWER(u32, 312500)
result nvmlDeviceGetEnforcedPowerLimit ANSWER(u32, 600000)
result nvmlDeviceGetPowerManagementLimit ANSWER(u32, 600000)
result nvmlDeviceGetPowerManagementDefaultLimit ANSWER(u32, 700000)
result nvmlDeviceGetTotalEnergyConsumption ANSWER(u64, 7200000)
result nvmlDeviceGetFanSpeed(device *gpu, u32 *percent) { PLAYED(gpu->number); (void)percent; return NOT_SUPPORTED; }
result nvmlDeviceGetPerformanceState ANSWER(int, 0)

result nvmlDeviceGetClockInfo(device *gpu, u32 kind, u32 *megahertz) { PLAYED(gpu->number); *megahertz = kind == 2 ? 2619 : 1755; return SUCCESS; }
result nvmlDeviceGetMaxClockInfo(device *gpu, u32 kind, u32 *megahertz) { PLAYED(gpu->number); *megahertz = kind == 2 ? 2619 : 1980; return SUCCESS; }
#ifndef OLD_DRIVER
result nvmlDeviceGetCurrentClocksEventReasons ANSWER(u64, 0x44 | 0x2)
#endif
result nvmlDeviceGetCurrentClocksThrottleReasons ANSWER(u64, 0x8)

result nvmlDeviceGetCurrPcieLinkGeneration ANSWER(u32, 4)
result nvmlDeviceGetMaxPcieLinkGeneration ANSWER(u32, 5)
result nvmlDeviceGetCurrPcieLinkWidth ANSWER(u32, 8)
result nvmlDeviceGetMaxPcieLinkWidth ANSWER(u32, 16)
result nvmlDeviceGetPcieReplayCounter ANSWER(u32, 3)
result nvmlDeviceGetPcieThroughput(device *gpu, u32 counter, u32 *kilobytes) { PLAYED(gpu->number); *kilobytes = counter ? 2000 : 1000; return SUCCESS; }

result nvmlDeviceGetFieldValues(device *gpu, int number, field_value *values) {
    PLAYED(gpu->number);
    for (int at = 0; at < number; at++) {
        field_value *each = &values[at];
        each->code = SUCCESS, each->kind = UNSIGNED_LONG_LONG, each->value.ull = 0;
        switch (each->field) {
            case 82: each->kind = UNSIGNED, each->value.u = 70; break;           /* memory temperature */
            case 91: each->kind = UNSIGNED, each->value.u = 4; break;            /* NVLinks */
            case 38: each->value.ull = 5; break;                                 /* CRC errors */
            case 45: each->value.ull = 6; break;
            case 52: each->value.ull = 7; break;                                 /* replays */
            case 59: each->code = NOT_SUPPORTED; break;                          /* recoveries */
            case 138: each->value.ull = 1024; break;                             /* KiB sent */
            case 139: each->value.ull = 2048; break;                             /* KiB received */
            default: each->code = NOT_SUPPORTED;
        }
    }
    return SUCCESS;
}

result nvmlDeviceGetNvLinkState(device *gpu, u32 link, u32 *active) {
    PLAYED(gpu->number);
    if (link >= 4) return INVALID_ARGUMENT;
    *active = link != 2;
    return SUCCESS;
}

result nvmlDeviceGetEccMode(device *gpu, u32 *current, u32 *pending) { PLAYED(gpu->number); *current = *pending = 1; return SUCCESS; }
result nvmlDeviceGetTotalEccErrors(device *gpu, u32 kind, u32 span, u64 *errors) { PLAYED(gpu->number); *errors = 10 * span + kind + 1; return SUCCESS; }

result nvmlDeviceGetRetiredPages(device *gpu, u32 cause, u32 *number, u64 *addresses) {
    u32 room = *number;
    PLAYED(gpu->number);
    *number = cause ? 0 : 2;
    if (room < *number || !addresses) return *number ? INSUFFICIENT_SIZE : SUCCESS;
    for (u32 at = 0; at < *number; at++) addresses[at] = at;
    return SUCCESS;
}

result nvmlDeviceGetRetiredPagesPendingStatus ANSWER(u32, 0)
result nvmlDeviceGetRemappedRows(device *gpu, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed) {
    PLAYED(gpu->number);
    *corrected = 4, *uncorrected = 1, *pending = 1, *failed = 0;
    return SUCCESS;
}

result nvmlDeviceGetPersistenceMode ANSWER(int, 1)
result nvmlDeviceGetComputeMode ANSWER(int, 3)
result nvmlDeviceGetDisplayActive ANSWER(int, 0)
result nvmlDeviceGetDisplayMode ANSWER(int, 0)
result nvmlDeviceGetDriverModel_v2(device *gpu, int *current, int *pending) { PLAYED(gpu->number); (void)current, (void)pending; return NOT_SUPPORTED; }

result nvmlDeviceGetMigMode(device *gpu, u32 *current, u32 *pending) {
    PLAYED(gpu->number);
    *current = *pending = told_of("mig", gpu->number, 0) > 0;
    return SUCCESS;
}
result nvmlDeviceGetMaxMigDeviceCount ANSWER(u32, SLICES)
result nvmlDeviceIsMigDeviceHandle ANSWER(u32, gpu->slice >= 0)
result nvmlDeviceGetGpuInstanceId ANSWER(u32, (u32)gpu->slice + 7)
result nvmlDeviceGetComputeInstanceId ANSWER(u32, 0)
result nvmlDeviceGetMigDeviceHandleByIndex(device *gpu, u32 index, device **handle) {
    PLAYED(gpu->number);
    if (index >= SLICES || (int)index >= told_of("mig", gpu->number, 0)) return NOT_FOUND;
    slices[gpu->number][index] = (device){gpu->number, (int)index};
    *handle = &slices[gpu->number][index];
    return SUCCESS;
}
result nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device *gpu, device **handle) { PLAYED(gpu->number); *handle = the(gpu->number); return SUCCESS; }

static result processes(const device *gpu, char kind, u32 *number, process *found) {
    char line[256], letter;
    int card, pid;
    long mebibytes;
    u32 room = *number;
    FILE *file = script();
    *number = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "process %d %d %c %ld", &card, &pid, &letter, &mebibytes) != 4) continue;
        if (card != gpu->number || letter != kind) continue;
        if (*number < room && found)
            found[*number] = (process){(u32)pid, mebibytes < 0 ? NOT_TOLD : (u64)mebibytes << 20, ~0u, ~0u};
        ++*number;
    }
    if (file) fclose(file);
    return *number > room ? INSUFFICIENT_SIZE : SUCCESS;
}
#ifndef OLD_DRIVER
result nvmlDeviceGetComputeRunningProcesses_v3(device *gpu, u32 *number, process *found) { PLAYED(gpu->number); return processes(gpu, 'C', number, found); }
#endif
result nvmlDeviceGetComputeRunningProcesses_v2(device *gpu, u32 *number, process *found) { PLAYED(gpu->number); return processes(gpu, 'C', number, found); }
#ifndef OLD_DRIVER
result nvmlDeviceGetGraphicsRunningProcesses_v3(device *gpu, u32 *number, process *found) { PLAYED(gpu->number); return processes(gpu, 'G', number, found); }
#endif
result nvmlDeviceGetGraphicsRunningProcesses_v2(device *gpu, u32 *number, process *found) { PLAYED(gpu->number); return processes(gpu, 'G', number, found); }
result nvmlDeviceGetMPSComputeRunningProcesses_v3(device *gpu, u32 *number, process *found) { PLAYED(gpu->number); (void)found; *number = 0; return SUCCESS; }
result nvmlDeviceGetProcessUtilization(device *gpu, void *found, u32 *number, u64 since) { PLAYED(gpu->number); (void)found, (void)since; *number = 0; return NOT_FOUND; }

result nvmlEventSetCreate(void **set) { PLAYED(-1); *set = &told; return SUCCESS; }
result nvmlEventSetFree(void *set) { PLAYED(-1); (void)set; return SUCCESS; }
result nvmlDeviceGetSupportedEventTypes ANSWER(u64, 0x1f)
result nvmlDeviceRegisterEvents(device *gpu, u64 kinds, void *set) { PLAYED(gpu->number); (void)kinds, (void)set; return SUCCESS; }

result nvmlEventSetWait_v2(void *set, event *data, u32 milliseconds) {
    char line[256];
    int gpu, code, seen = 0;
    FILE *file;
    (void)set;
    PLAYED(-1);
    file = script();
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "xid %d %d", &gpu, &code) != 2 || seen++ < told) continue;
        fclose(file);
        told++;
        *data = (event){the(gpu), 0x8, (u64)code, ~0u, ~0u};
        return SUCCESS;
    }
    if (file) fclose(file);
    if (milliseconds) usleep(milliseconds * 1000);
    return TIMEOUT;
}
