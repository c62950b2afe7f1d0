// Channels: bytes, room, ends, sleep and wake-ups, and peers that write nonsense into their words.
#include "shm/channel.hpp"

#include <eddy/base/random.hpp>
#include <eddy/shm/connection.hpp>

#include "io/testing.hpp"
#include "shm/testing.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::shm {
namespace {

using testing::error_of;
using testing::must;

constexpr std::size_t ring = EDDY_SHM_MIN_RING;

/// Both sides of a connection in this process; `hostile` writes what the second one's owner could.
struct both {
    explicit both(std::uint64_t begin = 0, bool is_asymmetric = false) {
        unique_fd first_file;
        unique_fd second_file;
        memory first_own = must(memory::create(ring, first_file));
        memory second_own = must(memory::create(ring, second_file));
        memory first_peer = must(memory::open(second_file.get(), ring));
        memory second_peer = must(memory::open(first_file.get(), ring));
        hostile_header = second_own.word64(0);
        channel::parts of_first;
        of_first.own = std::move(first_own);
        of_first.peer = std::move(first_peer);
        channel::parts of_second;
        of_second.own = std::move(second_own);
        of_second.peer = std::move(second_peer);
        for (channel::parts* each : {&of_first, &of_second}) {
            each->own_position = each->peer_position = begin;
            each->is_asymmetric = is_asymmetric;
        }
        first = std::make_unique<channel>(std::move(of_first));
        second = std::make_unique<channel>(std::move(of_second));
    }
    /// As consume() of the second one, after it has seen what there is.
    bool use(std::size_t size) {
        must(second->all_bytes());
        return second->consume(size);
    }
    void set(std::size_t offset, std::uint64_t value) { hostile_header[offset / 8] = value; }

