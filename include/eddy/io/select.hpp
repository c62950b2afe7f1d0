// select: the first of several operations to complete. The others have no effect.
//
//     auto first = co_await select(jobs.receive(), stopped.wait());
//     if (first.index() == 1) co_return 0;  // stopped
//     result<int> next = std::get<0>(first);
//
// It is the `select` of Go and Tokio: of two channels that have values, one keeps its value.
// when_any() (when.hpp) runs tasks, and drops what the others yield. One loop's thread.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/operation.hpp>

#include <array>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace eddy {
namespace detail {

/// The wait of select(). It registers its arms in order. The first completion decides, and
/// withdraws the other arms before any other code runs.
class select_base : public operation {
public:
    void set_error(std::error_code error) noexcept final;

protected:
    select_base() noexcept = default;
    ~select_base() = default;

    template <class Op>
    static Op& operation_of(awaiting<Op>& arm) noexcept {
        return arm.op_;
    }
    void set_arms(operation* const* arms, std::size_t count) noexcept {
        arms_ = arms;
        count_ = count;
    }
    std::size_t winner() const noexcept { return winner_; }

private:
    friend class eddy::operation;
    static constexpr std::size_t none = SIZE_MAX;

    bool start() final;
    void on_cancel() noexcept final;
    void on_arm_completed(operation& arm) noexcept;
    void withdraw() noexcept;

    operation* const* arms_ = nullptr;
    std::size_t count_ = 0;
    std::size_t started_ = 0;    // the arms before it have been started
    std::size_t winner_ = none;  // known from the first completion on
    bool suspended_ = false;
};

template <class Work>
inline constexpr bool is_selectable = false;
/// Operations with a member type `keeps_when_withdrawn`: a cancellation completes them inside the
/// call, and leaves what they wait for to the next one.
template <class Op>
    requires requires { typename Op::keeps_when_withdrawn; }
inline constexpr bool is_selectable<awaiting<Op>> = true;

}  // namespace detail

/// An operation that select() takes: channel::receive() and send(), event::wait(),
/// semaphore::acquire(), async_mutex::lock(), loop::sleep_for() and sleep_until(), stream::read()
/// and read_some(), listener::accept(), datagram::receive(), future::wait().
template <class Work>
concept selectable = detail::is_selectable<std::remove_cvref_t<Work>>;

namespace detail {

template <class... Op>
class select_operation final : public select_base {
public:
    using outcome = std::variant<decltype(std::declval<Op&>().take_result())...>;

    explicit select_operation(awaiting<Op>&... arms) noexcept
        : operations_{&operation_of(arms)...}, arms_(operations_of(operations_)) {
        set_arms(arms_.data(), arms_.size());
    }

    outcome take_result() { return take(std::index_sequence_for<Op...>()); }

private:
    static std::array<operation*, sizeof...(Op)> operations_of(
        const std::tuple<Op*...>& from) noexcept {
        return std::apply(
            [](Op*... each) { return std::array<operation*, sizeof...(Op)>{each...}; }, from);
    }

    template <std::size_t Index>
    outcome take_of() {
        return outcome(std::in_place_index<Index>, std::get<Index>(operations_)->take_result());
    }
    template <std::size_t... Index>
    outcome take(std::index_sequence<Index...>) {
        using taker = outcome (select_operation::*)();
        static constexpr std::array<taker, sizeof...(Op)> takers{
            &select_operation::take_of<Index>...};
        return (this->*takers[winner()])();
    }

    std::tuple<Op*...> operations_;
    std::array<operation*, sizeof...(Op)> arms_;
};

/// Awaits operations that the caller's full expression keeps.
template <class... Op>
class [[nodiscard]] selecting {
public:
    using keeps_frame_memory = void;

    explicit selecting(awaiting<Op>&... arms) noexcept : arms_(arms...) {}
    selecting(const selecting&) = delete;
    selecting& operator=(const selecting&) = delete;

    auto operator co_await() && noexcept {
        return std::apply(
            [](awaiting<Op>&... arms) { return awaiting<select_operation<Op...>>(arms...); },
            arms_);
    }

private:
    std::tuple<awaiting<Op>&...> arms_;
};

}  // namespace detail

/// Awaits the first of the operations to complete, and withdraws the others: their values stay
/// where they are, in the channel, the socket or the semaphore, and what they would have sent is
/// not sent. Yields a std::variant of their results, whose index() says which was first. An error
/// is a result like others.
///
/// Where several are ready the first in order completes. When the caller is cancelled, the first
/// operation yields errc::cancelled. Await it in the expression that makes it; it allocates
/// nothing. One loop's thread.
template <class... Op>
    requires(sizeof...(Op) > 0 && (selectable<awaiting<Op>> && ...))
detail::selecting<Op...> select(awaiting<Op>&&... operations) noexcept {
    return detail::selecting<Op...>(operations...);
}

}  // namespace eddy
