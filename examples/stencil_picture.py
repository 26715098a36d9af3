# SPDX-License-Identifier: Apache-2.0
"""Pictures for the stencil examples: PNG files of arrays, by zlib alone."""
import argparse
import struct
import zlib

import numpy as np

# Colours at equal distances, from low to high.
HEAT = ["0b0724", "57106e", "bc3754", "f98e09", "fcffa4"]
SEA = ["08306b", "2171b5", "6baed6", "f7fbff", "fd8d3c", "d94801", "7f2704"]
CORAL = ["fff7ec", "fdd49e", "fc8d59", "d7301f", "7f0000", "2b0000"]


def coloured(values, colours, low, high):
    """An array (height, width, 3) of bytes."""
    stops = np.array([list(bytes.fromhex(colour)) for colour in colours], float)
    place = np.clip((np.asarray(values, float) - low) / (high - low), 0, 1) * (len(stops) - 1)
    return np.stack([np.interp(place, np.arange(len(stops)), stops[:, channel])
                     for channel in range(3)], axis=-1).round().astype(np.uint8)


def side_by_side(pictures, gap=8):
    """Pictures in a row, on white, from the top."""
    height = max(picture.shape[0] for picture in pictures)
    parts = []
    for picture in pictures:
        padded = np.full((height, picture.shape[1] + gap, 3), 255, np.uint8)
        padded[:picture.shape[0], :picture.shape[1]] = picture
        parts.append(padded)
    return np.concatenate(parts, axis=1)[:, :-gap]


def enlarged(picture, least):
    """Whole pixels repeated, so that the shorter side has at least so many."""
    times = max(1, -(-least // min(picture.shape[:2])))
    return picture.repeat(times, axis=0).repeat(times, axis=1)


def write_png(path, picture):
    height, width = picture.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(picture))

    def chunk(kind, data):
        whole = kind + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n"
                   + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(rows, 6)) + chunk(b"IEND", b""))


def parse(text, size, steps, output):
    """The options that all examples have."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--size", type=int, default=size, help="cells along an axis")
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--memory", help="of the grid, as 256MiB; default: the example's own")
    parser.add_argument("--folder", help="where the grid's file is; default: $TMPDIR, or /var/tmp")
    parser.add_argument("--output", default=output, help="the picture")
    return parser.parse_args()
