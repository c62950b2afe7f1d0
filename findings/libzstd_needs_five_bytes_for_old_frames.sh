#!/usr/bin/env bash
# libzstd 1.5.4 (Debian 12) streams old frames (zstd 0.5 to 0.7) only if the first call has 5 bytes.
#
# A good guess: a streaming decoder's result depends on the bytes, not on how the network cuts them.
# Behaviour: Debian builds libzstd with formats that were before zstd 0.8. If the first call of a
#   frame has fewer than 5 bytes, the shortest header of the current format, then
#   ZSTD_decompressStream() compares them with the current magic number alone, and fails. 5 bytes or
#   more are compared with the old magic numbers too, and the frame is decoded, also if the rest
#   comes byte by byte. The current format is decoded however it is cut. A program that needs one
#   outcome for each content has to check the magic number itself. Other builds have none of these
#   formats: libzstd 1.5.7 in PyPI's wheel of zstandard 0.25.0 refuses the same frames even whole.
# Output seen (2026-11-29; the same four lines for libzstd1 1.5.4+dfsg2-5+deb12u1):
#   libzstd1 1.5.4+dfsg2-5, zstd 0.5: first 1 to 4 bytes: Unknown frame descriptor; 5 to 16: Hello
#   libzstd1 1.5.4+dfsg2-5, zstd 0.6: first 1 to 4 bytes: Unknown frame descriptor; 5 to 16: Hello
#   libzstd1 1.5.4+dfsg2-5, zstd 0.7: first 1 to 4 bytes: Unknown frame descriptor; 5 to 17: Hello
#   libzstd1 1.5.4+dfsg2-5, current: first 1 to 14 bytes: Hello
#   zstandard 0.25.0 (libzstd 1.5.7), zstd 0.5, whole: Unknown frame descriptor
#   zstandard 0.25.0 (libzstd 1.5.7), zstd 0.6, whole: Unknown frame descriptor
#   zstandard 0.25.0 (libzstd 1.5.7), zstd 0.7, whole: Unknown frame descriptor
#   zstandard 0.25.0 (libzstd 1.5.7), current, whole: Hello
#
# Fails if that changes. Needs Debian 12's apt with the package lists, dpkg, and python3 with pip.

set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# Frames of one raw block, written by hand: magic number, header, and block. The old formats have an
# end block.
cat >frames.py <<'END'
TEXT = b"Hello"
REFUSED = "Unknown frame descriptor"
OLD_BLOCKS = bytes.fromhex("400005") + TEXT + bytes.fromhex("c00000")
OLD = {
    "zstd 0.5": bytes.fromhex("25b52ffd 00") + OLD_BLOCKS,
    "zstd 0.6": bytes.fromhex("26b52ffd 00") + OLD_BLOCKS,
    "zstd 0.7": bytes.fromhex("27b52ffd 0000") + OLD_BLOCKS,
}
CURRENT = bytes.fromhex("28b52ffd 2005 290000") + TEXT
END

cat >library.py <<'END'
import ctypes
import sys

from frames import OLD, REFUSED, TEXT, CURRENT

NEEDED = 5
path, name = sys.argv[1:]
library = ctypes.CDLL(path)


class Buffer(ctypes.Structure):
    """ZSTD_inBuffer and ZSTD_outBuffer."""
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t),
                ("position", ctypes.c_size_t)]


def function(its_name, result, *parameters):
    its = getattr(library, its_name)
    its.restype, its.argtypes = result, parameters
    return its


create = function("ZSTD_createDStream", ctypes.c_void_p)
free = function("ZSTD_freeDStream", ctypes.c_size_t, ctypes.c_void_p)
decompress = function("ZSTD_decompressStream", ctypes.c_size_t, ctypes.c_void_p,
                      ctypes.POINTER(Buffer), ctypes.POINTER(Buffer))
is_error = function("ZSTD_isError", ctypes.c_uint, ctypes.c_size_t)
error_name = function("ZSTD_getErrorName", ctypes.c_char_p, ctypes.c_size_t)
assert function("ZSTD_versionString", ctypes.c_char_p)() == b"1.5.4"


def decode(pieces):
    """The text, or the name of the error and the number of the piece that caused it."""
    room = ctypes.create_string_buffer(1024)
    out = Buffer(ctypes.addressof(room), len(room), 0)
    stream = create()
    try:
        for number, piece in enumerate(pieces):
            data = ctypes.create_string_buffer(piece, len(piece))
            source = Buffer(ctypes.addressof(data), len(piece), 0)
            while source.position < source.size:
                left = decompress(stream, out, source)
                if is_error(left):
                    return error_name(left).decode(), number
        assert left == 0, left
        return room.raw[:out.position]
    finally:
        free(stream)


def cut(frame, first):
    """The first bytes as one piece, the others one by one."""
    return [frame[:first]] + [frame[i:i + 1] for i in range(first, len(frame))]


for version, frame in OLD.items():
    for first in range(1, len(frame) + 1):
        expected = TEXT if first >= NEEDED else (REFUSED, 0)
        assert decode(cut(frame, first)) == expected, (version, first, decode(cut(frame, first)))
    print(f"{name}, {version}: first 1 to {NEEDED - 1} bytes: {REFUSED}; "
          f"{NEEDED} to {len(frame)}: {TEXT.decode()}")
for first in range(1, len(CURRENT) + 1):
    assert decode(cut(CURRENT, first)) == TEXT, (first, decode(cut(CURRENT, first)))
print(f"{name}, current: first 1 to {len(CURRENT)} bytes: {TEXT.decode()}")
END

seen=0
for version in 1.5.4+dfsg2-5 1.5.4+dfsg2-5+deb12u1; do
    if ! apt-get download -q "libzstd1=$version" >said 2>&1; then
        echo "apt has no libzstd1 $version, left out: $(grep '^E:' said | head -n 1)" >&2
        continue
    fi
    dpkg -x "$(find . -name 'libzstd1_*.deb')" "$version"
    rm libzstd1_*.deb
    python3 library.py "$(find "$PWD/$version" -name libzstd.so.1)" "libzstd1 $version"
    seen=$((seen + 1))
done
[[ $seen -gt 0 ]] || { echo "apt has none of the two versions of libzstd1" >&2; exit 1; }

python3 -m pip install -q --no-deps --only-binary :all: --target wheel zstandard==0.25.0 \
    >said 2>&1 || { echo "pip has no wheel of zstandard 0.25.0:" >&2; cat said >&2; exit 1; }
PYTHONPATH=wheel:. python3 - <<'END'
import zstandard

from frames import OLD, REFUSED, TEXT, CURRENT

library_version = ".".join(map(str, zstandard.ZSTD_VERSION))
name = f"zstandard {zstandard.__version__} (libzstd {library_version})"
assert name == "zstandard 0.25.0 (libzstd 1.5.7)", name
for version, frame in OLD.items():
    try:
        text = zstandard.ZstdDecompressor().decompressobj().decompress(frame)
    except zstandard.ZstdError as error:
        assert REFUSED in str(error), error
    else:
        raise SystemExit(f"changed: {version}: {text}")
    print(f"{name}, {version}, whole: {REFUSED}")
assert zstandard.ZstdDecompressor().decompressobj().decompress(CURRENT) == TEXT
print(f"{name}, current, whole: {TEXT.decode()}")
END
echo "as described"
