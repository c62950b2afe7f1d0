// Observer of a socket bank and readers of its peers, for its tests.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "io/socket_bank/socket_bank.hpp"
#include "io/testing.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace eddy::testing {

/// Records what a bank reports; waits for it.
class recorder final : public bank_observer {
public:
    void on_written(std::uint32_t slot, int result) noexcept override {
        EXPECT_FALSE(in_call);
        ++writes;
        written[slot].push_back(result);
        if (after_write) after_write(slot, result);
        changed.set();
    }
    void on_hangup(std::uint32_t slot) noexcept override {
        EXPECT_FALSE(in_call);
        hangups.push_back(slot);
        if (after_hangup) after_hangup(slot);
        changed.set();
    }
    void on_closed(std::uint32_t slot) noexcept override {
        EXPECT_FALSE(in_call);
        closed.push_back(slot);
        if (after_close) after_close(slot);
        changed.set();
    }

    bool has_hung_up(std::uint32_t slot) const {
        return std::find(hangups.begin(), hangups.end(), slot) != hangups.end();
    }

    task<void> wait(std::function<bool()> reached) {
        while (!reached()) {
            changed.reset();
            if (auto more = co_await changed.wait(); !more) throw std::runtime_error("cancelled");
        }
    }
    task<void> wait_writes(std::size_t count) {
        return wait([this, count] { return writes >= count; });
    }
    task<void> wait_closed(std::size_t count) {
        return wait([this, count] { return closed.size() >= count; });
    }
    task<void> wait_hangups(std::size_t count) {
        return wait([this, count] { return hangups.size() >= count; });
    }

    std::size_t writes = 0;
    std::map<std::uint32_t, std::vector<int>> written;
    std::vector<std::uint32_t> hangups;
    std::vector<std::uint32_t> closed;
    std::function<void(std::uint32_t, int)> after_write;
    std::function<void(std::uint32_t)> after_hangup;
    std::function<void(std::uint32_t)> after_close;
    bool in_call = false;  // of a function that reports nothing
    event changed;
};

/// A bank that checks that nothing is reported from within add(), write() and close().
class checked_bank {
public:
    checked_bank(const socket_bank_options& options, recorder& to)
        : seen_(&to), bank_(must(socket_bank::open(options, to))) {}
    checked_bank(std::uint32_t capacity, recorder& to)
        : seen_(&to), bank_(must(socket_bank::open(capacity, to))) {}

    result<std::uint32_t> add(stream connection) {
        const quiet here(*seen_);
        if (bank_->kind() == io_backend_kind::sim) return bank_->add(std::move(connection));
        return bank_->add(must(connection.detach()));
    }
    result<std::uint32_t> add(unique_fd socket) {
        const quiet here(*seen_);
        return bank_->add(std::move(socket));
    }
    void write(std::uint32_t slot, const_bytes bytes) {
        const quiet here(*seen_);
        bank_->write(slot, bytes);
    }
    void write(std::uint32_t slot, std::string_view text) { write(slot, as_bytes(text)); }
    void close(std::uint32_t slot) {
        const quiet here(*seen_);
        bank_->close(slot);
    }
    /// As close(), by a reset.
    void break_off(std::uint32_t slot) {
        const quiet here(*seen_);
        bank_->reset(slot);
    }
    void flush() { bank_->flush(); }
    std::uint32_t size() const { return bank_->size(); }
    io_backend_kind kind() const { return bank_->kind(); }
    void reset() { bank_.reset(); }

private:
    struct quiet {
        explicit quiet(recorder& of) : seen(of), before(std::exchange(of.in_call, true)) {}
        ~quiet() { seen.in_call = before; }
        recorder& seen;
        bool before;
    };

    recorder* seen_;
    std::unique_ptr<socket_bank> bank_;
};

/// Reads `size` bytes and compares them with the next ones of the pattern.
inline task<void> expect_pattern(stream& from, pattern& expected, std::size_t size) {
    std::vector<std::byte> bytes(size);
    must(co_await from.read_exactly(bytes));
    EXPECT_TRUE(expected.continues_with(bytes));
}

inline task<void> expect_text(stream& from, std::string text) {
    std::vector<std::byte> bytes(text.size());
    must(co_await from.read_exactly(bytes));
    EXPECT_EQ(as_text(bytes), text);
}

/// Reads to the end; how many bytes came, and what the end was.
struct rest {
    std::size_t size = 0;
    std::error_code end;
};
inline task<rest> read_rest(stream& from) {
    rest seen;
    while (!seen.end) {
        auto got = co_await from.read();
        if (got)
            seen.size += got->size();
        else
            seen.end = got.error();
    }
    co_return seen;
}

/// More than the sockets and their peers hold.
inline constexpr std::size_t more_than_fits = 32 * 1024 * 1024;

}  // namespace eddy::testing
