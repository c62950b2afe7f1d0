// channel<T>: a bounded queue between coroutines of one loop.
//
// A sender waits while the channel is full and a receiver while it is empty, so a fast producer is
// held back instead of growing the queue. Both sides are served in the order in which they came.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/intrusive_list.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/operation.hpp>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace eddy {

template <class T>
class channel;

/// Waits until a channel has room for a value.
template <class T>
class send_operation final : public operation, public list_link<channel<T>> {
public:
    /// select() takes it.
    using keeps_when_withdrawn = void;

    send_operation(channel<T>& to, T value) : channel_(&to), value_(std::move(value)) {}
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<> take_result() const noexcept {
        if (error_) return fail(error_);
        return {};
    }

private:
    friend class channel<T>;
    bool start() override { return channel_->start(*this); }
    void on_cancel() noexcept override {
        list_link<channel<T>>::unlink();
        finish(errc::cancelled);
    }
    void finish(std::error_code error) noexcept {
        error_ = error;
        complete_later();
    }

    channel<T>* channel_;
    T value_;
    std::error_code error_;
};

/// Waits until a channel has a value.
template <class T>
class receive_operation final : public operation, public list_link<channel<T>> {
public:
    /// select() takes it.
    using keeps_when_withdrawn = void;

    explicit receive_operation(channel<T>& from) noexcept : channel_(&from) {}
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<T> take_result() {
        if (error_) return fail(error_);
        return std::move(*value_);
    }

private:
    friend class channel<T>;
    bool start() override { return channel_->start(*this); }
    void on_cancel() noexcept override {
        list_link<channel<T>>::unlink();
        finish(errc::cancelled);
    }
    void finish(std::error_code error) noexcept {
        error_ = error;
        complete_later();
    }

    channel<T>* channel_;
    std::optional<T> value_;
    std::error_code error_;
};

/// Any number of coroutines may send and receive; the channel must outlive their waits. Moving a T
/// must not throw. One loop's thread.
template <class T>
class channel {
public:
    /// Holds at most `limit` values, at least 1. Their memory is taken now.
    explicit channel(std::size_t limit) : slots_(limit) {
        EDDY_PRECONDITION(limit > 0, "a channel of no value: its limit is at least 1");
    }
    channel(const channel&) = delete;
    channel& operator=(const channel&) = delete;
    ~channel() {
        EDDY_PRECONDITION(
            senders_.empty() && receivers_.empty(),
            "a channel was destroyed while a coroutine sends or receives: await that first");
    }

    /// Most values in it.
    std::size_t limit() const noexcept { return slots_.size(); }
    /// Values in it now.
    std::size_t size() const noexcept { return count_; }
    /// True once close() was called; values may still be in it.
    bool closed() const noexcept { return closed_; }

    /// Awaits room and puts `value` in. Yields a result<>: after errc::closed or errc::cancelled
    /// the value is dropped.
    awaiting<send_operation<T>> send(T value) {
        return awaiting<send_operation<T>>(*this, std::move(value));
    }

    /// Puts `value` in now. errc::limit_reached when the channel is full, errc::closed; `value` is
    /// left as it was then.
    [[nodiscard]] result<> try_send(T&& value) {
        if (closed_) return fail(errc::closed);
        if (count_ == slots_.size()) return fail(errc::limit_reached);
        accept(std::move(value));
        return {};
    }

    /// Awaits the oldest value. Yields a result<T>: errc::closed when the channel is closed and
    /// empty, or errc::cancelled, which takes no value.
    awaiting<receive_operation<T>> receive() { return awaiting<receive_operation<T>>(*this); }

    /// The oldest value now, without waiting. errc::closed when the channel is closed and empty,
    /// EAGAIN when it is empty.
    [[nodiscard]] result<T> try_receive() {
        if (count_ > 0) return *take();
        if (closed_) return fail(errc::closed);
        return fail(std::errc::resource_unavailable_try_again);
    }

    /// Ends the waits of senders and receivers with errc::closed. Values that are in the channel
    /// can still be received.
    void close() noexcept {
        closed_ = true;
        while (!senders_.empty()) senders_.pop_front().finish(errc::closed);
        while (!receivers_.empty()) receivers_.pop_front().finish(errc::closed);
    }

private:
    friend class send_operation<T>;
    friend class receive_operation<T>;

    bool start(send_operation<T>& op) {
        if (closed_) {
            op.error_ = errc::closed;
            return true;
        }
        if (count_ == slots_.size()) {
            senders_.push_back(op);
            return false;
        }
        accept(std::move(op.value_));
        return true;
    }

    bool start(receive_operation<T>& op) {
        if (count_ == 0) {
            if (closed_) {
                op.error_ = errc::closed;
                return true;
            }
            receivers_.push_back(op);
            return false;
        }
        op.value_ = take();
        return true;
    }

    /// The oldest value; there must be one. The first sender that waits puts its own in: it
    /// precedes senders that come later.
    std::optional<T> take() {
        std::optional<T> oldest = std::exchange(slots_[first_], std::nullopt);
        first_ = (first_ + 1) % slots_.size();
        --count_;
        if (!senders_.empty()) {
            send_operation<T>& next = senders_.pop_front();
            accept(std::move(next.value_));
            next.complete_later();
        }
        return oldest;
    }

    /// Takes a value when there is room: a receiver that waits gets it directly.
    void accept(T&& value) {
        if (!receivers_.empty()) {
            receive_operation<T>& next = receivers_.pop_front();
            next.value_.emplace(std::move(value));
            next.complete_later();
            return;
        }
        slots_[(first_ + count_) % slots_.size()].emplace(std::move(value));
        ++count_;
    }

    std::vector<std::optional<T>> slots_;  // a ring
    std::size_t first_ = 0;
    std::size_t count_ = 0;
    bool closed_ = false;
    intrusive_list<send_operation<T>, channel<T>> senders_;
    intrusive_list<receive_operation<T>, channel<T>> receivers_;
};

}  // namespace eddy
