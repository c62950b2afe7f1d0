// Search of /proc for marked processes.
#include "runtime/programs/marked_processes.hpp"

#include <eddy/base/unique_fd.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

/// Searches in a row: a process may start another one while it is searched for.
constexpr int most_rounds = 5;
/// A longer environment is searched up to here.
constexpr std::size_t longest_environment = 256 * 1024;

/// Time for processes that are within execve(2), of a search.
constexpr std::chrono::milliseconds exec_patience{200};
constexpr std::chrono::milliseconds exec_pause{1};

/// The content of a file of a process; none if it cannot be opened.
std::optional<std::string> text_of(std::string_view pid, const char* name, std::size_t longest) {
    const std::string path = "/proc/" + std::string(pid) + "/" + name;
    const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return std::nullopt;
    std::string text;
    char piece[8192];
    while (text.size() < longest) {
        const ssize_t got = ::read(file.get(), piece, sizeof piece);
        if (got <= 0) break;
        text.append(piece, static_cast<std::size_t>(got));
    }
    return text;
}

/// State of the place where a process has its environment, as the kernel shows it.
enum class environment_place : std::uint8_t {
    none,     // a kernel's thread, a process that has ended, or one without any variable
    not_yet,  // execve(2) is under way
    is_known,
};

/// Meaningless for other users' processes, whose fields are hidden.
environment_place place_of_environment(std::string_view pid) {
    // proc(5): the fields behind the name, which is in parentheses, begin with the third.
    // The kernel sets those of the environment one by one, and that of the code after them.
    constexpr std::size_t fields_before = 3, memory_field = 23, code_field = 26, start_field = 50,
                          end_field = 51;
    const std::string text = text_of(pid, "stat", 4096).value_or("");
    std::string_view rest = text;
    const std::size_t name_end = rest.rfind(") ");
    if (name_end == std::string_view::npos) return environment_place::none;
    rest.remove_prefix(name_end + 2);
    std::string_view memory, code, start, end;
    for (std::size_t field = fields_before; field <= end_field; ++field) {
        const std::string_view each = rest.substr(0, rest.find_first_of(" \n"));
        if (field == memory_field) memory = each;
        if (field == code_field) code = each;
        if (field == start_field) start = each;
        if (field == end_field) end = each;
        rest.remove_prefix(std::min(each.size() + 1, rest.size()));
    }
    if (memory == "0") return environment_place::none;
    if (code == "0") return environment_place::not_yet;
    return start == end ? environment_place::none : environment_place::is_known;
}

/// A call that waits for a search.
struct search {
    const std::string& variable;
    std::size_t killed = 0;
    bool is_over = false;
};

/// Searches of several threads: one of them searches for all that wait, so that the ends
/// of many programs take two searches, not one each.
struct all_searches {
    std::mutex guard;
    std::condition_variable ended;
    std::vector<search*> waiting;
    bool is_under_way = false;
    std::set<int> own;  // processes that are known, and carry marks of their own
};

all_searches& searches() {
    static all_searches those;
    return those;
}

/// The searches of `wanted` whose variable the environment has.
search* find_marked(std::string_view environment, std::span<search* const> wanted) {
    while (!environment.empty()) {
        const std::string_view each = environment.substr(0, environment.find('\0'));
        for (search* const one : wanted)
            if (each == one->variable) return one;
        environment.remove_prefix(std::min(each.size() + 1, environment.size()));
    }
    return nullptr;
}

bool is_own(int pid) {
    const std::lock_guard lock(searches().guard);
    return searches().own.contains(pid);
}

/// A process that is looked at, by a handle that was opened before: it is never another process
/// with its number.
struct candidate {
    std::string pid;
    unique_fd handle;

    enum class kind : std::uint8_t { other, killed, unknown };
    /// Kills it if it has one of the marks; unknown while it is within execve(2).
    kind kill_if_marked(std::span<search* const> wanted, std::set<int>& killed) const;
};

candidate::kind candidate::kill_if_marked(std::span<search* const> wanted,
                                          std::set<int>& killed) const {
    const auto environment = text_of(pid, "environ", longest_environment);
    if (!environment) return kind::other;
    // One that is known now was not yet when it was read: execve(2) has ended in between.
    if (environment->empty())
        return place_of_environment(pid) == environment_place::none ? kind::other : kind::unknown;
    search* const by = find_marked(*environment, wanted);
    if (by == nullptr || ::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0) != 0)
        return kind::other;
    if (!killed.insert(std::stoi(pid)).second) return kind::other;
    ++by->killed;
    return kind::killed;
}

/// Yields how many it has killed that are not in `killed` yet: an end takes its time.
std::size_t kill_round(std::span<search* const> wanted, std::set<int>& killed) {
    struct closer {
        void operator()(DIR* of) const { ::closedir(of); }
    };
    const std::unique_ptr<DIR, closer> all(::opendir("/proc"));
    if (!all) return 0;
    std::size_t count = 0;
    std::vector<candidate> unknown;
    while (const dirent* const each = ::readdir(all.get())) {
        const std::string_view name = each->d_name;
        int pid = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (error != std::errc{} || end != name.data() + name.size() || pid == ::getpid()) continue;
        if (is_own(pid)) continue;
        candidate one{std::string(name),
                      unique_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)))};
        if (!one.handle) continue;
        const auto found = one.kill_if_marked(wanted, killed);
        if (found == candidate::kind::killed) ++count;
        if (found == candidate::kind::unknown) unknown.push_back(std::move(one));
    }
    const auto until = std::chrono::steady_clock::now() + exec_patience;
    while (!unknown.empty() && std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(exec_pause);
        std::erase_if(unknown, [&](const candidate& one) {
            const auto found = one.kill_if_marked(wanted, killed);
            if (found == candidate::kind::killed) ++count;
            return found != candidate::kind::unknown;
        });
    }
    return count;
}

}  // namespace

std::size_t kill_marked(const std::string& variable) {
    search own{variable};
    all_searches& all = searches();
    std::unique_lock lock(all.guard);
    all.waiting.push_back(&own);
    while (!own.is_over) {
        if (all.is_under_way) {
            all.ended.wait(lock);
            continue;
        }
        all.is_under_way = true;
        const std::vector<search*> wanted = std::exchange(all.waiting, {});
        lock.unlock();
        std::set<int> killed;
        for (int round = 0; round < most_rounds; ++round)
            if (kill_round(wanted, killed) == 0) break;
        lock.lock();
        for (search* const each : wanted) each->is_over = true;
        all.is_under_way = false;
        all.ended.notify_all();
    }
    return own.killed;
}

void exempt_process(int pid) {
    const std::lock_guard lock(searches().guard);
    searches().own.insert(pid);
}

void include_process(int pid) noexcept {
    const std::lock_guard lock(searches().guard);
    searches().own.erase(pid);
}

}  // namespace eddy::runtime
