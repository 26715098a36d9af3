# SPDX-License-Identifier: Apache-2.0
"""Client of a memcached: fills it, replaces a part, reads all of it back and shuts it down.

usage: memcached_client.py SOCKET ITEMS
"""

import hashlib
import random
import socket
import sys
import time

BATCH = 200


def connect(path):
    for _ in range(3000):
        try:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            time.sleep(0.01)
    sys.exit("the server does not listen")


def store(connection, replies, numbers, generator, data):
    numbers = list(numbers)
    for first in range(0, len(numbers), BATCH):
        batch = []
        for number in numbers[first:first + BATCH]:
            place, size = generator.randrange(1 << 19), 100 + number * 7919 % 1500
            batch.append(b"set k%d 0 0 %d\r\n%s\r\n" % (number, size, data[place:place + size]))
        connection.sendall(b"".join(batch))
        for _ in batch:
            if replies.readline() != b"STORED\r\n":
                sys.exit("not stored")


def read(connection, replies, items):
    digest = hashlib.sha256()
    found = 0
    for first in range(0, items, BATCH):
        last = min(first + BATCH, items)
        connection.sendall(b"".join(b"get k%d\r\n" % number for number in range(first, last)))
        for _ in range(first, last):
            while (line := replies.readline()) != b"END\r\n":
                found += 1
                digest.update(replies.read(int(line.split()[3]) + 2))
    return found, digest.hexdigest()


def main():
    connection, items = connect(sys.argv[1]), int(sys.argv[2])
    replies = connection.makefile("rb")
    generator = random.Random(21)
    data = generator.randbytes(1 << 20)
    store(connection, replies, range(items), generator, data)
    store(connection, replies, range(0, items, 3), generator, data)
    print("found", *read(connection, replies, items))
    connection.sendall(b"shutdown\r\n")
    replies.read()


main()
