// Fixtures of runtimes' tests: a journal in memory, an instance made from JSON, and its clients.
#pragma once

#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "base/problem.hpp"
#include "io/testing.hpp"
#include "runtime/host/host.hpp"
#include "runtime/host/test_host.hpp"
#include "runtime/instance.hpp"
#include "runtime/metrics.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/type.hpp"
#include "serving/testing.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace eddy::runtime::testing {

using eddy::testing::must;
using eddy::testing::on_io_backend;
using eddy::testing::temporary_folder;
using nlohmann::json;
using serving::testing::recorder;
using serving::testing::talker;
using serving::testing::until;
using namespace std::chrono_literals;

/// The value of an outcome that a test relies on.
template <class T>
T must_do(outcome<T> made) {
    if (!made) throw std::runtime_error(made.error().message);
    if constexpr (!std::is_void_v<T>) return std::move(*made);
}

/// Options of a server or cache that a test reaches at any free port.
inline const json any_port = {{"port", 0}, {"bind", "127.0.0.1"}};

/// `options`, and what of `others` they lack.
inline json with(json options, const json& others = any_port) {
    for (const auto& [name, value] : others.items())
        if (!options.contains(name)) options[name] = value;
    return options;
}

/// The bytes of a file; none when it cannot be read.
inline std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The sample without labels of a metric that only the type has; none if there is no such metric.
inline std::optional<double> sample_of(const instance& of, std::string_view name) {
    const metrics now = of.count();
    for (const metric_sample& each : now.samples)
        if (each.of->name == name && each.labels.empty()) return std::get<double>(each.value);
    return std::nullopt;
}

/// The options, and for a cache as many threads as EDDY_CACHE_THREADS says, if it does: the tests
/// of the cache are run with and without. The simulator has one thread.
inline json on_threads(std::string_view type_name, json options) {
    const char* const threads = std::getenv("EDDY_CACHE_THREADS");
    if (threads != nullptr && type_name == "cache" && !options.contains("threads") &&
        loop::current().kind() != io_backend_kind::sim)
        options["threads"] = std::stoi(threads);
    return options;
}

/// The options, and for a site a folder, if they name none.
inline json with_root(std::string_view type_name, json options) {
    if (type_name == "http" && !options.contains("root"))
        options["root"] = std::filesystem::temp_directory_path().string();
    return options;
}

/// A runtime with its journal. Stop it before it dies.
class subject {
public:
    subject(std::string_view type_name, const json& options, std::string name = "subject",
            std::shared_ptr<runtime::host> host = std::make_shared<runtime::host>())
        : name_(std::move(name)), type_(find_type(type_name)) {
        if (!type_) throw std::runtime_error("no such type");
        made_ =
            type_->make({name_, parse(on_threads(type_name, options)), &events, std::move(host)});
    }

    /// With a host among others.
    subject(std::string_view type_name, const json& options, std::string name,
            const neighbours& among)
        : subject(type_name, options, name, std::make_shared<test_host>(among, name)) {}

    /// A test that fails leaves it running; its message should be what is seen, not an assertion.
    ~subject() {
        if (made_->local().family() != AF_UNSPEC || std::uncaught_exceptions() > 0)
            (void)made_.release();
    }
    subject(const subject&) = delete;
    subject& operator=(const subject&) = delete;

    settings parse(const json& options) const {
        return must_do(settings::parse(type_->options, with_root(type_->name, options)));
    }
    instance& operator*() noexcept { return *made_; }
    instance* operator->() noexcept { return made_.get(); }

    task<void> start() { must_do(co_await made_->start()); }
    task<std::string> failure_to_start() {
        auto started = co_await made_->start();
        if (started) throw std::runtime_error("it started");
        co_return started.error().message;
    }

    recorder events;

private:
    std::string name_;
    const type* type_;
    std::unique_ptr<instance> made_;
};

/// A command as clients encode it in RESP.
inline std::string encoded(const std::vector<std::string>& args) {
    std::string text = "*" + std::to_string(args.size()) + "\r\n";
    for (const std::string& arg : args)
        text += "$" + std::to_string(arg.size()) + "\r\n" + arg + "\r\n";
    return text;
}

/// The next line without its line end.
inline task<std::string> line_of(talker& client) {
    std::string line = co_await client.line();
    if (line.ends_with('\r')) line.pop_back();
    co_return line;
}

/// Sends a line, and yields the next one.
inline task<std::string> ask(talker& client, std::string command) {
    co_await client.say(command + "\r\n");
    co_return co_await line_of(client);
}

/// End of a connection: the text before it, and the error.
struct last_bytes {
    std::string text;
    std::error_code end;
};
inline task<last_bytes> rest_of(talker& from) {
    last_bytes got;
    got.text = std::move(from.unread);
    for (;;) {
        result<lease> more = co_await from.socket.read();
        if (!more) {
            got.end = more.error();
            co_return got;
        }
        got.text += more->text();
    }
}

/// Sends lines of a server's client until another one of two, which does not read, is disconnected.
inline task<void> say_until_other_is_disconnected(talker& sender, subject& server) {
    const std::string line(1000, 'x');
    // Whatever the sockets hold, this is more.
    for (int i = 0; server->count().connections_now == 2; ++i) {
        if (i > 200'000) throw std::runtime_error("it is never disconnected");
        co_await sender.say(line + "\n");
        co_await loop::current().yield();
    }
}

/// An instance that begins with the listeners of another one.
struct successor {
    successor(std::string_view type_name, const nlohmann::json& options,
              std::shared_ptr<inherited_listeners> listeners) {
        const type* const of = find_type(type_name);
        made = of->make({"subject", must_do(settings::parse(of->options, options)), &events,
                         std::make_shared<host>(), nullptr, std::move(listeners)});
    }
    instance* operator->() noexcept { return made.get(); }

    recorder events;
    std::unique_ptr<instance> made;
};

}  // namespace eddy::runtime::testing
