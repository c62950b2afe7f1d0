// Files that are sent without a copy: from the cache's sealed memory, and by sendfile(2).
#include "http/files/file_cache.hpp"
#include "http/files/file_content.hpp"
#include "http/files/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using testing::long_text;
using testing::must;

/// Keeps the last record.
class recorder final : public session_observer {
public:
    void enter(session_state) noexcept override {}
    void note(const exchange_record& what) override {
        last = what;
        last->request = nullptr;
    }
    bool is_ending() const noexcept override { return false; }

    std::optional<exchange_record> last;
};

class http_zero_copy : public testing::with_files {
protected:
    http_zero_copy() {
        limits_.write_time = 20s;
        limits_.idle_time = 20s;
        socket_buffer_ = 64 * 1024;  // so that most of a response waits for its reader
    }

    /// From the cache where `is_cached`, else by sendfile(2).
    void serve_from(bool is_cached) {
        static_options options;
        options.cache_bytes = is_cached ? 64 << 20 : 0;
        options.cache_time = 24h;
        options.sendfile = !is_cached;
        serve(options);
    }

    static task<void> serve_and_close(stream peer, request_handler& handler, session_limits limits,
                                      session_observer& observer) {
        co_await serve_observed(peer, handler, limits, observer);
    }

    /// Runs `body` with the client's end of a connection whose session is recorded.
    void with_recorder(recorder& records, steps body) {
        run([&]() -> task<void> {
            eddy::testing::connection both = co_await connect();
            tcp::socket_options small;
            small.send_buffer = small.receive_buffer = socket_buffer_;
            must(tcp::apply(both.client, small));
            must(tcp::apply(both.server, small));
            co_await join_scope([&](scope& serving) {
                serving.spawn(serve_and_close(std::move(both.server), handler_, limits_, records));
                return body(both.client);
            });
        });
    }
};

EDDY_HTTP_ON_EVERY_BACKEND(http_zero_copy);

/// Reads until `into` has `size` bytes, a little in each turn.
task<void> read_slowly(stream& from, std::string& into, std::size_t size) {
    while (into.size() < size) {
        const auto received = co_await from.read();
        if (!received) co_return;
        into += received->text();
        for (int turns = 0; turns < 5; ++turns) co_await loop::current().yield();
    }
}

constexpr std::size_t large = 900 * 1024 + 7;

TEST_P(http_zero_copy, a_slow_reader_gets_each_byte_and_all_are_counted) {
    const std::string content = long_text(large);
    write("a.bin", content);
    for (const bool is_cached : {true, false}) {
        serve_from(is_cached);
        recorder records;
        std::string answer;
        std::size_t head = 0;
        with_recorder(records, [&](stream& client) -> task<void> {
            // The second one comes from a filled cache, on the same connection.
            for (int i = 0; i < 2; ++i) {
                answer.clear();
                must(co_await client.write_all("GET /a.bin HTTP/1.1\r\nHost: x\r\n\r\n"));
                EXPECT_TRUE(co_await read_until(client, answer, "\r\n\r\n"));
                head = answer.find("\r\n\r\n") + 4;
                co_await read_slowly(client, answer, head + large);
                EXPECT_TRUE(answer.substr(head) == content);
            }
            client.close();
        });
        ASSERT_TRUE(records.last);
        EXPECT_TRUE(records.last->is_whole);
        EXPECT_EQ(records.last->content_bytes, large);
        EXPECT_EQ(records.last->bytes_out, answer.size());
    }
}

