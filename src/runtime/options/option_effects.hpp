// Table of the tests that observe the effect of each option: options_test.cpp walks it, and fails
// for an option without a test.
#pragma once

#include <eddy/io/task.hpp>

#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::testing {

/// Backends on which an effect is seen.
enum class seen_on {
    every_backend,
    kernel,  ///< uring and epoll: descriptors, peers' options or threads of the kernel are needed
    sim,     ///< the simulator alone: the effect takes too long where time is real
};

struct effect {
    task<void> (*seen)(std::string type);
    seen_on on = seen_on::every_backend;
};

/// By type and name.
using effect_table = std::map<std::pair<std::string_view, std::string_view>, effect>;

/// Effects of the type client: client/options_test.cpp.
effect_table client_effects();
/// Effects of the options of hooks, of the type cache: cache/hook_options_test.cpp.
effect_table hook_effects();
/// Effects of the type external: external/options_test.cpp.
effect_table external_effects();
/// Effects of the options that only the type http has: http/options_test.cpp.
effect_table http_effects();
/// Effects of the type program: program/options_test.cpp.
effect_table program_effects();
/// Effects of the type proxy: proxy/options_test.cpp.
effect_table proxy_effects();
/// Effects of the options of a script, of the type server: server/script_options_test.cpp.
effect_table script_effects();
/// The same of a client's: client/script/options_test.cpp.
effect_table client_script_effects();
/// Effects of the options of a server's modes and commands: server/modes/mode_options_test.cpp.
effect_table mode_effects();
/// Effects of the type stream: stream/options_test.cpp.
effect_table stream_effects();

}  // namespace eddy::runtime::testing
