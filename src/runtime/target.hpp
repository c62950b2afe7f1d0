// Addresses that a runtime connects to, as options name them.
#pragma once

#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"

#include <string_view>

namespace eddy::runtime {

/// Host of an address that names none.
inline constexpr std::string_view this_machine = "127.0.0.1";

/// Host and port, as tcp:// and tls:// have them.
inline bool has_port(const transport::address& of) noexcept {
    return of.kind == transport::scheme::tcp || of.kind == transport::scheme::tls;
}

/// The address that `text` names: a URI to connect to, HOST:PORT or :PORT, which is one of this
/// machine. The refusal (400) says what is wrong with the value of `flag`, such as "--backend".
outcome<transport::address> read_target(std::string_view text, std::string_view flag);

/// Checks that the files of TLS which the address names can be read now. The refusal has `flag` and
/// the file.
outcome<> check_target_files(const transport::address& of, std::string_view flag);

}  // namespace eddy::runtime
