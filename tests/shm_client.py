"""Client of the shared-memory protocol in Python alone, by include/eddy/shm/layout.h: another implementation to test
runtimes with. It polls, and is slow."""

import fcntl
import mmap
import os
import select
import socket
import struct
import time

MAGIC, VERSION, MEMORY = 0x4D485345, 1, 1
HELLO = struct.Struct("=IIIIQQ")
HEADER = 65536
HEAD, TAIL, READER, WRITER, END = 128, 256, 384, 388, 512
RING = 65536
SEALS = 0x1 | 0x2 | 0x4 | 0x10  # SEAL, SHRINK, GROW, FUTURE_WRITE


def port_name(port):
    """Name of a port of this user's servers."""
    return f"@eddy-shm-{os.geteuid()}-{port}"


class ShmClient:
    """One connection. Reads and writes wait for DEADLINE_S at most."""

    DEADLINE_S = 60

    def __init__(self, path, ring=RING):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(self.DEADLINE_S)
        if path.startswith(":"):
            path = port_name(int(path[1:]))
        self.socket.connect("\0" + path[1:] if path.startswith("@") else path)
        memory = os.memfd_create("client", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(memory, HEADER + ring)
        self.own = mmap.mmap(memory, HEADER + ring)
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, SEALS)
        socket.send_fds(self.socket, [HELLO.pack(MAGIC, VERSION, MEMORY, 0, ring, 0)], [memory])
        os.close(memory)
        hello, descriptors, _, _ = socket.recv_fds(self.socket, HELLO.size, 1)
        magic, version, features, _, self.peer_ring, position = HELLO.unpack(hello)
        assert (magic, version, features & MEMORY) == (MAGIC, VERSION, MEMORY), hello
        self.peer = mmap.mmap(descriptors[0], HEADER + self.peer_ring, prot=mmap.PROT_READ)
        os.close(descriptors[0])
        self.own_ring, self.head, self.tail = ring, 0, position
        self._store(TAIL, position)

    # Words by memoryviews, which store one at once: struct.pack_into() stores 0 first, which the peer sees.
    def _store(self, offset, value):
        memoryview(self.own).cast("Q")[offset // 8] = value % 2**64

    def _load(self, offset, kind="Q"):
        return memoryview(self.peer).cast(kind)[offset // struct.calcsize(kind)]

    def _wake(self, word):
        # A bell too many does no harm.
        if self._load(word, "I") % 2 == 1:
            self.socket.send(b"!")

    def send(self, data):
        until = time.monotonic() + self.DEADLINE_S
        while data:
            free = self.own_ring - (self.head - self._load(TAIL))
            part = data[:min(free, self.own_ring - self.head % self.own_ring)]
            if not part:
                assert time.monotonic() < until, "the peer does not read"
                time.sleep(0.001)
                continue
            at = HEADER + self.head % self.own_ring
            self.own[at:at + len(part)] = part
            self.head += len(part)
            self._store(HEAD, self.head)
            self._wake(READER)
            data = data[len(part):]

    def receive(self, size):
        """So many bytes, or fewer at the end."""
        data = b""
        until = time.monotonic() + self.DEADLINE_S
        while len(data) < size:
            at = self.tail % self.peer_ring
            unread = self._load(HEAD) - self.tail
            part = self.peer[HEADER + at:HEADER + at + min(unread, size - len(data), self.peer_ring - at)]
            if part:
                data += part
                self.tail += len(part)
                self._store(TAIL, self.tail)
                self._wake(WRITER)
                continue
            if self._load(END) == self.tail + 1 or self._hung_up():
                break
            assert time.monotonic() < until, f"only {data!r} came"
            time.sleep(0.001)
        return data

    def _hung_up(self):
        if not select.select([self.socket], [], [], 0)[0]:
            return False
        return self.socket.recv(64) == b"" and self._load(HEAD) == self.tail

    def close(self):
        self._store(END, self.head + 1)
        self.socket.close()
