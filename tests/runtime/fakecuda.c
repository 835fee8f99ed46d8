// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A CUDA driver that has no GPU: memory is the host's, launches are written down, and any call can
// be made to fail. The one kernel it knows how to run is the sample's `copy`. One stream at a time
// may be captured.

#include "fakecuda.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

struct CUctx_st {
    int device;
};
struct CUmod_st {
    char *image;
};
struct CUfunc_st {
    struct CUfunc_st *next;
    char name[32];
};
struct CUstream_st {
    int unused;
};
struct CUmemPoolHandle_st {
    int device;
};
struct CUevent_st {
    atomic_int recorded;
};

enum node_kind { NODE_LAUNCH, NODE_COPY, NODE_FILL, NODE_MEMORY };
struct node {
    enum node_kind kind;
    struct fake_launch launch;
    cu_deviceptr dst, src;
    size_t size;
    unsigned char value;
};
struct CUgraph_st {
    int references; // itself, and what was made of it
    int count;
    struct node nodes[16];
};
struct CUgraphExec_st {
    cu_graph graph;
};

enum { MAX_DEVICES = 4, MAX_DEPTH = 16, TOTAL_MEMORY = 1 << 30 };

#define ONE_GPU                                                                            \
    {                                                                                      \
        .device_count = 1, .major = 9, .minor = 0, .max_shared = 232448, .version = 12080, \
        .active_clusters = 64                                                              \
    }
static struct fake_cuda state = ONE_GPU;
static struct CUctx_st contexts[MAX_DEVICES] = {{0}, {1}, {2}, {3}};
static _Thread_local cu_context stack[MAX_DEPTH];
static _Thread_local int depth;
static _Thread_local int is_relaxed;
static cu_stream captured_stream;
static cu_graph captured; // NULL: no stream is
static atomic_int initialised;
static pthread_mutex_t functions_lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT struct fake_cuda *fake_cuda(void)
{
    return &state;
}

// Counts a call, and says whether this is the one that fails.
static cu_result count_call(void)
{
    int call = atomic_fetch_add(&state.calls, 1) + 1;
    const bool fails =
        call == state.fail_at || (state.fail_on && state.fail_at && call > state.fail_at);
    return fails ? state.fail_with : TIR_CUDA_SUCCESS;
}

static void wait_for(const atomic_int *zero)
{
    const struct timespec pause = {0, 1000000};
    while (atomic_load(zero))
        nanosleep(&pause, NULL);
}

#define BEGIN()                                    \
    do {                                           \
        cu_result begin_result = count_call();     \
        if (begin_result)                          \
            return begin_result;                   \
        if (!initialised)                          \
            return TIR_CUDA_ERROR_NOT_INITIALIZED; \
    } while (0)

// The same for a call on the current context.
#define BEGIN_IN_CONTEXT()                         \
    do {                                           \
        BEGIN();                                   \
        if (!depth)                                \
            return TIR_CUDA_ERROR_INVALID_CONTEXT; \
        if (state.sticky)                          \
            return state.sticky;                   \
    } while (0)

// The same for a call that is forbidden while a stream is captured.
#define BEGIN_UNSAFE()                                        \
    do {                                                      \
        BEGIN_IN_CONTEXT();                                   \
        if (state.capturing && !is_relaxed)                   \
            return TIR_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; \
    } while (0)

// The same for a call that waits for a stream, asks for it, or gives the default one work.
#define BEGIN_IN_STREAM(stream)                               \
    do {                                                      \
        BEGIN_IN_CONTEXT();                                   \
        if (captured && (stream) == captured_stream)          \
            return TIR_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; \
        if (captured && !(stream))                            \
            return TIR_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;    \
    } while (0)

// Writes the node down if the stream is captured.
static int is_captured(cu_stream stream, struct node node)
{
    if (!captured || stream != captured_stream || captured->count == 16)
        return 0;
    captured->nodes[captured->count++] = node;
    return 1;
}

// The end of a call that frees or restores something, which is done even when it is told to fail,
// as the driver's own teardown would: a sweep must not spill from one round into the next.
static cu_result end_release(void)
{
    cu_result result = count_call();
    if (result)
        state.failed_release = 1;
    return result;
}

// Declared by the table, so that a wrong signature does not compile, under the driver's symbols.
#define EXPORTED(name) name##_exported
#define CU_FN(name, symbol, need, params) \
    EXPORT cu_result EXPORTED(name)       \
    params __asm__(symbol);
#include "cuda/cuda_api.def"