    std::unique_ptr<channel> first;
    std::unique_ptr<channel> second;
    std::uint64_t* hostile_header;
};

class shm_channels : public ::testing::TestWithParam<std::uint64_t> {};
// Positions of 32 bits, signed and not, and those of 64 would have wrapped here.
INSTANTIATE_TEST_SUITE_P(shm, shm_channels,
                         ::testing::Values(0, (1ull << 31) - 1000, (1ull << 32) - 1000,
                                           (1ull << 63) - 1000, UINT64_MAX - 200'000));

TEST_P(shm_channels, carry_bytes_in_order_past_the_end_of_the_ring) {
    both pair(GetParam());
    testing::pattern sent(1);
    testing::pattern got(1);
    random_generator dice(testing::seed_of_this_run());
    bool wakes = false;
    std::vector<std::byte> buffer(ring);
    for (int i = 0; i < 500; ++i) {
        const auto bytes = sent.next(1 + dice.below(900));
        std::size_t done = 0;
        while (done < bytes.size()) {
            done += must(pair.first->write(const_bytes(bytes).subspan(done), wakes));
            const std::size_t size = must(pair.second->read(buffer, wakes));
            ASSERT_TRUE(got.continues_with(const_bytes(buffer).first(size)));
        }
    }
    EXPECT_EQ(got.position(), sent.position());
    EXPECT_FALSE(wakes) << "neither side waits";
}

TEST_P(shm_channels, take_as_many_bytes_as_the_ring_has) {
    both pair(GetParam());
    bool wakes = false;
    const std::vector<std::byte> many(ring + 1);
    EXPECT_EQ(must(pair.first->write(many, wakes)), ring);
    EXPECT_EQ(must(pair.first->write(many, wakes)), 0u);
    EXPECT_EQ(must(pair.second->bytes()).size(), ring);
    pair.second->consume(1);
    EXPECT_EQ(must(pair.first->write(many, wakes)), 1u);
}

TEST_P(shm_channels, end_after_what_was_published) {
    both pair(GetParam());
    bool wakes = false;
    EXPECT_FALSE(must(pair.second->is_at_end()));
    must(pair.first->write(as_bytes("last"), wakes));
    pair.first->finish();
    EXPECT_FALSE(must(pair.second->is_at_end()));
    EXPECT_EQ(as_text(must(pair.second->bytes())), "last");
    pair.second->consume(4);
    EXPECT_TRUE(must(pair.second->is_at_end()));
    EXPECT_TRUE(must(pair.second->is_at_end())) << "for ever";
}

TEST(shm_channel, wakes_a_reader_once_each_time_that_it_sleeps) {
    both pair;
    EXPECT_FALSE(pair.first->publish());
    pair.second->arm_reader();
    EXPECT_TRUE(pair.first->publish());
    EXPECT_FALSE(pair.first->publish());
    pair.second->arm_reader();
    EXPECT_TRUE(pair.first->publish()) << "it sleeps again";
    pair.second->arm_reader();
    pair.second->disarm_reader();
    EXPECT_FALSE(pair.first->publish());
    pair.second->arm_reader();
    EXPECT_TRUE(pair.first->finish());
}

TEST(shm_channel, wakes_a_writer_that_waits_for_room) {
    both pair;
    bool wakes = false;
    const std::vector<std::byte> many(ring);
    must(pair.first->write(many, wakes));
    pair.first->arm_writer();
    EXPECT_TRUE(pair.use(ring)) << "so much room is seen at once";
    must(pair.first->write(many, wakes));
    pair.first->arm_writer();
    EXPECT_FALSE(pair.use(1)) << "a little is owed";
    EXPECT_TRUE(pair.second->settle()) << "until the reader has nothing more to do";
    pair.first->arm_writer();
    EXPECT_FALSE(pair.use(1));
    EXPECT_TRUE(pair.second->arm_reader()) << "or sleeps itself";
    pair.second->disarm_reader();
    pair.first->arm_writer();
    std::size_t before_wake = 0;
    while (!pair.use(1)) ++before_wake;
    EXPECT_LE(before_wake, ring / 4) << "or has read a quarter";
}

TEST(shm_channel, refuses_positions_that_cannot_be) {
    for (const std::uint64_t tail : {std::uint64_t{1}, UINT64_MAX, std::uint64_t{ring + 1}}) {
        both pair;
        pair.set(EDDY_SHM_TAIL, tail);  // nothing was written
        EXPECT_EQ(error_of(pair.first->room(ring + 1)), errno_code(ECONNRESET)) << tail;
    }
    for (const std::uint64_t head : {std::uint64_t{ring + 1}, UINT64_MAX, std::uint64_t{1} << 63}) {
        both pair;
        pair.set(EDDY_SHM_HEAD, head);
        EXPECT_EQ(error_of(pair.first->bytes()), errno_code(ECONNRESET)) << head;
    }
    both backwards;
    bool wakes = false;
    must(backwards.second->write(as_bytes("abc"), wakes));
    EXPECT_EQ(must(backwards.first->all_bytes()).size(), 3u);
    backwards.set(EDDY_SHM_HEAD, 2);
    EXPECT_EQ(error_of(backwards.first->all_bytes()), errno_code(ECONNRESET));
    both ended;
    ended.set(EDDY_SHM_END, 5);
    EXPECT_EQ(error_of(ended.first->is_at_end()), errno_code(ECONNRESET));
}

TEST(shm_channel, survives_random_words_of_its_peer) {
    random_generator dice(testing::seed_of_this_run());
    for (int round = 0; round < 300; ++round) {
        both pair(dice.below(1u << 20));
        std::array<std::byte, 5000> buffer{};
        bool wakes = false;
        for (int step = 0; step < 50; ++step) {
            const std::size_t words[] = {EDDY_SHM_HEAD, EDDY_SHM_TAIL, EDDY_SHM_READER,
                                         EDDY_SHM_END, EDDY_SHM_CPU};
            const std::size_t word = words[dice.below(std::size(words))];
            const std::uint64_t near = pair.hostile_header[word / 8] + dice.below(4000) - 1000;
            pair.set(word, dice.chance(0.8) ? near : dice());
            // Each of these yields bytes inside of the rings, or an error.
            static_cast<void>(pair.first->read(buffer, wakes));
            static_cast<void>(pair.first->write(buffer, wakes));
            static_cast<void>(pair.first->is_at_end());
            static_cast<void>(pair.first->arm_reader());
            pair.first->arm_writer();
        }
    }
}

/// Two threads that sleep and wake each other; a lost wake-up hangs the test.
void exchange_between_threads(bool is_asymmetric) {
    both pair(0, is_asymmetric);
    constexpr std::uint64_t total = 8 * 1024 * 1024;
    std::atomic<std::uint32_t> writer_bell{0};
    std::atomic<std::uint32_t> reader_bell{0};
    const auto ring_bell = [](std::atomic<std::uint32_t>& bell) {
        bell.fetch_add(1);
        bell.notify_one();
    };
    std::thread writing([&] {
        testing::pattern content(3);
        random_generator dice(5);
        std::uint64_t left = total;
        while (left > 0) {
            const auto bytes = content.next(std::min<std::uint64_t>(left, 1 + dice.below(20'000)));
            left -= bytes.size();
            for (std::size_t done = 0; done < bytes.size();) {
                bool wakes = false;
                std::size_t size = must(pair.first->write(const_bytes(bytes).subspan(done), wakes));
                if (size == 0) {
                    const std::uint32_t seen = writer_bell.load();
                    pair.first->arm_writer();
                    size = must(pair.first->write(const_bytes(bytes).subspan(done), wakes));
                    if (size == 0) writer_bell.wait(seen);
                    pair.first->disarm_writer();
                }
                done += size;
                if (wakes) ring_bell(reader_bell);
            }
        }
    });
    testing::pattern content(3);
    std::vector<std::byte> buffer(7000);
    std::uint64_t received = 0;
    while (received < total) {
        bool wakes = false;
        std::size_t size = must(pair.second->read(buffer, wakes));
        if (size == 0) {
            const std::uint32_t seen = reader_bell.load();
            if (pair.second->arm_reader()) ring_bell(writer_bell);
            size = must(pair.second->read(buffer, wakes));
            if (size == 0) reader_bell.wait(seen);
            pair.second->disarm_reader();
        }
        if (wakes) ring_bell(writer_bell);
        if (!content.continues_with(const_bytes(buffer).first(size))) {
            ADD_FAILURE() << "other bytes behind " << received;
            break;
        }
        received += size;
    }
    writing.join();
    EXPECT_EQ(received, total);
}

TEST(shm_channel, loses_no_wakeup_between_threads) { exchange_between_threads(false); }

TEST(shm_channel, loses_no_wakeup_with_asymmetric_fences) {
    if (!has_asymmetric_fence()) GTEST_SKIP() << "this kernel has no membarrier(2)";
    exchange_between_threads(true);
}

// ---- pages that were published without having been written

constexpr std::size_t large_ring = 4 * written_pages::small_ring;

/// A kernel before Linux 6.5, or a sandbox, has no cachestat(2).
bool can_check() {
    const unique_fd file(::memfd_create("test", MFD_CLOEXEC));
    std::uint64_t range[2] = {0, 4096};
    std::uint64_t counts[5];
    return ::syscall(451, file.get(), range, counts, 0U) == 0;
}

class shm_written_pages : public ::testing::TestWithParam<std::uint64_t> {
protected:
    void SetUp() override {
        if (!can_check()) GTEST_SKIP() << "no cachestat(2)";
    }
    std::size_t used() const {
        struct stat info{};
        EXPECT_EQ(::fstat(file.get(), &info), 0);
        return static_cast<std::size_t>(info.st_blocks) * 512;
    }
    void write(std::uint64_t from, std::uint64_t to) const {
        for (; from < to; ++from) own.ring()[from % large_ring] = std::byte{1};
    }
    written_pages checked(std::uint64_t begin) const {
        return {unique_fd(::dup(file.get())), begin, large_ring};
    }

    unique_fd file;
    memory own = must(memory::create(large_ring, file));
};
// Also where the first page is that of the last bytes, too, and where the first bytes wrap.
INSTANTIATE_TEST_SUITE_P(shm, shm_written_pages,
                         ::testing::Values(0, 100, large_ring - 100, (1ull << 63) - 5000));

TEST_P(shm_written_pages, are_those_of_the_bytes_so_far) {
    const std::uint64_t begin = GetParam();
    written_pages pages = checked(begin);
    const std::size_t before = used();
    EXPECT_FALSE(pages.reach(begin + 1));
    EXPECT_FALSE(pages.reach(begin + large_ring));
    EXPECT_EQ(used(), before) << "the check allocates none";
    std::uint64_t end = begin;
    while (end < begin + large_ring) {
        write(end, end + 5000);
        end += 5000;
        EXPECT_TRUE(pages.reach(end));
        if (end + 8192 < begin + large_ring) EXPECT_FALSE(pages.reach(end + 8192));
    }
    EXPECT_EQ(pages.known(), UINT64_MAX) << "all there are";
    EXPECT_TRUE(pages.reach(UINT64_MAX - 1));
}

TEST_P(shm_written_pages, may_be_written_at_once) {
    const std::uint64_t begin = GetParam();
    write(begin, begin + large_ring);
    written_pages pages = checked(begin);
    EXPECT_TRUE(pages.reach(begin + large_ring));
    EXPECT_EQ(pages.known(), UINT64_MAX);
}

TEST(shm_rings, that_are_small_are_not_checked) {
    EXPECT_EQ(written_pages().known(), UINT64_MAX);
    unique_fd file;
    const memory own = must(memory::create(written_pages::small_ring, file));
    EXPECT_EQ(written_pages(std::move(file), 0, written_pages::small_ring).known(), UINT64_MAX);
}

TEST(shm_rings, with_pages_that_were_published_and_not_written_end_the_connection) {
    if (!can_check()) GTEST_SKIP() << "no cachestat(2)";
    connection_options large;
    large.ring_size = large_ring;
    auto ends = must(connection::pair(large));
    must(ends.first.write_all(as_bytes("hello")));
    std::vector<std::byte> buffer(5);
    must(ends.second.read_exactly(buffer));
    must(ends.first.room());
    ends.first.append(large_ring / 2);
    must(ends.first.flush());
    EXPECT_EQ(error_of(ends.second.read_some(buffer)), errno_code(ECONNRESET));
}

TEST(shm_rings, that_are_large_hold_a_descriptor_for_one_lap) {
    if (!can_check()) GTEST_SKIP() << "no cachestat(2)";
    connection_options large;
    large.ring_size = large_ring;
    auto ends = must(connection::pair(large));
    const std::size_t before = testing::open_descriptors();
    const auto send = [](connection& from, connection& to) {
        std::vector<std::byte> sent(large_ring + 100'000, std::byte{7});
        std::vector<std::byte> got(sent.size());
        std::thread sending([&] { must(from.write_all(sent)); });
        must(to.read_exactly(got));
        sending.join();
        EXPECT_EQ(sent, got);
    };
    send(ends.first, ends.second);
    send(ends.second, ends.first);
    EXPECT_EQ(testing::open_descriptors(), before - 2);
}

}  // namespace
}  // namespace eddy::shm
