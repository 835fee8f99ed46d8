// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CUDA graphs: a stream is captured, and what it got is made ready to be launched as a whole.
//
// The mode of capture is the relaxed one: any thread may end it, and calls that have nothing to do
// with the stream, such as those that allocate memory, stay allowed. Calls that would wait for it
// are refused before they come to the driver (device.c).

#include "cuda/cuda_device.h"
#include "error.h"

static bool has_graphs(const struct cuda_api *api)
{
    return api->cuStreamBeginCapture && api->cuStreamEndCapture &&
           api->cuGraphInstantiateWithFlags && api->cuGraphDestroy && api->cuGraphLaunch &&
           api->cuGraphExecDestroy;
}

tir_status tir_cuda_capture_begin(tir_rt_device *device, void *stream, tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    tir_status status;
    if (!has_graphs(d->api))
        return tir_error_set(error, TIR_ERR_UNSUPPORTED,
                             "this driver has no graphs; CUDA 11.4 has");
    CU_CALL_IN(d, status, error, cuStreamBeginCapture, stream, TIR_CU_STREAM_CAPTURE_MODE_RELAXED);
    return status;
}

// The driver's description of the graph is not needed once there is one that can be launched. The
// attempt is made even when the context cannot be made current.
tir_status tir_cuda_capture_end(tir_rt_device *device, void *stream, void **graph, tir_error *error)
{
    struct cuda_device *d = cuda_device_of(device);
    cu_graph captured = NULL;
    cu_graph_exec ready = NULL;
    bool pushed;
    tir_status entered = tir_cuda_enter(d, &pushed, error);
    tir_status status =
        CU_CALL(d->api, entered ? NULL : error, cuStreamEndCapture, stream, &captured);
    status = entered ? entered : status;
    if (!status)
        status = CU_CALL(d->api, error, cuGraphInstantiateWithFlags, &ready, captured, 0);
    if (captured)
        d->api->cuGraphDestroy(captured);
    tir_cuda_leave(d, pushed);
    *graph = ready;
    return status;
}

tir_status tir_cuda_graph_launch(tir_rt_device *device, void *graph, void *stream, tir_error *error)
{
    tir_status status;
    CU_CALL_IN(cuda_device_of(device), status, error, cuGraphLaunch, graph, stream);
    return status;
}

void tir_cuda_graph_destroy(tir_rt_device *device, void *graph)
{
    CU_RELEASE_IN(cuda_device_of(device), cuGraphExecDestroy, graph);
}