cu_result EXPORTED(cuGetErrorName)(cu_result result, const char **out)
{
    *out = NULL;
#define X(name, value, status) \
    if (result == value)       \
        *out = #name;
    CU_RESULTS(X)
#undef X
    return *out ? TIR_CUDA_SUCCESS : TIR_CUDA_ERROR_INVALID_VALUE;
}

cu_result EXPORTED(cuGetErrorString)(cu_result result, const char **out)
{
    *out = "the fake driver was told to";
    return result ? TIR_CUDA_SUCCESS : TIR_CUDA_ERROR_INVALID_VALUE;
}

cu_result EXPORTED(cuInit)(unsigned int flags)
{
    cu_result result = count_call();
    if (!result && flags == 0)
        initialised = 1;
    return result;
}

cu_result EXPORTED(cuDriverGetVersion)(int *out)
{
    BEGIN();
    *out = state.version;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuDeviceGetCount)(int *out)
{
    BEGIN();
    *out = state.device_count;
    return TIR_CUDA_SUCCESS;
}

static cu_result check_device(cu_device device)
{
    return device < 0 || device >= state.device_count ? TIR_CUDA_ERROR_INVALID_DEVICE
                                                      : TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuDeviceGet)(cu_device *out, int ordinal)
{
    BEGIN();
    *out = ordinal;
    return check_device(ordinal);
}

cu_result EXPORTED(cuDeviceGetName)(char *out, int size, cu_device device)
{
    BEGIN();
    snprintf(out, (size_t)size, "Fake GPU %d", device);
    return check_device(device);
}

cu_result EXPORTED(cuDeviceTotalMem)(size_t *out, cu_device device)
{
    BEGIN();
    *out = TOTAL_MEMORY;
    return check_device(device);
}

cu_result EXPORTED(cuDeviceGetAttribute)(int *out, unsigned int attribute, cu_device device)
{
    BEGIN();
    switch (attribute) {
    case TIR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *out = state.major;
        break;
    case TIR_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *out = state.minor;
        break;
    case TIR_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *out = 5;
        break;
    case TIR_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *out = state.max_shared;
        break;
    case TIR_CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
        *out = 1000000;
        break;
    default:
        return TIR_CUDA_ERROR_INVALID_VALUE;
    }
    return check_device(device);
}

cu_result EXPORTED(cuDevicePrimaryCtxRetain)(cu_context *out, cu_device device)
{
    BEGIN();
    if (check_device(device))
        return TIR_CUDA_ERROR_INVALID_DEVICE;
    *out = state.context = &contexts[device];
    state.contexts++;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuDevicePrimaryCtxRelease)(cu_device device)
{
    (void)device;
    state.contexts--;
    return end_release();
}

cu_result EXPORTED(cuCtxGetCurrent)(cu_context *out)
{
    BEGIN();
    *out = depth ? stack[depth - 1] : NULL;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuCtxPushCurrent)(cu_context context)
{
    BEGIN();
    if (!context || depth == MAX_DEPTH)
        return TIR_CUDA_ERROR_INVALID_CONTEXT;
    stack[depth++] = context;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuCtxPopCurrent)(cu_context *out)
{
    if (!depth)
        return TIR_CUDA_ERROR_INVALID_CONTEXT;
    *out = stack[--depth];
    return end_release();
}

cu_result EXPORTED(cuCtxGetDevice)(cu_device *out)
{
    BEGIN_IN_CONTEXT();
    *out = stack[depth - 1]->device;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuCtxSynchronize)(void)
{
    BEGIN_IN_CONTEXT();
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuStreamCreate)(cu_stream *out, unsigned int flags)
{
    BEGIN_IN_CONTEXT();
    if (flags)
        return TIR_CUDA_ERROR_INVALID_VALUE;
    *out = calloc(1, sizeof **out);
    state.streams++;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuStreamDestroy)(cu_stream stream)
{
    free(stream);
    state.streams--;
    return end_release();
}

cu_result EXPORTED(cuStreamSynchronize)(cu_stream stream)
{
    BEGIN_IN_STREAM(stream);
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuStreamQuery)(cu_stream stream)
{
    BEGIN_IN_STREAM(stream);
    return atomic_load(&state.busy) && atomic_fetch_sub(&state.busy, 1) ? TIR_CUDA_ERROR_NOT_READY
                                                                        : TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuEventCreate)(cu_event *out, unsigned int flags)
{
    BEGIN_IN_CONTEXT();
    if (flags)
        return TIR_CUDA_ERROR_INVALID_VALUE;
    *out = calloc(1, sizeof **out);
    state.events++;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuEventDestroy)(cu_event event)
{
    free(event);
    state.events--;
    return end_release();
}

