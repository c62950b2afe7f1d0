// Failures of handoff:// listeners: handoffs that yield no stream.
#pragma once

#include <eddy/io/stream.hpp>

#include <functional>
#include <string_view>

namespace eddy::transport {

/// Sets the observer of a listener's failed handoffs: called with the reason of each handoff to
/// `of` that yields no stream, such as "no_descriptor". It must not throw; an empty one ends that.
/// False, without an effect, for other listeners. The loop's thread.
bool observe_failed_handoffs(listener& of, std::function<void(std::string_view reason)> observer);

}  // namespace eddy::transport
