// The page /metrics: rendering.
#include "daemon/control/metrics.hpp"

#include "io/sockets/linger.hpp"
#include "runtime/metrics.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <system_error>
#include <variant>
#include <vector>

namespace eddy::daemon {
namespace {

/// Upper bounds of the buckets of times, in nanoseconds: 1, 2 and 5 of each decade from 1 µs to 10
/// s.
constexpr std::uint64_t time_bounds[] = {
    1'000,         2'000,         5'000,         10'000,        20'000,      50'000,
    100'000,       200'000,       500'000,       1'000'000,     2'000'000,   5'000'000,
    10'000'000,    20'000'000,    50'000'000,    100'000'000,   200'000'000, 500'000'000,
    1'000'000'000, 2'000'000'000, 5'000'000'000, 10'000'000'000};
/// The same of sizes, in bytes: from 64 bytes to 1 GiB.
constexpr std::uint64_t size_bounds[] = {64,       256,      1U << 10, 1U << 12, 1U << 14,
                                         1U << 16, 1U << 18, 1U << 20, 1U << 22, 1U << 24,
                                         1U << 26, 1U << 28, 1U << 30};

/// Escapes what the format reserves, in a line or within quotes.
std::string escape(std::string_view text, bool is_quoted) {
    std::string escaped;
    for (const char c : text) {
        if (c == '\\' || (is_quoted && c == '"')) escaped += '\\';
        if (c == '\n')
            escaped += "\\n";
        else
            escaped += c;
    }
    return escaped;
}

/// Writes families one after the other: a head once, then its samples.
class page {
public:
    void family(std::string_view name, std::string_view kind, std::string_view help) {
        write_family_head(text_, name, kind, escape(help, false));
    }
    template <class Number>
    void sample(std::string_view name, std::string_view labels, Number value) {
        if (labels.empty())
            fmt::format_to(std::back_inserter(text_), "{} {}\n", name, value);
        else
            fmt::format_to(std::back_inserter(text_), "{}{{{}}} {}\n", name, labels, value);
    }
    /// A family of one sample without labels.
    template <class Number>
    void value(std::string_view name, std::string_view kind, std::string_view help, Number value) {
        family(name, kind, help);
        sample(name, {}, value);
    }
    void distribution(std::string_view name, std::string_view labels, const histogram& values) {
        const bool is_time = name.ends_with("_seconds");
        const double unit = is_time ? 1e9 : 1;
        const std::span<const std::uint64_t> bounds(
            is_time ? std::span<const std::uint64_t>(time_bounds) : size_bounds);
        const std::string_view comma = labels.empty() ? "" : ",";
        for (const std::uint64_t bound : bounds)
            fmt::format_to(std::back_inserter(text_), "{}_bucket{{{}{}le=\"{}\"}} {}\n", name,
                           labels, comma, static_cast<double>(bound) / unit,
                           values.count_up_to(bound));
        fmt::format_to(std::back_inserter(text_), "{}_bucket{{{}{}le=\"+Inf\"}} {}\n", name, labels,
                       comma, values.count());
        sample(fmt::format("{}_sum", name), labels, static_cast<double>(values.sum()) / unit);
        sample(fmt::format("{}_count", name), labels, values.count());
    }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

std::uint64_t open_descriptors() {
    std::error_code error;
    std::uint64_t count = 0;
    for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
         at.increment(error))
        ++count;
    return count;
}

void add_daemon(page& out, const runtime_registry& runtimes, const daemon_facts& facts,
                const daemon_counters& counted) {
    out.family("eddy_build_info", "gauge",
               "Version and build of this daemon; the value is always 1.");
    out.sample(
        "eddy_build_info",
        fmt::format("version=\"{}\",io_backend=\"{}\",name=\"{}\"", escape_label(facts.version),
                    escape_label(facts.io_backend), escape_label(facts.name)),
        1);
    out.value("eddy_uptime_seconds", "gauge", "Time since the daemon started.",
              std::chrono::duration<double>(loop::current().now() - facts.started_at).count());
    out.value("eddy_loops", "gauge", "Event loops of the runtimes.", facts.loops);
    out.value("eddy_lingering_connections", "gauge",
              "Connections that are read from after their answer, so that it arrives.",
              lingering_connections());

    out.family("eddy_runtimes", "gauge", "Runtimes by status.");
    std::map<std::string_view, std::uint64_t> by_status;
    for (const runtime_status status :
         {runtime_status::created, runtime_status::starting, runtime_status::running,
          runtime_status::stopping, runtime_status::stopped, runtime_status::failed})
        by_status[to_string(status)] = 0;
    for (const runtime_ref& each : runtimes.all()) ++by_status[to_string(each->running.status())];
    for (const auto& [status, count] : by_status)
        out.sample("eddy_runtimes", fmt::format("status=\"{}\"", status), count);

    out.value("eddy_control_connections", "gauge", "Connections of the control API.",
              counted.connections);
    out.value("eddy_control_connections_refused_total", "counter",
              "Connections of the control API beyond the limit.", counted.connections_refused);
    out.family("eddy_control_requests_total", "counter", "Requests that the control API answered.");
    for (std::size_t digit = 2; digit < counted.answers.size(); ++digit)
        out.sample("eddy_control_requests_total", fmt::format("status=\"{}xx\"", digit),
                   counted.answers[digit]);
    out.family("eddy_control_request_duration_seconds", "histogram",
               "Time from a request of the control API to its answer.");
    out.distribution("eddy_control_request_duration_seconds", "", counted.answer_time);
}

void add_process(page& out) {
    out.value("process_cpu_seconds_total", "counter", "CPU time, user and system.", cpu_seconds());
    out.value("process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes());
    out.value("process_open_fds", "gauge", "Open file descriptors.", open_descriptors());
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    out.value("process_max_fds", "gauge", "The limit on open file descriptors.", limit.rlim_cur);
}

/// The labels of a sample behind those of its runtime.
std::string with_labels(std::string labels, const runtime::metric_sample& of) {
    for (std::size_t i = 0; i < of.labels.size(); ++i)
        fmt::format_to(std::back_inserter(labels), ",{}=\"{}\"", of.of->labels[i],
                       escape_label(of.labels[i]));
    return labels;
}

void add_sample(page& out, std::string_view name, std::string_view labels,
                const runtime::metric_sample& of) {
    if (const double* value = std::get_if<double>(&of.value))
        out.sample(name, labels, *value);
    else
        out.distribution(name, labels, *std::get<std::shared_ptr<const histogram>>(of.value));
}

void add_runtimes(page& out, const runtime_registry& runtimes) {
    struct member {
        runtime_ref runtime;
        std::string labels;
    };
    std::vector<member> members;
    for (runtime_ref& each : runtimes.all()) {
        std::string labels = fmt::format("runtime=\"{}\",type=\"{}\"", escape_label(each->name()),
                                         escape_label(each->desired.record.type));
        members.push_back({std::move(each), std::move(labels)});
    }
    out.family("eddy_runtime_up", "gauge", "1 if the runtime is running, else 0.");
    for (const member& m : members)
        out.sample("eddy_runtime_up", m.labels,
                   m.runtime->running.status() == runtime_status::running ? 1 : 0);
    out.family("eddy_runtime_degraded", "gauge",
               "1 if the runtime is running, but lacks what it needs: an address, its server, all "
               "backends of a route, or a script of which not every call fails; else 0.");
    for (const member& m : members)
        out.sample("eddy_runtime_degraded", m.labels, is_degraded(m.runtime->running) ? 1 : 0);
    std::erase_if(members, [](const member& m) { return !m.runtime->running.has_instance(); });

    for (const runtime::common_metric& each : runtime::common_metrics) {
        const std::string name = fmt::format("eddy_runtime_{}", each.of.name);
        out.family(name, to_string(each.of.kind), each.of.help);
        for (const member& m : members)
            out.sample(name, m.labels, (m.runtime->running.vitals().counted.*each.value).value());
    }
    const std::string latency = fmt::format("eddy_runtime_{}", runtime::latency_metric.name);
    out.family(latency, to_string(runtime::latency_metric.kind), runtime::latency_metric.help);
    for (const member& m : members)
        if (m.runtime->running.vitals().counted.latency)
            out.distribution(latency, m.labels, *m.runtime->running.vitals().counted.latency);

    // Metrics of single types, by family: a family's samples must stand together.
    struct type_sample {
        std::string labels;
        const runtime::metric_sample* of;
    };
    std::map<std::string, std::vector<type_sample>> families;
    for (const member& m : members)
        for (const runtime::metric_sample& each : m.runtime->running.vitals().counted.samples)
            families[fmt::format("eddy_{}_{}", m.runtime->desired.record.type, each.of->name)]
                .push_back({with_labels(m.labels, each), &each});
    for (const auto& [name, samples] : families) {
        const runtime::metric& what = *samples.front().of->of;
        out.family(name, to_string(what.kind), what.help);
        for (const type_sample& each : samples) add_sample(out, name, each.labels, *each.of);
    }
}

}  // namespace

std::string escape_label(std::string_view value) { return escape(value, true); }

void write_family_head(std::string& to, std::string_view name, std::string_view kind,
                       std::string_view help) {
    fmt::format_to(std::back_inserter(to), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, kind);
}

double cpu_seconds() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::uint64_t resident_bytes() {
    std::uint64_t pages = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
        if (std::fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
        std::fclose(file);
    }
    return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string render_metrics(const runtime_registry& runtimes, const daemon_facts& facts,
                           const daemon_counters& counted) {
    page out;
    add_daemon(out, runtimes, facts, counted);
    add_process(out);
    add_runtimes(out, runtimes);
    return out.take();
}

std::string stream_metric_name(const runtime::metric& of) {
    return fmt::format("daemon_{}", of.name);
}

std::string render_stream_metrics(const runtime::metrics& counted) {
    struct renamed {
        std::string_view name;
        std::string_view kind;
        std::string_view help;
        serving::tally serving::counters::* value;
    };
    static constexpr renamed common[] = {
        {"daemon_active_connections", "gauge", "Open connections.",
         &serving::counters::connections_now},
        {"daemon_connections_total", "counter", "Clients that were handed over.",
         &serving::counters::connections_total},
        {"daemon_connections_rejected_total", "counter", "Clients refused by a limit.",
         &serving::counters::connections_refused},
        {"daemon_bytes_sent_total", "counter", "Bytes sent.", &serving::counters::bytes_out},
    };
    page out;
    for (const renamed& each : common)
        out.value(each.name, each.kind, each.help, (counted.*each.value).value());
    const runtime::metric* last = nullptr;
    for (const runtime::metric_sample& each : counted.samples) {
        const std::string name = stream_metric_name(*each.of);
        if (each.of != last) out.family(name, to_string(each.of->kind), each.of->help);
        last = each.of;
        const std::string labels = with_labels({}, each);
        add_sample(out, name, std::string_view(labels).substr(labels.empty() ? 0 : 1), each);
    }
    add_process(out);
    return out.take();
}

}  // namespace eddy::daemon
