// One client of the cache: what is remembered between its commands.
#pragma once

#include <eddy/base/intrusive_list.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::cache {

class engine;

/// Lives as long as its connection, on the engine's thread, and no longer than the engine. The
/// connection looks at `closing` after each engine::execute(), sends what was replied and closes.
/// The other members are the engine's to change. Some 250 bytes.
struct session : list_link<> {
    /// `address` and `local_address` as CLIENT LIST shows them, "127.0.0.1:4711" or a socket's
    /// path.
    explicit session(engine& home, std::string_view address = {},
                     std::string_view local_address = {});
    ~session();

    engine& home;
    std::uint64_t id;
    std::int64_t created_us;
    std::int64_t last_used_us;
    std::string address;
    std::string local_address;
    std::string name;
    std::string library_name;
    std::string library_version;
    const char* last_command = "NULL";  ///< its lower-case name, a static text
    std::uint8_t protocol = 2;          ///< 2 or 3
    std::uint8_t db = 0;
    /// False while a password is set and was not given: such a client may send little only, see
    /// resp::request_limits.
    bool authenticated = true;
    /// QUIT was answered: nothing more is to be executed.
    bool closing = false;
    bool no_evict = false;
};

}  // namespace eddy::cache
