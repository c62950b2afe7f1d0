// What the daemon asks of a runtime: a server, a cache, and whatever types follow.
//
// A runtime type is a table of its options plus a factory. The table is the single place that
// knows an option's name, form and help: the CLI's flags, the control API's validation, `edit`,
// the stored JSON and the help texts all come from it. A runtime belongs to one
// loop's thread from start() to the end of stop().
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

#include <nlohmann/json_fwd.hpp>

#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace eddy::runtime {

/// Why a request about a runtime failed: told to the user as it stands, so `message` says what
/// happened, to what, and what to do. `status` is the HTTP status that fits (400, 403, 404, 409,
/// 500, 503).
struct problem {
    int status = 400;
    std::string message;
};

template <class T = void>
using outcome = std::expected<T, problem>;

inline std::unexpected<problem> refuse(int status, std::string message) {
    return std::unexpected(problem{status, std::move(message)});
}

enum class option_kind { flag, integer, size, duration, text, choice };

/// One option of a type. `--max-connections` is named "max_connections" in JSON.
struct option {
    std::string_view name = {};  ///< with dashes: "max-connections"
    char letter = 0;             ///< short flag, 0 for none
    option_kind kind = option_kind::text;
    std::string_view value_name = {};     ///< what help shows: "N", "SECONDS", "ADDRESS"
    std::string_view default_value = {};  ///< as the user would write it; "" means unset
    std::string_view help = {};
    std::vector<std::string_view> choices = {};  ///< for option_kind::choice
    std::int64_t minimum = 0;
    std::int64_t maximum = INT64_MAX;
    bool live = false;  ///< `edit` applies it to a running runtime without a restart
    /// What is shown of a value that has a secret: `hidden` in the secret's place. Null: the value.
    std::string (*shown)(const std::string& value) = nullptr;
};

/// Stands for a secret.
inline constexpr std::string_view hidden = "***";

/// Checked option values of one runtime, in their written form; unset options have their default.
class settings {
public:
    /// Parses and checks `given` (option name -> JSON value) against `table`; unknown names, wrong
    /// kinds and values out of range are refused with a message that names the option and shows
    /// what would be right.
    static outcome<settings> parse(std::span<const option> table, const nlohmann::json& given);
    nlohmann::json to_json() const;

    /// Whether it has a value, given or by default.
    bool has(std::string_view name) const;
    /// Whether the user gave it.
    bool given(std::string_view name) const;
    bool flag(std::string_view name) const;
    /// integer; size in bytes ("64k", "1GiB"); duration in nanoseconds ("30", "1.5s", "100ms").
    std::int64_t number(std::string_view name) const;
    const std::string& text(std::string_view name) const;

private:
    struct value {
        std::string_view name;
        option_kind kind;
        bool given;
        std::int64_t number;
        std::string text;
    };
    const value& find(std::string_view name) const;
    std::vector<value> values_;
};

/// A count that one thread changes and any may read. It costs what a plain number does: adding to
/// it is no atomic addition.
class tally {
public:
    tally() noexcept = default;
    tally(std::uint64_t value) noexcept : value_(value) {}
    tally(const tally& other) noexcept : value_(other) {}
    tally& operator=(const tally& other) noexcept { return *this = std::uint64_t{other}; }
    tally& operator=(std::uint64_t value) noexcept {
        value_.store(value, std::memory_order_relaxed);
        return *this;
    }
    std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }
    operator std::uint64_t() const noexcept { return value(); }
    tally& operator+=(std::uint64_t more) noexcept { return *this = *this + more; }
    tally& operator++() noexcept { return *this += 1; }

private:
    std::atomic<std::uint64_t> value_{0};
};

/// What a runtime counts; read on its loop, copied to whoever asks.
struct counters {
    tally connections_now;
    tally connections_total;
    tally connections_refused;  ///< by a limit
    tally messages_in;          ///< lines, datagrams, commands
    tally messages_out;
    tally bytes_in;
    tally bytes_out;
    tally reads;   ///< pieces that came from connections, where the type counts them
    tally writes;  ///< pieces that went out
    tally errors;
    tally dropped;  ///< by a slow reader's policy or a rate limit
    /// What only this type counts: name (Prometheus style, without prefix), value.
    std::vector<std::pair<std::string, double>> more;
    /// Time from a message's arrival to its answer, in nanoseconds, where the type measures it.
    std::shared_ptr<const histogram> latency;

    /// Adds the counts of a part of the same runtime; `more` and `latency` stay.
    void add(const counters& part) noexcept {
        for (tally counters::* const each :
             {&counters::connections_now, &counters::connections_total,
              &counters::connections_refused, &counters::messages_in, &counters::messages_out,
              &counters::bytes_in, &counters::bytes_out, &counters::reads, &counters::writes,
              &counters::errors, &counters::dropped})
            this->*each += part.*each;
    }
};