TEST_P(http_zero_copy, ranges_are_their_parts_of_the_file) {
    const std::string content = long_text(large);
    write("a.bin", content);
    for (const bool is_cached : {true, false}) {
        serve_from(is_cached);
        for (int i = 0; i < 2; ++i) {
            const std::string one = get("/a.bin", "Range: bytes=100001-800000\r\n");
            EXPECT_EQ(status_of(one), 206);
            EXPECT_TRUE(body_of(one) == content.substr(100'001, 700'000));
            const std::string rest = get("/a.bin", "Range: bytes=-100000\r\n");
            EXPECT_TRUE(body_of(rest) == content.substr(large - 100'000));
            const std::string two = get("/a.bin", "Range: bytes=0-99999,300000-599999\r\n");
            EXPECT_EQ(field_of(two, "Content-Length"), std::to_string(body_of(two).size()));
            EXPECT_NE(two.find("\r\n\r\n" + content.substr(0, 100'000) + "\r\n--"), two.npos);
            EXPECT_NE(two.find("\r\n\r\n" + content.substr(300'000, 300'000) + "\r\n--"), two.npos);
        }
    }
}

TEST_P(http_zero_copy, what_the_cache_holds_stays_as_it_was) {
    const std::string content = long_text(large);
    write("a.bin", content);
    serve_from(true);
    std::string answer;
    with_session([&](stream& client) -> task<void> {
        must(co_await client.write_all(
            "GET /a.bin HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        EXPECT_TRUE(co_await read_until(client, answer, "\r\n\r\n"));
        // In place, so that the kernel's memory of the file changes, too.
        const unique_fd file(::open((root() + "/a.bin").c_str(), O_WRONLY | O_CLOEXEC));
        const std::string other(large, '-');
        EXPECT_EQ(::pwrite(file.get(), other.data(), other.size(), 0), ssize_t{large});
        EXPECT_EQ(::ftruncate(file.get(), 1000), 0);
        co_await testing::with_server::read_all(client, answer);
        client.close();
    });
    EXPECT_TRUE(body_of(answer) == content);
}

TEST_P(http_zero_copy, a_file_that_shrinks_while_it_is_sent_cuts_the_connection) {
    const std::size_t size = 8 * 1024 * 1024;
    write("a.bin", long_text(size));
    serve_from(false);
    recorder records;
    std::string answer;
    with_recorder(records, [&](stream& client) -> task<void> {
        must(co_await client.write_all("GET /a.bin HTTP/1.1\r\nHost: x\r\n\r\n"));
        EXPECT_TRUE(co_await read_until(client, answer, "\r\n\r\n"));
        std::filesystem::resize_file(root() + "/a.bin", 0);
        co_await testing::with_server::read_all(client, answer);
        client.close();
    });
    EXPECT_LT(body_of(answer).size(), size);
    EXPECT_TRUE(long_text(size).starts_with(body_of(answer)));
    ASSERT_TRUE(records.last);
    EXPECT_FALSE(records.last->is_whole);
}

TEST_P(http_zero_copy, a_client_that_resets_ends_its_session) {
    if (simulated()) GTEST_SKIP() << "it has no option for resets";
    write("a.bin", long_text(large));
    for (const bool is_cached : {true, false}) {
        serve_from(is_cached);
        recorder records;
        with_recorder(records, [&](stream& client) -> task<void> {
            std::string answer;
            must(co_await client.write_all("GET /a.bin HTTP/1.1\r\nHost: x\r\n\r\n"));
            EXPECT_TRUE(co_await read_until(client, answer, "\r\n\r\n"));
            tcp::socket_options at_once;
            at_once.linger = 0s;
            must(tcp::apply(client, at_once));
            client.close();
        });
        ASSERT_TRUE(records.last);
        EXPECT_FALSE(records.last->is_whole);
        EXPECT_LT(records.last->content_bytes, large);
    }
}

TEST_P(http_zero_copy, a_client_that_takes_nothing_is_cut_in_time) {
    write("a.bin", long_text(large));
    limits_.write_time = 30ms;
    for (const bool is_cached : {true, false}) {
        serve_from(is_cached);
        recorder records;
        with_recorder(records, [&](stream& client) -> task<void> {
            must(co_await client.write_all("GET /a.bin HTTP/1.1\r\nHost: x\r\n\r\n"));
            while (!records.last) must(co_await here().sleep_for(1ms));
        });
        ASSERT_TRUE(records.last);
        EXPECT_FALSE(records.last->is_whole);
    }
}

TEST_P(http_zero_copy, what_is_not_in_memory_is_read_from_the_disk) {
    const std::string content = long_text(3 * large);
    write("a.bin", content);
    const unique_fd file(::open((root() + "/a.bin").c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::fsync(file.get()), 0);
    ASSERT_EQ(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
    serve_from(false);
    EXPECT_TRUE(body_of(get("/a.bin")) == content);
}

TEST(http_file_content, sealed_memory_cannot_change) {
    auto made = must(file_content::with_descriptor(100'000));
    const std::string text = long_text(100'000);
    text.copy(reinterpret_cast<char*>(made.room().data()), text.size());
    must(made.seal());
    const file_content kept = std::move(made);
    EXPECT_TRUE(kept.text() == text);
    ASSERT_GE(kept.descriptor(), 0);
    EXPECT_EQ(::pwrite(kept.descriptor(), "x", 1, 0), -1);
    EXPECT_EQ(errno, EPERM);
    EXPECT_EQ(::ftruncate(kept.descriptor(), 10), -1);
    char first = 0;
    EXPECT_EQ(::pread(kept.descriptor(), &first, 1, 99'999), 1);
    EXPECT_EQ(first, text.back());
}

TEST(http_file_content, a_cache_keeps_a_limited_number_of_descriptors) {
    file_cache cache(std::size_t{1} << 30);
    for (std::size_t i = 0; i < file_cache::descriptor_limit; ++i) {
        EXPECT_TRUE(cache.has_descriptor());
        auto each = std::make_shared<resource>();
        each->name = std::to_string(i);
        each->variants.emplace_back();
        auto content = must(file_content::with_descriptor(1000));
        must(content.seal());
        each->variants[0].content = std::make_shared<const file_content>(std::move(content));
        cache.insert(each);
        cache.recount(each);
    }
    EXPECT_FALSE(cache.has_descriptor());
    cache.erase("0");
    EXPECT_TRUE(cache.has_descriptor());
}

}  // namespace
}  // namespace eddy::http
