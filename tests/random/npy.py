# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of one-dimensional arrays of unsigned integers, as NumPy writes them."""

import struct

CODES = {8: "B", 16: "H", 32: "I", 64: "Q"}


def write(path, bits, numbers, kind="u", shape=()):
    """Their bits. `kind` is the letter of what they are; without a shape they are a vector."""
    sizes = "".join(f"{n}, " for n in shape or [len(numbers)])
    header = f"{{'descr': '{'|' if bits == 8 else '<'}{kind}{bits // 8}', 'fortran_order': False, 'shape': ({sizes}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                     + struct.pack(f"<{len(numbers)}{CODES[bits]}", *numbers))


def read(path):
    """The bytes of the numbers."""
    data = path.read_bytes()
    return data[10 + struct.unpack_from("<H", data, 8)[0]:]
