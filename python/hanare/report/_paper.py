# SPDX-License-Identifier: Apache-2.0
"""What the DLM paper (2009) prints of its measurements.

Times of programs are by those with all in local memory.  Of its drawings only what the text says in
numbers is here.
"""
from __future__ import annotations

# Tables 3 and 4, matv: GB of data -> seconds (kernel swap, DLM); None where it did not run.
MATV_1GBE = {1.152: (30.2405, 26.7422), 1.568: (113.7777, 41.3962), 2.147: (224.1046, 61.4897),
             2.592: (733.8037, 76.7259), 3.200: (519.2951, 97.9114), 3.872: (602.7424, 121.2423),
             4.608: (685.5034, 147.0197), 5.000: (None, 160.704955)}
MATV_1GBE_MEMORY_GB = 1.0
MATV_10GBE = {61.952: (115.6283, 126.2098), 64.8: (127.7031, 500.0393),
              67.712: (526.6467, 521.9866), 70.688: (1694.1714, 556.1236),
              73.728: (6105.8244, 589.2010), 76.832: (None, 634.1562)}
MATV_10GBE_MEMORY_GB = 68.7

# Section 5.1.1, the text on Figs. 11 and 12: the first pass of Test 1, page size -> (part of the
# accesses that is remote, speed by that of plain memory).
TEST1 = {32 << 10: [(0.005, 0.95), (0.05, 0.80), (0.20, 0.5), (0.67, 0.27)],
         64 << 10: [(0.15, 0.70), (0.60, 0.5)]}

# Fig. 13 (a): page size -> microseconds for a write with one swap (1 GbE, 10 GbE).
SWAP_US = {4 << 10: (311, 103), 8 << 10: (369, 116), 16 << 10: (437, 171), 32 << 10: (559, 182),
           64 << 10: (885, 245), 128 << 10: (1505, 395), 256 << 10: (3179, 726),
           512 << 10: (7571, 1461), 1 << 20: (16495, 3106)}

# Table 6: STREAM (malloc), 100 million elements, MB/s.
STREAM_LOCAL = {"copy": 2718, "scale": 2694, "add": 2767, "triad": 2925}
# Table 7: the same with 8 % of it local; page size -> MB/s.
STREAM_REMOTE = {1 << 20: {"copy": 379.7, "scale": 379.6, "add": 366.9, "triad": 367.5},
                 128 << 10: {"copy": 307.5, "scale": 307.5, "add": 304.4, "triad": 304.4}}
# Section 5.1.3, with pages of 1 MiB and 6 to 8 % local: times.
STREAM_TIMES = {"sum": 5.1, "fill": 5.6, "scale": 7.0, "copy": 7.3, "add": 7.4, "daxpy": 7.9,
                "triad": 7.9}
STREAM_TIMES_LOCAL_PERCENT = 8

# Table 8 (a), Himeno L: local part in per cent -> times, by page size.
HIMENO = {1 << 20: {86: 2.3, 82: 2.7, 65: 3.7, 54: 4.5, 43: 4.6, 32: 4.8, 21: 4.9, 10: 5.0},
          128 << 10: {86: 2.6, 82: 3.0, 65: 4.4, 54: 5.3, 43: 5.6, 32: 6.0, 21: 5.9, 10: 5.9},
          4 << 10: {86: 8.7, 82: 11.7, 65: 22.2, 54: 29.2, 43: 30.2, 32: 33.3, 21: 33.2,
                    10: 34.4}}
