# SPDX-License-Identifier: Apache-2.0
"""Client of a redis-server: fills it, reads, has it save in the background and reloads the file.

usage: redis_client.py SOCKET KEYS
"""

import hashlib
import random
import socket
import sys
import time

BATCH = 1000


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


def encode(*words):
    parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)


class Client:
    def __init__(self, path):
        self.connection = connect(path)
        self.replies = self.connection.makefile("rb")

    def reply(self):
        line = self.replies.readline()
        if line[:1] == b"-" or not line:
            raise SystemExit(f"server: {line.decode(errors='replace').strip() or 'gone'}")
        if line[:1] == b"$":
            size = int(line[1:])
            return self.replies.read(size + 2)[:-2] if size >= 0 else None
        return line[1:].strip()

    def ask(self, *words):
        self.connection.sendall(encode(*words))
        return self.reply()

    def ask_many(self, questions):
        """The replies to many at once."""
        self.connection.sendall(b"".join(questions))
        return [self.reply() for _ in questions]

    def save_in_background(self):
        self.ask("BGSAVE")
        while b"rdb_bgsave_in_progress:1" in self.ask("INFO", "persistence"):
            time.sleep(0.02)
        if b"rdb_last_bgsave_status:ok" not in self.ask("INFO", "persistence"):
            sys.exit("BGSAVE failed")


def fill(client, keys, generator):
    data = generator.randbytes(1 << 20)
    for first in range(0, keys, BATCH):
        batch = []
        for number in range(first, min(first + BATCH, keys)):
            place, size = generator.randrange(1 << 19), 40 + number * 7919 % 600
            batch.append(encode("SET", f"key:{number}", data[place:place + size]))
            if number % 10 == 0:
                batch.append(encode("HSET", f"hash:{number // 50}", number, data[place:place + 20]))
                batch.append(encode("ZADD", f"set:{number // 5000}", place, number))
        client.ask_many(batch)


def read(client, keys, generator):
    digest = hashlib.sha256()
    for _ in range(keys // 4 // BATCH):
        batch = [encode("GET", f"key:{generator.randrange(keys)}") for _ in range(BATCH)]
        for value in client.ask_many(batch):
            digest.update(value)
    return digest.hexdigest()


def main():
    client, keys = Client(sys.argv[1]), int(sys.argv[2])
    generator = random.Random(20)
    while client.ask("PING") != b"PONG":
        time.sleep(0.01)
    fill(client, keys, generator)
    print("read", read(client, keys, generator))
    print("size", client.ask("DBSIZE").decode())
    before = client.ask("DEBUG", "DIGEST").decode()
    client.save_in_background()
    client.ask("DEBUG", "RELOAD", "NOSAVE")
    after = client.ask("DEBUG", "DIGEST").decode()
    print("digest", before, "reloaded", after)
    if after != before:
        sys.exit("the file that BGSAVE wrote holds something else")
    client.connection.sendall(encode("SHUTDOWN", "NOSAVE"))
    client.replies.read()


main()
