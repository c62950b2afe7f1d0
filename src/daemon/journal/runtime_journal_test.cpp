// Tests of the journal: the ring of lines at its limits, and following it.
#include "daemon/journal/runtime_journal.hpp"

#include <eddy/io/scope.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace eddy::daemon {
namespace {

class runtime_journal_test : public testing::Test {
protected:
    runtime_journal_test() {
        loop_options options;
        options.kind = io_backend_kind::epoll;
        loop_ = std::move(*loop::create(options));
        journal_ = std::make_shared<runtime_journal>(*loop_);
    }
    std::unique_ptr<loop> loop_;
    std::shared_ptr<runtime_journal> journal_;
};

TEST_F(runtime_journal_test, keeps_lines_in_order) {
    journal_->write("one");
    journal_->write("two\n");
    const auto lines = journal_->read(0, 10);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0].text, "one");
    EXPECT_EQ(lines[1].text, "two");
    EXPECT_EQ(lines[1].number, 2U);
}

TEST_F(runtime_journal_test, reads_the_newest_where_there_are_more) {
    for (int i = 1; i <= 5; ++i) journal_->write(std::to_string(i));
    const auto lines = journal_->read(0, 2);
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0].text, "4");
    EXPECT_EQ(journal_->read(4, 10).size(), 1U);
    EXPECT_TRUE(journal_->read(5, 10).empty());
    EXPECT_TRUE(journal_->read(0, 0).empty());
}

TEST_F(runtime_journal_test, what_could_drive_a_terminal_is_escaped) {
    journal_->write("\u009b2J \x9b \u202e größe\t\x1b");
    EXPECT_EQ(journal_->read(0, 1).at(0).text, "\\xc2\\x9b2J \\x9b \\xe2\\x80\\xae größe \\x1b");
}

TEST_F(runtime_journal_test, a_long_line_is_cut_between_characters) {
    constexpr std::size_t limit = runtime_journal::line_bytes_limit;
    journal_->write(std::string(limit - 2, 'x') + "ä");
    EXPECT_EQ(journal_->read(0, 1).at(0).text.size(), limit);
    journal_->write(std::string(limit - 4, 'x') + "ääää");
    EXPECT_EQ(journal_->read(1, 1).at(0).text, std::string(limit - 4, 'x') + "...");
    journal_->write(std::string(limit - 2, 'x') + "\x1b");
    EXPECT_EQ(journal_->read(2, 1).at(0).text, std::string(limit - 3, 'x') + "...");
}

