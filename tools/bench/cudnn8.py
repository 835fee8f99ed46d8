# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""cuDNN's attention in e4m3, which torch cannot call, through cuDNN's own front end.

The module `cudnn` is the PyPI package nvidia-cudnn-frontend, installed or unpacked where PYTHONPATH
says. The graph is sdpa_fp8 without statistics, all scales 1, O in e4m3, as its documentation shows
it (docs.nvidia.com/deeplearning/cudnn, Attention, FP8 forward).
"""

import math

import torch

try:
    import cudnn
except ImportError:
    cudnn = None

SCALES = ("descale_q", "descale_k", "descale_v", "descale_s", "scale_s", "scale_o")


def attention(q, k, v):
    """A call on q, k, v: e4m3[B, H, S, D], or None where the front end is not at hand."""
    if not cudnn or not q.is_cuda:
        return None
    handle = cudnn.create_handle()
    float32, e4m3 = cudnn.data_type.FLOAT, cudnn.data_type.FP8_E4M3
    graph = cudnn.pygraph(io_data_type=e4m3, intermediate_data_type=float32,
                          compute_data_type=float32, handle=handle)
    o = torch.empty_like(q)
    one, amax_s, amax_o = (torch.ones(1, 1, 1, 1, device=q.device) for _ in range(3))

    def tensor(x, kind):
        return graph.tensor(dim=list(x.shape), stride=list(x.stride()), data_type=kind)

    def output(result, x, kind):
        result.set_output(True).set_dim(list(x.shape)).set_stride(list(x.stride()))
        result.set_data_type(kind)
        return result

    inputs = [tensor(x, e4m3) for x in (q, k, v)]
    scales = {name: tensor(one, float32) for name in SCALES}
    results = graph.sdpa_fp8(q=inputs[0], k=inputs[1], v=inputs[2], is_inference=True,
                             attn_scale=1 / math.sqrt(q.shape[3]), use_causal_mask=False, **scales)
    outputs = {output(results[0], o, e4m3): o, output(results[2], one, float32): amax_s,
               output(results[3], one, float32): amax_o}
    graph.validate()
    graph.build_operation_graph()
    graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
    graph.check_support()
    graph.build_plans()
    space = torch.empty(max(1, graph.get_workspace_size()), device=q.device, dtype=torch.uint8)
    pack = dict(zip(inputs, (q, k, v))) | {scales[name]: one for name in SCALES} | outputs

    def call():
        cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        graph.execute(pack, space, handle=handle)
        return o
    return call
