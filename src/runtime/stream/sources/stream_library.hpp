// Functions of the lua source's scripts, send() and event(), and the calls of handle(request) that
// they belong to.
#pragma once

#include "runtime/stream/stream_request.hpp"
#include "script/coroutine_host.hpp"
#include "script/library.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace eddy::runtime::stream {

/// Bytes of what send() or event() is given.
inline constexpr std::size_t max_event = std::size_t{256} << 10;

/// Call of handle() for a request, which it frees once handle() has its table.
class stream_call : public script::call {
public:
    stream_call(script::coroutine_host& in, std::size_t callback,
                std::unique_ptr<stream_request> from) noexcept
        : call(in, callback), from_(std::move(from)) {}

    /// Passes an event on to the client; no results. It fails once the client has gone.
    virtual script::answer send(std::string event) = 0;

private:
    int push_arguments(lua::stack in) final;

    std::unique_ptr<stream_request> from_;
};

/// Global functions, for hosts whose calls are stream_calls.
script::library stream_library();

}  // namespace eddy::runtime::stream
