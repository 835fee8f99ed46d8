// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device memory, with bounds.

#include "device.h"
#include "error.h"
#include "host.h"

struct tir_rt_buffer {
    tir_rt_device *device;
    uint64_t address, size;
};

TIR_API tir_status tir_rt_buffer_create(tir_rt_device *device, uint64_t size, tir_rt_buffer **out,
                                        tir_error *error)
{
    tir_error local;
    error = error ? error : &local;
    *out = NULL;
    tir_status status = tir_device_enter(device, error);
    if (status)
        return status;
    tir_rt_buffer *buffer = tir_host_alloc(device->allocator, sizeof *buffer);
    if (!buffer)
        return tir_error_set(error, TIR_ERR_NO_MEMORY, "no memory for a buffer");
    *buffer = (tir_rt_buffer){.device = device, .size = size};
    if (size)
        status = device->ops->alloc(device, size, &buffer->address, error);
    if (status)
        tir_host_free(device->allocator, buffer, sizeof *buffer);
    else
        *out = buffer;
    return tir_device_leave(device, status, error);
}

TIR_API void tir_rt_buffer_destroy(tir_rt_buffer *buffer)
{
    if (!buffer)
        return;
    if (buffer->size)
        buffer->device->ops->free(buffer->device, buffer->address);
    tir_host_free(buffer->device->allocator, buffer, sizeof *buffer);
}

TIR_API uint64_t tir_rt_buffer_address(const tir_rt_buffer *buffer)
{
    return buffer->address;
}

TIR_API uint64_t tir_rt_buffer_size(const tir_rt_buffer *buffer)
{
    return buffer->size;
}

static tir_status check_range(const tir_rt_buffer *buffer, uint64_t offset, uint64_t size,
                              tir_error *error)
{
    if (offset > buffer->size || size > buffer->size - offset)
        return tir_error_set(error, TIR_ERR_INVALID,
                             "%llu bytes at offset %llu do not lie in a buffer of %llu bytes",
                             (unsigned long long)size, (unsigned long long)offset,
                             (unsigned long long)buffer->size);
    return TIR_OK;
}

typedef tir_status stream_fn(const tir_rt_device *device, const tir_rt_stream *stream,
                             void **native, tir_error *error);

// The start of every transfer: no fault, the range in the buffer, the stream of its device.
static tir_status begin(const tir_rt_buffer *buffer, uint64_t offset, uint64_t size,
                        stream_fn *find, const tir_rt_stream *stream, void **native,
                        tir_error *error)
{
    tir_status status = tir_device_enter(buffer->device, error);
    if (!status)
        status = check_range(buffer, offset, size, error);
    if (!status)
        status = find(buffer->device, stream, native, error);
    return status;
}

TIR_API tir_status tir_rt_buffer_write(tir_rt_buffer *buffer, uint64_t offset, const void *src,
                                       uint64_t size, tir_rt_stream *stream, tir_error *error)
{
    tir_error local;
    tir_rt_device *device = buffer->device;
    void *native;
    error = error ? error : &local;
    tir_status status = begin(buffer, offset, size, tir_device_stream_now, stream, &native, error);
    if (status || !size)
        return status;
    status = device->ops->write(device, buffer->address + offset, src, size, native, error);
    return tir_device_leave(device, status, error);
}

TIR_API tir_status tir_rt_buffer_read(tir_rt_buffer *buffer, uint64_t offset, void *dst,
                                      uint64_t size, tir_rt_stream *stream, tir_error *error)
{
    tir_error local;
    tir_rt_device *device = buffer->device;
    void *native;
    error = error ? error : &local;
    tir_status status = begin(buffer, offset, size, tir_device_stream_now, stream, &native, error);
    if (status || !size)
        return status;
    status = device->ops->read(device, dst, buffer->address + offset, size, native, error);
    return tir_device_leave(device, status, error);
}

TIR_API tir_status tir_rt_buffer_copy(tir_rt_buffer *dst, uint64_t dst_offset, tir_rt_buffer *src,
                                      uint64_t src_offset, uint64_t size, tir_rt_stream *stream,
                                      tir_error *error)
{
    tir_error local;
    tir_rt_device *device = dst->device;
    void *native;
    error = error ? error : &local;
    tir_status status = begin(dst, dst_offset, size, tir_device_stream, stream, &native, error);
    if (!status)
        status = check_range(src, src_offset, size, error);
    if (!status && src->device != device)
        status =
            tir_error_set(error, TIR_ERR_INVALID, "the two buffers belong to different devices");
    if (status || !size)
        return status;
    status = device->ops->copy(device, dst->address + dst_offset, src->address + src_offset, size,
                               native, error);
    return tir_device_leave(device, status, error);
}

TIR_API tir_status tir_rt_buffer_fill(tir_rt_buffer *buffer, uint64_t offset, uint8_t value,
                                      uint64_t size, tir_rt_stream *stream, tir_error *error)
{
    tir_error local;
    tir_rt_device *device = buffer->device;
    void *native;
    error = error ? error : &local;
    tir_status status = begin(buffer, offset, size, tir_device_stream, stream, &native, error);
    if (status || !size)
        return status;
    status = device->ops->fill(device, buffer->address + offset, value, size, native, error);
    return tir_device_leave(device, status, error);
}
