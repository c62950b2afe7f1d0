// Fuzzes both ends of a shared-memory connection: the HELLO's decoder, and a channel whose peer
// writes anything into its words at any time. Whatever it writes, reading and writing stay inside
// of the rings, or fail.
//
// The input is a list of steps of 9 bytes: which one, and a number.
#include <eddy/base/assert.hpp>

#include "shm/channel.hpp"
#include "shm/hello.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace {

using namespace eddy;
using namespace eddy::shm;

constexpr std::size_t ring = EDDY_SHM_MIN_RING;

/// A channel, and its peer's memory.
struct pair {
    std::unique_ptr<channel> own;
    memory hostile;
};

pair make_pair_of_ends(std::uint64_t begin) {
    unique_fd own_file;
    unique_fd peer_file;
    channel::parts parts;
    auto own = memory::create(ring, own_file);
    auto hostile = memory::create(ring, peer_file);
    EDDY_ASSERT(own && hostile);
    auto peer = memory::open(peer_file.get(), ring);
    EDDY_ASSERT(peer);
    parts.own = std::move(*own);
    parts.peer = std::move(*peer);
    parts.own_position = parts.peer_position = begin;
    for (const std::size_t word : {std::size_t{EDDY_SHM_HEAD}, std::size_t{EDDY_SHM_TAIL}})
        *hostile->word64(word) = begin;
    return {std::make_unique<channel>(std::move(parts)), std::move(*hostile)};
}

/// Touches each byte, so that a span that leaves its mapping is a fault.
void touch(const_bytes bytes) {
    EDDY_ASSERT(bytes.size() <= ring);
    unsigned sum = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 512) sum += static_cast<unsigned>(bytes[i]);
    if (!bytes.empty()) sum += static_cast<unsigned>(bytes.back());
    asm volatile("" : : "r"(sum));  // so that the reads are made
}

void step(pair& ends, std::uint8_t what, std::uint64_t number) {
    channel& own = *ends.own;
    std::array<std::byte, 4000> buffer{};
    bool wakes = false;
    const std::size_t size = number % buffer.size();
    switch (what % 12) {
        case 0: *ends.hostile.word64(EDDY_SHM_HEAD) = number; break;
        case 1: *ends.hostile.word64(EDDY_SHM_TAIL) = number; break;
        case 2: *ends.hostile.word64(EDDY_SHM_HEAD) += number % 5000; break;
        case 3: *ends.hostile.word64(EDDY_SHM_TAIL) += number % 5000; break;
        case 4: *ends.hostile.word64(EDDY_SHM_READER) = number; break;
        case 5: *ends.hostile.word64(EDDY_SHM_END) = number; break;
        case 6: static_cast<void>(own.read(std::span(buffer).first(size), wakes)); break;
        case 7: static_cast<void>(own.write(std::span(buffer).first(size), wakes)); break;
        case 8:
            if (const auto seen = own.all_bytes()) {
                touch(*seen);
                if (!seen->empty()) static_cast<void>(own.consume(number % seen->size()));
            }
            break;
        case 9:
            if (const auto room = own.room(size + 1); room && !room->empty()) {
                room->back() = std::byte{1};
                own.append(number % room->size());
                static_cast<void>(own.publish());
            }
            break;
        case 10:
            static_cast<void>(own.arm_reader());
            own.arm_writer();
            break;
        default: static_cast<void>(own.is_at_end()); break;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size >= EDDY_SHM_HELLO_SIZE) {
        hello_bytes bytes;
        std::memcpy(bytes.data(), data, bytes.size());
        if (const auto read = decode(bytes)) {
            const auto again = decode(encode(*read));
            EDDY_ASSERT(again && again->ring_size == read->ring_size);
        }
    }
    if (size < 8) return 0;
    std::uint64_t begin = 0;
    std::memcpy(&begin, data, 8);
    pair ends = make_pair_of_ends(begin);
    for (std::size_t at = 8; at + 9 <= size && at < 9000; at += 9) {
        std::uint64_t number = 0;
        std::memcpy(&number, data + at + 1, 8);
        step(ends, data[at], number);
    }
    return 0;
}