cu_result EXPORTED(cuEventRecord)(cu_event event, cu_stream stream)
{
    (void)stream;
    BEGIN_IN_CONTEXT();
    event->recorded = 1;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuEventSynchronize)(cu_event event)
{
    BEGIN_IN_CONTEXT();
    return event->recorded ? TIR_CUDA_SUCCESS : TIR_CUDA_ERROR_INVALID_HANDLE;
}

cu_result EXPORTED(cuEventElapsedTime)(float *out, cu_event start, cu_event end)
{
    BEGIN_IN_CONTEXT();
    *out = 1.5f;
    return start->recorded && end->recorded ? TIR_CUDA_SUCCESS : TIR_CUDA_ERROR_INVALID_HANDLE;
}

static void *memory_at(cu_deviceptr address)
{
    return (void *)(uintptr_t)address;
}

static cu_result allocate(cu_deviceptr *out, size_t size)
{
    int fits = size && size <= TOTAL_MEMORY;
    const size_t room = state.idle ? 256 : (size + 255) / 256 * 256; // nothing touches it
    void *memory = fits ? aligned_alloc(256, room) : NULL;
    if (!memory)
        return size ? TIR_CUDA_ERROR_OUT_OF_MEMORY : TIR_CUDA_ERROR_INVALID_VALUE;
    *out = (uintptr_t)memory;
    state.memory++;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuMemAlloc)(cu_deviceptr *out, size_t size)
{
    BEGIN_UNSAFE();
    return allocate(out, size);
}

cu_result EXPORTED(cuMemFree)(cu_deviceptr address)
{
    free(memory_at(address));
    state.memory--;
    return end_release();
}

cu_result EXPORTED(cuMemAllocHost)(void **out, size_t size)
{
    BEGIN_IN_CONTEXT();
    *out = malloc(size);
    state.memory++;
    return *out ? TIR_CUDA_SUCCESS : TIR_CUDA_ERROR_OUT_OF_MEMORY;
}

cu_result EXPORTED(cuMemFreeHost)(void *memory)
{
    free(memory);
    state.memory--;
    return end_release();
}

cu_result EXPORTED(cuMemPoolCreate)(cu_pool *out, const struct cu_pool_props *props)
{
    BEGIN();
    if (state.capturing && !is_relaxed)
        return TIR_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (props->alloc_type != TIR_CU_MEM_ALLOCATION_TYPE_PINNED || props->handle_types ||
        props->location.type != TIR_CU_MEM_LOCATION_TYPE_DEVICE || check_device(props->location.id))
        return TIR_CUDA_ERROR_INVALID_VALUE;
    *out = malloc(sizeof **out);
    (*out)->device = props->location.id;
    state.pools++;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuMemPoolDestroy)(cu_pool pool)
{
    free(pool);
    state.pools--;
    return end_release();
}

cu_result EXPORTED(cuMemPoolSetAttribute)(cu_pool pool, unsigned int attribute, void *value)
{
    (void)pool;
    BEGIN();
    memcpy(&state.pool_keeps, value, sizeof state.pool_keeps);
    return attribute == TIR_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? TIR_CUDA_SUCCESS
                                                              : TIR_CUDA_ERROR_INVALID_VALUE;
}

cu_result EXPORTED(cuMemAllocFromPoolAsync)(cu_deviceptr *out, size_t size, cu_pool pool,
                                            cu_stream stream)
{
    if (!pool)
        return TIR_CUDA_ERROR_INVALID_VALUE;
    state.scratch_size = size;
    state.scratch_stream = stream;
    BEGIN_IN_CONTEXT();
    cu_result result = allocate(out, size);
    if (!result)
        is_captured(stream, (struct node){.kind = NODE_MEMORY, .dst = *out});
    return result;
}

cu_result EXPORTED(cuMemFreeAsync)(cu_deviceptr address, cu_stream stream)
{
    cu_result result = captured && stream == captured_stream ? end_release() // the graph's
                                                             : EXPORTED(cuMemFree)(address);
    return stream == state.scratch_stream ? result : TIR_CUDA_ERROR_INVALID_VALUE;
}

