// Common parts of the load generators.
#include "cli/bench/measure.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace eddy::cli::bench {

void give_up(const std::string& message) { throw std::runtime_error(message); }

double own_cpu_seconds() {
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

double process_cpu_seconds(int pid) {
    if (pid == 0) return 0;
    const std::string tasks = fmt::format("/proc/{}/task", pid);
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
    if (!directory) give_up(fmt::format("there is no process {} to take CPU time from", pid));
    double sum = 0;
    while (const dirent* entry = readdir(directory.get())) {
        if (entry->d_name[0] == '.') continue;
        std::ifstream file(fmt::format("{}/{}/schedstat", tasks, entry->d_name));
        double ran_ns = 0;
        if (file >> ran_ns) sum += ran_ns * 1e-9;
    }
    return sum;
}

std::size_t raise_descriptor_limit(std::size_t needed) {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return needed;
    if (limit.rlim_cur < needed) {
        limit.rlim_cur = std::min<rlim_t>(needed, limit.rlim_max);
        static_cast<void>(setrlimit(RLIMIT_NOFILE, &limit));
    }
    return static_cast<std::size_t>(limit.rlim_cur);
}

void progress_line::show(const std::string& text) {
    if (!is_shown_) return;
    const auto now = steady::now();
    if (now - shown_ < std::chrono::milliseconds(100)) return;
    shown_ = now;
    std::fprintf(stderr, "\r\x1b[K%s", text.c_str());
    std::fflush(stderr);
}

void progress_line::clear() {
    if (is_shown_) std::fprintf(stderr, "\r\x1b[K");
}

bool wants_progress(const arguments& given) {
    return isatty(STDERR_FILENO) == 1 && !given.is_set("no-progress");
}

bool read_whole(const arguments& given, std::string_view name, std::uint64_t least,
                std::uint64_t most, std::uint64_t& into) {
    if (!given.has(name)) return true;
    const std::string_view text = given.value(name);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || number < least ||
        number > most) {
        complain(fmt::format("--{} takes a whole number from {} to {}, not \"{}\"", name, least,
                             most, text));
        return false;
    }
    into = number;
    return true;
}

bool read_seconds(const arguments& given, std::string_view name, double least, double most,
                  double& into) {
    if (!given.has(name)) return true;
    std::string_view text = given.value(name);
    if (text.ends_with('s')) text.remove_suffix(1);
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    // Written so that NaN is refused.
    const bool is_good = error == std::errc{} && end == text.data() + text.size() &&
                         number >= least && number <= most;
    if (!is_good) {
        complain(fmt::format("--{} takes seconds from {} to {}, not \"{}\"", name, least, most,
                             given.value(name)));
        return false;
    }
    into = number;
    return true;
}

bool read_duration(const arguments& given, std::string_view name, duration& into) {
    if (!given.has(name)) return true;
    struct unit {
        std::string_view name;
        double ns;
    };
    constexpr std::array<unit, 7> units = {{{"ns", 1},
                                            {"us", 1e3},
                                            {"\u00b5s", 1e3},
                                            {"ms", 1e6},
                                            {"s", 1e9},
                                            {"m", 60e9},
                                            {"h", 3600e9}}};
    constexpr double most = 86'400e9;
    std::string_view rest = given.value(name);
    double sum = 0;
    bool is_good = !rest.empty();
    for (bool is_first = true; is_good && !rest.empty(); is_first = false) {
        double number = 0;
        const char* const end = rest.data() + rest.size();
        const auto [at, error] =
            std::from_chars(rest.data(), end, number, std::chars_format::fixed);
        rest = std::string_view(at, static_cast<std::size_t>(end - at));
        const std::size_t length = std::min(rest.find_first_of("0123456789."), rest.size());
        const std::string_view written = rest.substr(0, length);
        rest.remove_prefix(length);
        double factor = is_first && written.empty() ? 1e9 : 0;
        for (const unit& each : units)
            if (each.name == written) factor = each.ns;
        sum += number * factor;
        // Written so that NaN is refused.
        is_good = error == std::errc{} && factor > 0 && number >= 0 && sum <= most;
    }
    if (!is_good) {
        complain(
            fmt::format("--{} takes a time such as 10s, 500ms or 1m30s, at most a day, not \"{}\"",
                        name, given.value(name)));
        return false;
    }
    into = duration(static_cast<std::int64_t>(sum));
    return true;
}

bool read_io_backend(const arguments& given, io_backend_kind& into) {
    const auto kind = parse_io_backend_kind(given.value("io-backend", "auto"));
    if (!kind || *kind == io_backend_kind::sim) {
        complain(fmt::format("--io-backend cannot be \"{}\"; it may be auto, uring or epoll",
                             given.value("io-backend")));
        return false;
    }
    into = *kind;
    return true;
}

std::vector<flag> common_flags() {
    return {
        {.name = "server-pid",
         .value_name = "PID",
         .help = "take the server's CPU time from this process"},
        {.name = "timeout",
         .value_name = "SECONDS",
         .help = "give up if the server sends nothing for this time",
         .default_value = "10"},
        {.name = "io-backend",
         .value_name = "KIND",
         .help = "kernel interface: auto, uring or epoll",
         .default_value = "auto",
         .former_name = "backend"},
        {.name = "no-progress", .help = "show no progress on the terminal"},
    };
}

}  // namespace eddy::cli::bench
