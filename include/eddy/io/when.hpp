// Concurrent tasks: all of them, or the first to finish. One loop's thread.
//
//     auto [page, ad] = co_await when_all(fetch(page_uri), fetch(ad_uri));
//     auto winner = co_await when_any(read_reply(peer), wait_for_key());  // a std::variant
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/select.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace eddy {
namespace detail {

/// Representation of a task's value: void has none.
template <class T>
using value_of = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

/// Source of an arm that was put under one: cancelled by that one, and by the end of its siblings.
class arm_source final : private cancel_hook {
public:
    arm_source(cancel_source& own, cancel_source& ended) noexcept : source_(&own) {
        if (ended.requested())
            source_.request();
        else
            ended.add(*this);
    }
    ~arm_source() { unlink(); }

    cancel_source& source() noexcept { return source_; }

private:
    void on_cancel() noexcept override { source_.request(); }

    cancel_source source_;
};

template <class T>
task<T> run_under_both(task<T> work, cancel_source& own, cancel_source& other) {
    arm_source both(own, other);
    co_return co_await std::move(work).under(both.source());
}

/// `work` under `source`. Where it was put under one before, either cancels it.
template <class T>
task<T> also_under(task<T> work, cancel_source& source) {
    cancel_source* const own = own_source::take(work);
    if (!own) return std::move(work).under(source);
    return run_under_both(std::move(work), *own, source);
}

/// Arms of one when_all() or when_any(). The scope's source reaches arms that inherit it, and
/// `ended` reaches arms that were put under sources of their own.
struct arms {
    void cancel() noexcept {
        children->cancel();
        ended.request();
    }

    scope* children = nullptr;
    cancel_source ended;
};

/// Runs one arm, and calls `keep` with its value. An exception cancels the others.
template <class T, class Keep>
task<void> run_arm(task<T> work, arms& all, Keep keep) {
    std::optional<arm_source> under;
    if (cancel_source* const own = own_source::take(work)) {
        under.emplace(*own, all.ended);
        work = std::move(work).under(under->source());
    }
    try {
        if constexpr (std::is_void_v<T>) {
            co_await std::move(work);
            keep(std::monostate());
        } else {
            keep(co_await std::move(work));
        }
    } catch (...) {
        all.cancel();
        throw;
    }
}

/// Runs `spawn(arms&)`, which spawns the arms, and awaits them.
template <class Spawn>
task<void> join_arms(Spawn spawn) {
    arms all;
    co_await join_scope([&](scope& children) -> task<void> {
        all.children = &children;
        try {
            spawn(all);
        } catch (...) {  // no memory for a frame
            all.cancel();
            throw;
        }
        co_return;
    });
}

template <class... T, std::size_t... Index>
task<std::tuple<value_of<T>...>> when_all(std::index_sequence<Index...>, task<T>... work) {
    std::tuple<std::optional<value_of<T>>...> places;
    co_await join_arms([&](arms& all) {
        const auto spawn = [&all](auto arm, auto& place) {
            all.children->spawn(run_arm(std::move(arm), all,
                                        [&place](auto value) { place.emplace(std::move(value)); }));
        };
        (spawn(std::move(work), std::get<Index>(places)), ...);
    });
    co_return std::tuple<value_of<T>...>(std::move(*std::get<Index>(places))...);
}

template <class... T, std::size_t... Index>
task<std::variant<value_of<T>...>> when_any(std::index_sequence<Index...>, task<T>... work) {
    std::optional<std::variant<value_of<T>...>> winner;
    co_await join_arms([&](arms& all) {
        const auto spawn = [&](auto arm, auto index) {
            all.children->spawn(run_arm(std::move(arm), all, [&winner, &all](auto value) {
                if (winner) return;
                winner.emplace(std::in_place_index<decltype(index)::value>, std::move(value));
                all.cancel();
            }));
        };
        (spawn(std::move(work), std::integral_constant<std::size_t, Index>()), ...);
    });
    EDDY_ASSERT(winner.has_value());
    co_return std::move(*winner);
}

/// The type that `co_await std::move(work)` yields.
template <class Work>
    requires requires(Work& work) { std::move(work).operator co_await(); } ||
             requires(Work& work) { work.await_resume(); }
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
/// other task. An exception cancels the rest and comes out when they have ended. A task that was
/// put under a source (task::under()) is cancelled by that one, not with the caller. One loop's
/// thread.
template <class... T>
    requires(sizeof...(T) > 0)
task<std::tuple<detail::value_of<T>...>> when_all(task<T>... work) {
    return detail::when_all(std::index_sequence_for<T...>(), std::move(work)...);
}

/// The same for as many tasks as there are in `work`; none yield an empty vector.
template <class T>
task<std::vector<detail::value_of<T>>> when_all(std::vector<task<T>> work) {
    std::vector<std::optional<detail::value_of<T>>> places(work.size());
    co_await detail::join_arms([&](detail::arms& all) {
        for (std::size_t i = 0; i < work.size(); ++i)
            all.children->spawn(detail::run_arm(
                std::move(work[i]), all,
                [&place = places[i]](auto value) { place.emplace(std::move(value)); }));
    });
    std::vector<detail::value_of<T>> values;
    values.reserve(places.size());
    for (auto& each : places) values.push_back(std::move(*each));
    co_return values;
}

/// Runs all of `work` at once, on this loop, until the first has ended; then cancels the others and
/// awaits them. The variant's index() says which was first. What another task yields in spite of
/// its cancellation is dropped: a task that may hold something by then, such as bytes it has read
/// or a value that it has received, must keep it elsewhere. An exception cancels the rest and comes
/// out, even after a first value. One loop's thread.
template <class... T>
    requires(sizeof...(T) > 0)
task<std::variant<detail::value_of<T>...>> when_any(task<T>... work) {
    return detail::when_any(std::index_sequence_for<T...>(), std::move(work)...);
}

/// Result of when_any() of a vector.
template <class T>
struct first_value {
    std::size_t index;          ///< which task was the first to end
    detail::value_of<T> value;  ///< of that task; std::monostate for a task<void>
};

/// The same for as many tasks as there are in `work`, at least one.
template <class T>
task<first_value<T>> when_any(std::vector<task<T>> work) {
    EDDY_PRECONDITION(!work.empty(), "when_any() of no task: none can be the first to end");
    std::optional<first_value<T>> winner;
    co_await detail::join_arms([&](detail::arms& all) {
        for (std::size_t i = 0; i < work.size(); ++i)
            all.children->spawn(
                detail::run_arm(std::move(work[i]), all, [&winner, &all, i](auto value) {
                    if (winner) return;
                    winner.emplace(i, std::move(value));
                    all.cancel();
                }));
    });
    EDDY_ASSERT(winner.has_value());
    co_return std::move(*winner);
}

/// The same where some are operations: `co_await when_all(peer.read(), other.read())`. Await it in
/// the expression that makes it.
template <class... Work>
    requires detail::some_momentary<Work...>
auto when_all(Work&&... work) {
    return detail::momentary_task(when_all(detail::as_task(std::move(work))...));
}

/// The same where some are operations: `co_await when_any(peer.read(), answer(other))`. Where all
/// are operations that select() (select.hpp) takes, this is select(), and nothing is dropped.
template <class... Work>
    requires detail::some_momentary<Work...>
auto when_any(Work&&... work) {
    if constexpr ((selectable<Work> && ...))
        return select(std::move(work)...);
    else
        return detail::momentary_task(when_any(detail::as_task(std::move(work))...));
}

}  // namespace eddy
