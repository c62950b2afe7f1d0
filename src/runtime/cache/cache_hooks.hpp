// Hooks of a cache at work: jobs on their way between the engine and the threads that run the
// script.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/script/hook_script.hpp"
#include "runtime/cache/config/hook_config.hpp"
#include "runtime/metrics.hpp"
#include "runtime/scripting/script_metrics.hpp"
#include "script/script_threads.hpp"
#include "serving/journal.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {

struct cache_context;

/// One loop's thread. Life: prepare(), attach(), run() as a task, flush(), then the end of run().
class cache_hooks final : eddy::cache::hook_host {
public:
    /// Time limit of the threads for loading the script, which may connect to a backend then.
    static constexpr duration load_patience = std::chrono::seconds(30);
    /// Within a second so many lines go to the journal; the others are counted.
    static constexpr std::uint64_t max_lines_a_second = 20;

    /// `owner` is the name of the cache.
    cache_hooks(hook_config chosen, std::string owner, serving::journal& events);
    ~cache_hooks();

    /// Reads the script and loads it in its threads.
    task<outcome<>> prepare();
    /// Checks that the script, as it is now, can be loaded: one thread loads it, and ends. For an
    /// object of its own.
    task<outcome<>> check();
    /// Loads the script as it is now in other threads, for the calls from then on. False when it
    /// defines other functions than before: the engine keeps to those. On failure the script that
    /// was loaded before stays. After attach().
    task<outcome<bool>> reload();
    /// Ends a check() or reload() that is under way soon, without success.
    void give_up_load() noexcept {
        load_given_up_ = true;
        progress_.set();
    }
    /// From here on the engine asks and notifies the script. `to` outlives this object.
    void attach(cache_context& to);
    /// Serves until it is cancelled.
    task<void> run();
    /// Waits until all changes of clients were delivered, for at most hook_config::flush, and ends
    /// the threads. Notes in the journal what was lost. run() must still be at work.
    task<void> flush();
    void count(metrics& into) const;
    /// Lack of a cache whose script only fails, see instance::fault(); else empty.
    std::string fault() const { return calls_.fault(owner_); }

private:
    class call;
    class crew;

    void hook_work_came() noexcept override { something_.set(); }
    task<outcome<std::unique_ptr<crew>>> load();
    task<outcome<>> begin(crew& loaded);
    outcome<std::unique_ptr<crew>> make_crew(const std::string& text, const std::string& name,
                                             std::size_t threads);
    task<outcome<>> await_all_of(crew& one, bool (crew::*are_there)() const noexcept);
    void end_retired();
    bool may_take_jobs() noexcept;
    task<void> await_end(time_point end);
    void finish(eddy::cache::hook_answer&& answer);
    void notify() noexcept;
    void note(std::string line);
    void note_end(bool has_failed) noexcept;
    void report_lost();
    task<result<>> wait_for_something();

    hook_config config_;
    const std::string owner_;
    serving::journal& events_;
    cache_context* context_ = nullptr;  // from attach() on
    std::unique_ptr<crew> crew_;
    std::vector<std::unique_ptr<crew>> retired_;  // until their threads have ended
    time_point retired_at_{};                     // the last of them
    std::uint64_t ticks_ = 0;
    std::uint64_t failed_ticks_ = 0;
    script_tallies calls_;  // of them, the errors in a row alone
    eddy::cache::read_through* hooks_ = nullptr;
    std::deque<eddy::cache::hook_result> answers_;
    event something_;
    event progress_;
    time_point second_began_{};
    std::uint64_t lines_ = 0;
    bool load_given_up_ = false;
};

}  // namespace eddy::runtime::cache