/// Where a runtime reports what happens to it; lines appear in `eddy logs NAME`. Any thread.
class journal {
public:
    virtual void write(std::string_view line) = 0;

protected:
    ~journal() = default;
};

/// What a running runtime may ask of whoever runs it, about itself. Its loop's thread.
class supervisor {
public:
    virtual ~supervisor() = default;

    /// Has the runtime stopped soon, as `eddy stop` does; returns at once.
    virtual void request_stop() = 0;
    /// Keeps changed options, by their names in JSON (null takes one back), for the next start. The
    /// runtime itself is not told.
    virtual task<outcome<>> keep_options(nlohmann::json changed) = 0;
};

/// Data of a runtime between two of its instances, over a restart: a file without a name.
struct handover {
    unique_fd file;        ///< keeps it
    std::string fault;     ///< why there is none
    std::string folder;    ///< where it is, for messages
    std::string path;      ///< opens it
    bool is_used = false;  ///< an instance has written all that the next one needs
    /// The next instance starts only if its own files, new ones, get the data at once.
    bool has_new_files = false;
};

/// What a runtime is made from. `events` outlives the runtime.
struct creation {
    std::string name;
    settings options;
    journal* events;
    std::shared_ptr<supervisor> above = nullptr;  ///< null: nobody can be asked
    /// Data of the instance before, which count in place of what files have; null: none.
    std::shared_ptr<const handover> inherited = nullptr;
};

/// A runtime that exists. All members are called on its loop.
class instance {
public:
    virtual ~instance() = default;

    /// Opens what it serves on; fails without leaving anything behind. After success it serves
    /// until stop().
    virtual task<outcome<>> start() = 0;
    /// Has a start() that is under way end soon, without success. One that takes no time need not
    /// care.
    virtual void give_up_start() noexcept {}

    /// First half of a stop that loses nothing: files get what they lack while clients are still
    /// served. After success changes wait until stop() or resume(). Fails with the reason when
    /// something cannot be written; the instance then serves as before. `patience` limits the
    /// waits for others, such as replicas, not the writing itself.
    virtual task<outcome<>> prepare_stop(duration /*patience*/) { co_return outcome<>(); }
    /// In place of prepare_stop() before a restart with other options. Writes the data that the
    /// next instance would not find in its files, if there are any, and sets is_used. Fails with
    /// the reason, naming how much would be lost; the instance then serves as before.
    virtual task<outcome<>> hand_over(settings /*next*/, std::shared_ptr<handover> /*to*/,
                                      duration patience) {
        co_return co_await prepare_stop(patience);
    }
    /// No stop follows: ends prepare_stop() and hand_over(), finished or not; changes go on.
    virtual void resume() noexcept {}

    /// Stops accepting, lets connections finish for at most `drain`, then closes the rest. Without
    /// prepare_stop() before, what cannot be written is lost. The instance may be destroyed or
    /// started again afterwards.
    virtual task<void> stop(duration drain) = 0;
    /// Data that the last stop() has lost, such as "100407 keys: it has no --dir"; empty if none.
    virtual std::string lost() const { return {}; }

    virtual counters count() const = 0;

    /// The address that it serves on, with the real port; empty when it is not running.
    virtual endpoint local() const = 0;

    /// `eddy send`: what that means is the type's affair. Returns how many peers got it.
    virtual task<outcome<std::uint64_t>> send(std::string message) = 0;

    /// Whether it could be started with these options after a stop, as far as that can be told
    /// while it runs: addresses, certificates, scripts, folders. With `discards_data` its own may
    /// be replaced by that of files which the options name.
    virtual task<outcome<>> check_restart(settings /*next*/, bool /*discards_data*/) {
        co_return outcome<>();
    }
    /// Reads the files that its options name again while it serves on. False when that needs a
    /// restart. On failure it goes on with what it has read before.
    virtual task<outcome<bool>> reread() { co_return false; }

    /// Applies changed live options (`option::live`) to a running runtime.
    virtual outcome<> apply(const settings& changed) = 0;
};

/// A type of runtime.
struct type {
    std::string_view name;     ///< "server"
    std::string_view summary;  ///< one line for `eddy help create`
    std::vector<option> options;
    std::function<std::unique_ptr<instance>(creation)> make;
    /// What the table cannot say: options that exclude or need each other. start() checks the same;
    /// call it before anything is stored, so that the user hears of it at once.
    std::function<outcome<>(const settings&)> check;
    /// How much longer than others it may take to start, and to stop, because it reads or writes
    /// files then. Null: no longer.
    std::function<duration(const settings&)> file_time = {};
};

/// Every type of this build, in the order of `eddy help`.
std::span<const type> types();
const type* find_type(std::string_view name);

}  // namespace eddy::runtime
