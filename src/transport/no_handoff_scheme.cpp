// Scheme handoff:// in a build without the layer handoff: an error that says so.
#include "transport/failed_handoffs.hpp"
#include "transport/schemes.hpp"
#include "transport/taken_listener.hpp"

namespace eddy::transport {

constinit const scheme_entry handoff_entry = {
    "handoff",
    scheme::handoff,
    true,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    "handoff:// needs the handoff layer, which this build does not have; use unix://"};

result<listener> adopt_handoffs(unique_fd, const address&) { return fail(errc::unsupported); }

bool observe_failed_handoffs(listener&, std::function<void(std::string_view reason)>) {
    return false;
}

}  // namespace eddy::transport