cu_result EXPORTED(cuMemcpyHtoDAsync)(cu_deviceptr dst, const void *src, size_t size,
                                      cu_stream stream)
{
    BEGIN_IN_STREAM(stream);
    memcpy(memory_at(dst), src, size);
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuMemcpyDtoHAsync)(void *dst, cu_deviceptr src, size_t size, cu_stream stream)
{
    BEGIN_IN_STREAM(stream);
    memcpy(dst, memory_at(src), size);
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuMemcpyDtoDAsync)(cu_deviceptr dst, cu_deviceptr src, size_t size,
                                      cu_stream stream)
{
    BEGIN_IN_CONTEXT();
    if (!is_captured(stream,
                     (struct node){.kind = NODE_COPY, .dst = dst, .src = src, .size = size}))
        memcpy(memory_at(dst), memory_at(src), size);
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuMemsetD8Async)(cu_deviceptr dst, unsigned char value, size_t size,
                                    cu_stream stream)
{
    BEGIN_IN_CONTEXT();
    if (!is_captured(stream,
                     (struct node){.kind = NODE_FILL, .dst = dst, .value = value, .size = size}))
        memset(memory_at(dst), value, size);
    return TIR_CUDA_SUCCESS;
}

static void write_log(unsigned int count, const unsigned int *options, void **values,
                      const char *text)
{
    char *log = NULL;
    size_t size = 0;
    for (unsigned int i = 0; i < count; i++) {
        if (options[i] == TIR_CU_JIT_ERROR_LOG_BUFFER)
            log = values[i];
        if (options[i] == TIR_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            size = (size_t)(uintptr_t)values[i];
    }
    if (log && size)
        snprintf(log, size, "%s", text);
}

// Takes the time that a test wants it to take.
static void assemble(const char *ptx)
{
    state.holding++;
    wait_for(&state.hold);
    state.holding--;
    pthread_mutex_lock(&functions_lock);
    snprintf(state.assembled_last, sizeof state.assembled_last, "%s", ptx);
    pthread_mutex_unlock(&functions_lock);
    state.assembled++;
}

cu_result EXPORTED(cuModuleLoadDataEx)(cu_module *out, const void *image, unsigned int count,
                                       unsigned int *options, void **values)
{
    BEGIN_UNSAFE();
    const char *text = image;
    int cubin = memcmp(text, "\177ELF", 4) == 0;
    if (cubin && state.refuse_cubin)
        return TIR_CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (!cubin && state.jit_error) {
        write_log(count, options, values, state.jit_error);
        return TIR_CUDA_ERROR_INVALID_PTX;
    }
    if (!cubin)
        assemble(text);
    *out = calloc(1, sizeof **out);
    (*out)->image = cubin ? NULL : strdup(text);
    state.cubins += cubin;
    state.modules++;
    return TIR_CUDA_SUCCESS;
}

// The thread's mode is put back as if it were released, since a failure is of no interest then.
cu_result EXPORTED(cuThreadExchangeStreamCaptureMode)(unsigned int *mode)
{
    const unsigned int old = is_relaxed ? TIR_CU_STREAM_CAPTURE_MODE_RELAXED : 0;
    const int relax = *mode == TIR_CU_STREAM_CAPTURE_MODE_RELAXED;
    if (relax)
        BEGIN();
    is_relaxed = relax;
    *mode = old;
    return relax ? TIR_CUDA_SUCCESS : end_release();
}

cu_result EXPORTED(cuModuleUnload)(cu_module module)
{
    free(module->image);
    free(module);
    state.modules--;
    return end_release();
}

// Functions are never freed: the driver keeps them with the module, the fake for good.
cu_result EXPORTED(cuModuleGetFunction)(cu_function *out, cu_module module, const char *name)
{
    static struct CUfunc_st functions[64];
    cu_result result = TIR_CUDA_ERROR_OUT_OF_MEMORY;
    BEGIN_UNSAFE();
    if (module->image && !strstr(module->image, name))
        return TIR_CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&functions_lock);
    for (int i = 0; i < 64 && result; i++) {
        if (!functions[i].name[0])
            snprintf(functions[i].name, sizeof functions[i].name, "%s", name);
        if (strcmp(functions[i].name, name) == 0) {
            *out = &functions[i];
            result = TIR_CUDA_SUCCESS;
        }
    }
    pthread_mutex_unlock(&functions_lock);
    return result;
}

cu_result EXPORTED(cuFuncGetAttribute)(int *out, unsigned int attribute, cu_function function)
{
    (void)function;
    BEGIN_IN_CONTEXT();
    *out = attribute == TIR_CU_FUNC_ATTRIBUTE_NUM_REGS ? 128 : (int)attribute;
    return TIR_CUDA_SUCCESS;
}

