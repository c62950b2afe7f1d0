// Search of /proc for marked processes.
#include "runtime/programs/marked_processes.hpp"

#include <eddy/base/unique_fd.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// The header of glibc 2.36 forgot to say that these are C functions.
extern "C" {
#include <sys/pidfd.h>
}

namespace eddy::runtime {
namespace {

/// Searches in a row: a process may start another one while it is searched for.
constexpr int most_rounds = 5;
/// A longer environment is searched up to here.
constexpr std::size_t longest_environment = 256 * 1024;

std::string environment_of(std::string_view pid) {
    const std::string path = "/proc/" + std::string(pid) + "/environ";
    const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    std::string text;
    if (!file) return text;
    char piece[8192];
    while (text.size() < longest_environment) {
        const ssize_t got = ::read(file.get(), piece, sizeof piece);
        if (got <= 0) break;
        text.append(piece, static_cast<std::size_t>(got));
    }
    return text;
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

/// Yields how many it has killed that are not in `killed` yet: an end takes its time.
std::size_t kill_round(std::span<search* const> wanted, std::set<int>& killed) {
    struct closer {
        void operator()(DIR* of) const { ::closedir(of); }
    };
    const std::unique_ptr<DIR, closer> all(::opendir("/proc"));
    if (!all) return 0;
    std::size_t count = 0;
    while (const dirent* const each = ::readdir(all.get())) {
        const std::string_view name = each->d_name;
        int pid = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (error != std::errc{} || end != name.data() + name.size() || pid == ::getpid()) continue;
        if (is_own(pid)) continue;
        // Opened before the check, so that it is never another process with the number.
        const unique_fd handle(::pidfd_open(pid, 0));
        if (!handle) continue;
        search* const by = find_marked(environment_of(name), wanted);
        if (by == nullptr || ::pidfd_send_signal(handle.get(), SIGKILL, nullptr, 0) != 0) continue;
        if (!killed.insert(pid).second) continue;
        ++by->killed;
        ++count;
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
