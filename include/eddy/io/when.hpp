// Concurrent tasks: all of them, or the first to finish. One loop's thread.
//
//     auto [page, ad] = co_await when_all(fetch(page_uri), fetch(ad_uri));
//     auto winner = co_await when_any(read_reply(peer), wait_for_key());  // a std::variant
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace eddy {
namespace detail {

/// Representation of a task's value: void has none.
template <class T>
using value_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
task<value_of<T>> with_value(task<T> work) {
    if constexpr (std::is_void_v<T>) {
        co_await std::move(work);
        co_return std::monostate();
    } else {
        co_return co_await std::move(work);
    }
}

template <class T>
task<void> keep(task<T> work, std::optional<value_of<T>>& place) {
    place.emplace(co_await with_value(std::move(work)));
}

template <std::size_t Index, class T, class Winner>
task<void> keep_if_first(task<T> work, std::optional<Winner>& place, scope& race) {
    value_of<T> value = co_await with_value(std::move(work));
    if (place) co_return;
    place.emplace(std::in_place_index<Index>, std::move(value));
    race.cancel();
}

template <class... T, std::size_t... Index>
task<std::tuple<value_of<T>...>> when_all(std::index_sequence<Index...>, task<T>... work) {
    std::tuple<std::optional<value_of<T>>...> places;
    co_await join_scope([&](scope& all) -> task<void> {
        (all.spawn(keep(std::move(work), std::get<Index>(places))), ...);
        co_return;
    });
    co_return std::tuple<value_of<T>...>(std::move(*std::get<Index>(places))...);
}

template <class... T, std::size_t... Index>
task<std::variant<value_of<T>...>> when_any(std::index_sequence<Index...>, task<T>... work) {
    std::optional<std::variant<value_of<T>...>> winner;
    co_await join_scope([&](scope& race) -> task<void> {
        (race.spawn(keep_if_first<Index>(std::move(work), winner, race)), ...);
        co_return;
    });
    EDDY_ASSERT(winner.has_value());
    co_return std::move(*winner);
}

/// The type that `co_await std::move(work)` yields.
template <class Work>
auto value_awaited(Work&& work) {
    if constexpr (requires { std::move(work).operator co_await(); })
        return std::type_identity<decltype(std::move(work).operator co_await().await_resume())>();
    else
        return std::type_identity<decltype(work.await_resume())>();
}

/// An operation, such as `peer.read()`, or what with_timeout() makes of one: something that can
/// only be awaited in the expression that makes it.
template <class Work>
concept momentary = !std::is_reference_v<Work> && !is_task<Work> &&
                    requires(Work& work) { value_awaited(std::move(work)); };

template <class T>
task<T> as_task(task<T>&& work) {
    return std::move(work);
}
template <momentary Work>
auto as_task(Work&& work) -> task<typename decltype(value_awaited(std::move(work)))::type> {
    co_return co_await std::move(work);
}

/// Some of each, and not only tasks.
template <class... Work>
concept some_momentary = ((is_task<Work> || momentary<Work>) && ...) && (momentary<Work> || ...);

/// A task that refers to temporaries of the expression that makes it: awaited there, or nowhere.
template <class T>
class [[nodiscard]] momentary_task {
public:
    using keeps_frame_memory = void;

    explicit momentary_task(task<T> work) noexcept : work_(std::move(work)) {}
    momentary_task(const momentary_task&) = delete;
    momentary_task& operator=(const momentary_task&) = delete;

    auto operator co_await() && noexcept { return std::move(work_).operator co_await(); }

private:
    task<T> work_;
};
template <class T>
momentary_task(task<T>) -> momentary_task<T>;

}  // namespace detail

/// Runs all of `work` at once, on this loop, and yields their values in the same order, with
/// std::monostate for a task<void>. A result<> that is an error is a value like others and ends no
/// other task. An exception cancels the rest and comes out when they have ended. One loop's thread.
template <class... T>
    requires(sizeof...(T) > 0)
task<std::tuple<detail::value_of<T>...>> when_all(task<T>... work) {
    return detail::when_all(std::index_sequence_for<T...>(), std::move(work)...);
}

/// Runs all of `work` at once, on this loop, until the first has ended; then cancels the others and
/// awaits them. The variant's index() says which was first. What another one yields in spite of
/// its cancellation is dropped: a task that may hold something by then, such as bytes it has read,
/// must keep it elsewhere. An exception cancels the rest and comes out, even after a first value.
/// One loop's thread.
template <class... T>
    requires(sizeof...(T) > 0)
task<std::variant<detail::value_of<T>...>> when_any(task<T>... work) {
    return detail::when_any(std::index_sequence_for<T...>(), std::move(work)...);
}

/// The same where some are operations: `co_await when_all(peer.read(), other.read())`. Await it in
/// the expression that makes it.
template <class... Work>
    requires detail::some_momentary<Work...>
auto when_all(Work&&... work) {
    return detail::momentary_task(when_all(detail::as_task(std::move(work))...));
}

/// The same where some are operations: `co_await when_any(peer.read(), signals->next())`.
template <class... Work>
    requires detail::some_momentary<Work...>
auto when_any(Work&&... work) {
    return detail::momentary_task(when_any(detail::as_task(std::move(work))...));
}

}  // namespace eddy
