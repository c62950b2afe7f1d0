// Digests that need the layer tls.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace eddy::transport {

/// tls::md5(); nothing in builds without TLS, too.
std::optional<std::string> md5(std::string_view bytes);

}  // namespace eddy::transport
