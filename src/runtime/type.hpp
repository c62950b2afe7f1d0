// Type of a runtime: the table of its options and the factory of its instances; all types of this
// build.
#pragma once

#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "runtime/instance.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace eddy::runtime {

/// A type of runtime.
struct type {
    std::string_view name;     ///< "server"
    std::string_view summary;  ///< one line for `eddy help create`
    std::vector<option> options;
    std::function<std::unique_ptr<instance>(creation)> make;
    /// Rules that the table cannot express: options that exclude or need each other. start() checks
    /// the same; call it before anything is stored, so that a refusal stores nothing new.
    std::function<outcome<>(const settings&)> check;
    /// Additional time that a start, or a stop, may take to read or write files. Null: none.
    std::function<duration(const settings&)> file_time = {};
    /// Clients over a restart.
    enum class restart_clients : std::uint8_t {
        served,  ///< the next instance accepts them while those of the one before finish
        wait,    ///< its data must not be in two instances: one stops before the next one starts
        none,    ///< it listens nowhere
    };
    restart_clients over_restart = restart_clients::served;
    /// Time until an instance of the type that was replaced closes its clients, where the type has
    /// one of its own; 0: the daemon's drain.
    duration replaced_time{};
    /// Parameters, set by commands of its clients, whose values are passwords: a client keeps such
    /// commands in no history. Constants of the program.
    std::span<const std::string_view> secret_parameters = {};
    /// Its instances show the messages that they receive to followers: host::show_received().
    bool shows_messages = false;
    /// Checks that files which the options name can be read, of options that a user gives. One that
    /// goes later is the business of the instance. Null: none are checked.
    std::function<outcome<>(const settings&)> check_files = {};
    /// Its instances use other runtimes of the daemon: a shutdown stops them first.
    bool uses_others = false;
    /// Names of the callbacks of its scripts; empty: it has none, or the program has no scripts.
    std::vector<std::string_view> script_callbacks = {};
    /// Fields of the table `self` of its scripts; null: it has none, or the program has no scripts.
    std::vector<std::string> (*script_functions)() = nullptr;
};

/// Every type of this build, in the order of `eddy help`.
std::span<const type> types();
const type* find_type(std::string_view name);

}  // namespace eddy::runtime
