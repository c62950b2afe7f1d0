// Hosts of authorities, as in "Example.org:80".
#pragma once

#include "base/text/text.hpp"

#include <string>
#include <string_view>

namespace eddy {

/// The host of an authority: without its port, in lower case.
inline std::string host_of(std::string_view authority) {
    const std::size_t colon = authority.rfind(':');
    if (colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos)
        authority = authority.substr(0, colon);
    // A name with a dot at its end is the same one.
    if (authority.ends_with('.')) authority.remove_suffix(1);
    return lower(authority);
}

}  // namespace eddy