// Three parameters, of which the last is a tensor map.
cu_result EXPORTED(cuFuncGetParamInfo)(cu_function function, size_t index, size_t *offset,
                                       size_t *size)
{
    static const size_t places[][2] = {{0, 8}, {8, 4}, {128, 128}};
    (void)function;
    BEGIN_IN_CONTEXT();
    if (index >= 3)
        return TIR_CUDA_ERROR_INVALID_VALUE;
    *offset = places[index][0];
    *size = places[index][1];
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuFuncSetAttribute)(cu_function function, unsigned int attribute, int value)
{
    (void)function;
    BEGIN_IN_CONTEXT();
    if (attribute == TIR_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        state.max_dynamic_shared = value;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *out, cu_function function,
                                                                int threads, size_t shared)
{
    (void)function;
    (void)shared;
    BEGIN_IN_CONTEXT();
    *out = 2048 / threads;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuOccupancyMaxActiveClusters)(int *out, cu_function function,
                                                 const struct cu_launch_config *config)
{
    (void)function;
    BEGIN_IN_CONTEXT();
    *out = state.active_clusters;
    return config->attr_count == 1 &&
                   config->attrs[0].id == TIR_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
               ? TIR_CUDA_SUCCESS
               : TIR_CUDA_ERROR_INVALID_VALUE;
}

static void perform(const struct fake_launch *record)
{
    if (strcmp(record->function, "copy") == 0 && !state.idle) { // X, stride, Y, stride, n
        uint64_t words[5];
        memcpy(words, record->params, sizeof words);
        memcpy(memory_at(words[2]), memory_at(words[0]), words[4]);
    }
    if (++state.launches == state.fault_after)
        state.sticky = TIR_CUDA_ERROR_ILLEGAL_ADDRESS;
    if (!state.fault_after) // tests with many threads look at the count only
        state.last = *record;
}

// parts: each parameter, then NULL; the first is where the runtime's block of TIR_MAX_PARAM_BYTES
// begins. NULL: extra names the block and its size.
// The bytes from the first to the end of the last parameter. A driver knows the size of each from
// the code; here the last one is a tensor map where it lies as one does, and else a word.
static size_t size_of_parts(void **parts, uint32_t count)
{
    const size_t last = (uintptr_t)parts[count - 1] % 64 ? 8 : 128;
    return (size_t)((uint8_t *)parts[count - 1] - (uint8_t *)parts[0]) + last;
}

static cu_result launch(cu_function function, const struct cu_launch_config *config, void **parts,
                        void **extra)
{
    struct fake_launch record = {
        .shared_bytes = config->shared_bytes,
        .stream = config->stream,
    };
    memcpy(record.function, function->name, sizeof record.function);
    memcpy(record.grid, config->grid, sizeof record.grid);
    memcpy(record.block, config->block, sizeof record.block);
    for (unsigned int i = 0; i < config->attr_count; i++)
        if (config->attrs[i].id == TIR_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            memcpy(record.cluster, &config->attrs[i].value.cluster, sizeof record.cluster);
        else if (config->attrs[i].id == TIR_CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION)
            memcpy(record.preferred, &config->attrs[i].value.cluster, sizeof record.preferred);
        else if (config->attrs[i].id == TIR_CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
            record.cooperative = config->attrs[i].value.allowed == 1;
        else if (config->attrs[i].id == TIR_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            record.early = config->attrs[i].value.allowed == 1;
    const void *params = parts ? parts[0] : NULL;
    int next = 1;
    if (atomic_compare_exchange_strong(&state.hold_launch, &next, 2))
        wait_for(&state.hold_launch);
    if (!parts == !extra)
        return TIR_CUDA_ERROR_INVALID_VALUE;
    while (parts && parts[record.parts])
        record.parts++;
    if (parts)
        memcpy(record.params, params, size_of_parts(parts, record.parts));
    for (; extra && *extra; extra += 2) {
        if ((uintptr_t)extra[0] == TIR_CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT)
            params = extra[1];
        if ((uintptr_t)extra[0] == TIR_CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT)
            memcpy(&record.params_size, extra[1], sizeof record.params_size);
    }
    if (!parts && record.params_size)
        memcpy(record.params, params, record.params_size);
    if (!is_captured(config->stream, (struct node){.kind = NODE_LAUNCH, .launch = record}))
        perform(&record);
    return TIR_CUDA_SUCCESS;
}

static void drop_graph(cu_graph graph)
{
    if (--graph->references)
        return;
    for (int i = 0; i < graph->count; i++)
        if (graph->nodes[i].kind == NODE_MEMORY) {
            free(memory_at(graph->nodes[i].dst));
            state.memory--;
        }
    free(graph);
    state.graphs--;
}

cu_result EXPORTED(cuStreamBeginCapture)(cu_stream stream, unsigned int mode)
{
    BEGIN_IN_CONTEXT();
    if (!stream || captured || mode != TIR_CU_STREAM_CAPTURE_MODE_RELAXED)
        return TIR_CUDA_ERROR_INVALID_VALUE;
    captured = calloc(1, sizeof *captured);
    captured->references = 1;
    captured_stream = stream;
    state.graphs++;
    return TIR_CUDA_SUCCESS;
}

// The capture is over whatever comes of it.
cu_result EXPORTED(cuStreamEndCapture)(cu_stream stream, cu_graph *out)
{
    cu_result result = count_call();
    if (!result && state.sticky)
        result = state.sticky;
    if (!captured || stream != captured_stream)
        return TIR_CUDA_ERROR_INVALID_VALUE;
    if (state.at_end)
        state.at_end(state.at_end_user);
    *out = result ? NULL : captured;
    if (result)
        drop_graph(captured);
    captured = NULL;
    return result;
}

cu_result EXPORTED(cuGraphInstantiateWithFlags)(cu_graph_exec *out, cu_graph graph,
                                                unsigned long long flags)
{
    BEGIN_IN_CONTEXT();
    if (flags)
        return TIR_CUDA_ERROR_INVALID_VALUE;
    *out = calloc(1, sizeof **out);
    (*out)->graph = graph;
    graph->references++;
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuGraphDestroy)(cu_graph graph)
{
    drop_graph(graph);
    return end_release();
}

cu_result EXPORTED(cuGraphExecDestroy)(cu_graph_exec exec)
{
    drop_graph(exec->graph);
    free(exec);
    return end_release();
}

cu_result EXPORTED(cuGraphLaunch)(cu_graph_exec exec, cu_stream stream)
{
    BEGIN_IN_STREAM(stream);
    for (int i = 0; i < exec->graph->count; i++) {
        struct node *node = &exec->graph->nodes[i];
        node->launch.stream = stream;
        if (node->kind == NODE_LAUNCH)
            perform(&node->launch);
        else if (node->kind == NODE_COPY)
            memcpy(memory_at(node->dst), memory_at(node->src), node->size);
        else if (node->kind == NODE_FILL)
            memset(memory_at(node->dst), node->value, node->size);
    }
    return TIR_CUDA_SUCCESS;
}

cu_result EXPORTED(cuLaunchKernel)(cu_function function, unsigned int gx, unsigned int gy,
                                   unsigned int gz, unsigned int bx, unsigned int by,
                                   unsigned int bz, unsigned int shared, cu_stream stream,
                                   void **params, void **extra)
{
    BEGIN_IN_CONTEXT();
    if (!gx || !gy || !gz)
        return TIR_CUDA_ERROR_INVALID_VALUE;
    struct cu_launch_config config = {
        .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared_bytes = shared, .stream = stream};
    return launch(function, &config, params, extra);
}

cu_result EXPORTED(cuLaunchKernelEx)(const struct cu_launch_config *config, cu_function function,
                                     void **params, void **extra)
{
    BEGIN_IN_CONTEXT();
    return launch(function, config, params, extra);
}

// FAKE_OLD makes a driver that has only the exported symbols, as before CUDA 12.
#ifndef FAKE_OLD
EXPORT cu_result cuGetProcAddress_v2(const char *name, void **out, int version,
                                     unsigned long long flags, unsigned int *found);

EXPORT cu_result cuGetProcAddress_v2(const char *name, void **out, int version,
                                     unsigned long long flags, unsigned int *found)
{
    typedef void (*function)(void);
    static const struct {
        const char *name;
        function address;
    } rows[] = {
#define CU_FN(name, symbol, need, params) {#name, (function)EXPORTED(name)},
#include "cuda/cuda_api.def"
    };
    *out = NULL;
    *found = 1;
    if (version > state.version || flags)
        return TIR_CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0 &&
            !(state.missing && strcmp(name, state.missing) == 0)) {
            memcpy(out, &rows[i].address, sizeof *out);
            *found = 0;
            return TIR_CUDA_SUCCESS;
        }
    return TIR_CUDA_ERROR_NOT_FOUND;
}
#endif