TEST_F(runtime_journal_test, forgets_the_oldest_line_at_the_limit) {
    for (std::size_t i = 1; i <= runtime_journal::line_limit + 1; ++i)
        journal_->write(std::to_string(i));
    const auto lines = journal_->read(0, 10'000);
    EXPECT_EQ(lines.size(), runtime_journal::line_limit);
    EXPECT_EQ(lines.front().text, "2");
}

TEST_F(runtime_journal_test, keeps_within_its_bytes) {
    const std::string long_line(runtime_journal::line_bytes_limit / 2, 'x');
    for (int i = 0; i < 500; ++i) journal_->write(long_line);
    std::size_t bytes = 0;
    for (const auto& line : journal_->read(0, 10'000)) bytes += line.text.size();
    EXPECT_LE(bytes, runtime_journal::byte_limit);
    EXPECT_GE(bytes, runtime_journal::byte_limit - long_line.size());
}

TEST_F(runtime_journal_test, cuts_a_long_line) {
    journal_->write(std::string(100'000, 'x'));
    const auto lines = journal_->read(0, 1);
    EXPECT_EQ(lines[0].text.size(), runtime_journal::line_bytes_limit);
    EXPECT_TRUE(lines[0].text.ends_with("..."));
}

TEST_F(runtime_journal_test, lets_no_output_forge_a_line_or_drive_a_terminal) {
    journal_->write("a\r\x1b[31mred\x7f");
    EXPECT_EQ(journal_->read(0, 1)[0].text, "a\\x0d\\x1b[31mred\\x7f");
    journal_->write("two\nlines");
    EXPECT_EQ(journal_->read(1, 10).size(), 2U);
}

TEST(journal_time, reads_what_journals_have_and_what_people_shorten_it_to) {
    using namespace std::chrono;
    const auto day = sys_days(year(2026) / 11 / 21);
    const std::pair<std::string_view, system_clock::time_point> good[] = {
        {"2026-11-21", day},
        {"2026-11-21Z", day},
        {"2026-11-21T21:22", day + hours(21) + minutes(22)},
        {"2026-11-21 21:22:04", day + hours(21) + minutes(22) + seconds(4)},
        {"2026-11-21T21:22:04.123Z", day + hours(21) + minutes(22) + milliseconds(4123)},
        {"1970-01-01", sys_days(year(1970) / 1 / 1)}};
    for (const auto& [text, when] : good) EXPECT_EQ(parse_journal_time(text), when) << text;
    for (const std::string_view text :
         {"", "Z", "2026", "10m", "2026-11-31", "2026-11-21T24:00", "2026-11-21T21:60",
          "2026-11-21x21:22", "2026-11-21T21:22:04.12", "2026-11-21T21:22:04.123+01:00",
          "1969-12-31", "9999-01-01", "2026-1-021"})
        EXPECT_FALSE(parse_journal_time(text)) << text;
}

TEST(journal_time, a_line_is_read_as_it_was_written) {
    const auto when = parse_journal_time("2026-11-21T21:22:04.123Z");
    ASSERT_TRUE(when);
    const std::string text = format_journal_line({7, *when, "started on 127.0.0.1:1 "});
    EXPECT_EQ(text, "2026-11-21T21:22:04.123Z started on 127.0.0.1:1 \n");
    const auto read = parse_journal_line(std::string_view(text).substr(0, text.size() - 1));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->when, *when);
    EXPECT_EQ(read->text, "started on 127.0.0.1:1 ");
    for (const std::string_view wrong : {"", "x y", "2026-11-21T21:22:04.123 y", "10m y"})
        EXPECT_FALSE(parse_journal_line(wrong)) << wrong;
}

/// The reader of a followed journal, which takes a piece when it is asked to.
class piecewise_reader final : public http::body_writer {
public:
    task<result<>> write(std::string_view piece) override {
        if (piece.empty()) co_return result<>();
        text += piece;
        arrived_.set();
        const auto taken = co_await taken_.wait();
        taken_.reset();
        co_return taken;
    }
    /// Awaits a piece; the follower waits until take().
    task<void> next() {
        static_cast<void>(co_await arrived_.wait());
        arrived_.reset();
    }
    void take() { taken_.set(); }

    std::string text;
    bool has_ended = false;

private:
    event arrived_;
    event taken_;
};

class journal_follower_test : public runtime_journal_test {
protected:
    using steps = std::function<task<void>(piecewise_reader&)>;

    /// Runs `body` beside a follower of the journal, which is cancelled then.
    void follow(std::size_t tail, steps body) { follow(journal_part{.tail = tail}, body); }
    void follow(journal_part part, steps body) { loop_->run(lead(part, body)); }

private:
    task<void> lead(journal_part part, steps& body) {
        const auto follower = follow_journal(journal_, part);
        piecewise_reader reader;
        scope following(co_await current_source());
        following.spawn(run(*follower, reader));
        co_await body(reader);
        following.cancel();
        co_await following.join();
    }
    static task<void> run(http::body_producer& follower, piecewise_reader& reader) {
        const auto ended = co_await follower.produce(reader);
        reader.has_ended = ended.has_value();
    }
};

TEST_F(journal_follower_test, gets_what_another_thread_writes) {
    journal_->write("before");
    follow(10, [this](piecewise_reader& reader) -> task<void> {
        co_await reader.next();
        EXPECT_NE(reader.text.find("before"), std::string::npos);
        std::thread writer([journal = journal_] { journal->write("after"); });
        reader.take();
        co_await reader.next();
        writer.join();
        EXPECT_NE(reader.text.find("after"), std::string::npos);
    });
}

TEST_F(journal_follower_test, begins_with_the_next_line_without_a_tail) {
    journal_->write("before");
    follow(0, [this](piecewise_reader& reader) -> task<void> {
        journal_->write("after");
        co_await reader.next();
        EXPECT_EQ(reader.text.find("before"), std::string::npos);
        EXPECT_NE(reader.text.find("after"), std::string::npos);
    });
}

TEST_F(journal_follower_test, begins_with_what_came_since_and_goes_on) {
    journal_->write("before");
    journal_part part;
    part.tail = 10;
    part.since = std::chrono::system_clock::now() + std::chrono::hours(1);
    follow(part, [this](piecewise_reader& reader) -> task<void> {
        journal_->write("after");
        co_await reader.next();
        EXPECT_EQ(reader.text.find("before"), std::string::npos);
        EXPECT_NE(reader.text.find("after"), std::string::npos);
    });
}

TEST_F(journal_follower_test, says_how_many_lines_a_slow_reader_missed) {
    journal_->write("first");
    follow(10, [this](piecewise_reader& reader) -> task<void> {
        co_await reader.next();
        for (std::size_t i = 0; i < runtime_journal::line_limit + 7; ++i) journal_->write("more");
        reader.text.clear();
        reader.take();
        co_await reader.next();
        EXPECT_NE(reader.text.find("7 lines are lost"), std::string::npos)
            << reader.text.substr(0, 200);
    });
}

TEST_F(journal_follower_test, ends_when_the_journal_closes) {
    journal_->close();
    follow(10, [](piecewise_reader& reader) -> task<void> {
        EXPECT_TRUE(reader.has_ended);
        EXPECT_EQ(reader.text, "");
        co_return;
    });
}

}  // namespace
}  // namespace eddy::daemon
