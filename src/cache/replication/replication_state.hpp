// State of an engine's links to other servers.
#pragma once

#include <eddy/base/random.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace eddy::cache {

class migrations;
class replication;

/// Hexadecimal digits.
inline constexpr std::size_t run_id_size = 40;
std::string make_run_id(random_generator& random);
void write_run_id(std::span<char> to, random_generator& random) noexcept;

/// Member `replication` of engine_state. Null is what is not attached.
struct replication_state {
    std::string run_id;                        // 40 hexadecimal digits
    std::unique_ptr<replication> replicating;  // masters and replicas
    std::unique_ptr<migrations> migrating;     // keys on their way to other servers
};

}  // namespace eddy::cache
