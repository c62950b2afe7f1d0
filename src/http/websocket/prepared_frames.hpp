// Frames of a prepared message, in the forms that servers' WebSockets need. Any thread.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/wire/websocket.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>

namespace eddy::http::detail {

class prepared_frames {
public:
    using shared_frame = std::shared_ptr<const byte_buffer>;
    /// A frame, and whether its payload is compressed.
    struct form {
        shared_frame frame;
        bool is_compressed = false;
    };

    /// Copies the content. Throws std::bad_alloc.
    prepared_frames(eddy::websocket::opcode kind, std::string_view content);

    eddy::websocket::opcode kind() const noexcept { return kind_; }
    std::string_view content() const noexcept {
        return plain_->text().substr(plain_->size() - size_);
    }
    /// True if it may be sent: binary, or UTF-8.
    bool is_valid() const noexcept { return is_valid_; }

    /// The uncompressed frame, without a mask.
    form plain() const noexcept { return {plain_, false}; }
    /// The frame compressed from an empty window of so many bits, made by the first call; the plain
    /// one where that is not longer. Fails with ENOMEM.
    result<form> compressed(unsigned window_bits);

private:
    shared_frame compress(unsigned window_bits) const;

    eddy::websocket::opcode kind_;
    bool is_valid_;
    std::size_t size_;
    shared_frame plain_;
    std::mutex guard_;
    std::array<shared_frame, eddy::websocket::most_window_bits + 1> by_window_;
};

}  // namespace eddy::http::detail
