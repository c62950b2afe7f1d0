// Address of a socket that is opened for another program.
#pragma once

#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"

#include <string>

namespace eddy::runtime {

/// PORT, :PORT of this machine, HOST:PORT, *:PORT, tcp://HOST:PORT, udp://HOST:PORT or
/// unix:///PATH. Refuses (400) other texts.
outcome<transport::address> read_socket_address(const std::string& text);

}  // namespace eddy::runtime
