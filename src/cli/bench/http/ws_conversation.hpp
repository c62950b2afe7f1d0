// WebSocket side of a load on an echo server: the handshake, messages that were encoded beforehand,
// and a scan that compares each echo with the message. An echo in one frame is compared byte for
// byte; any other framing goes through wire/websocket's parser.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/random.hpp>
#include <eddy/wire/http1.hpp>
#include <eddy/wire/websocket.hpp>

#include "cli/bench/load.hpp"
#include "cli/bench/repeated_reply.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::cli::bench {

/// The message and its frames.
struct ws_work {
    /// A message of `size` bytes, letters for text, any for binary; `pipeline` frames of it. The
    /// masks are drawn once, not for each frame that is sent: no page chooses these bytes.
    ws_work(std::size_t size, websocket::opcode kind, std::size_t pipeline, std::uint64_t seed);

    std::string target = "/";
    http1::header_list headers;  ///< of the request, beside those of the handshake
    bool verifies = true;        ///< an echo that differs is a fault

    websocket::opcode kind;
    std::string message;
    std::string frames;
    std::size_t frame_size = 0;
    repeated_reply echo;        ///< compared up to its limit
    repeated_reply whole_echo;  ///< of the first pass
};

/// One connection. One thread. The work must outlive it.
class ws_conversation final : public conversation {
public:
    /// `is_first` compares every byte of long messages, too.
    ws_conversation(const ws_work& work, std::uint64_t seed, bool is_first);

    std::string_view open() override;
    bool is_open() const noexcept override { return is_open_; }
    std::string_view requests(std::size_t count) override {
        return std::string_view(work_.frames).substr(0, count * work_.frame_size);
    }
    scan_result scan(std::string_view received, std::size_t awaited, tally& into) override;
    std::string take_answers() override;

private:
    // True while the connection is usable.
    bool scan_handshake(std::string_view& input, tally& into);
    bool parse(std::string_view& input, scan_result& made, std::size_t awaited, tally& into);

    const ws_work& work_;
    bool is_first_;
    random_generator numbers_;
    websocket::client_offer offer_;
    byte_buffer opening_;
    std::optional<http1::response_parser> response_;  // of the handshake
    websocket::parser parser_{websocket::role::client};
    byte_buffer message_;
    byte_buffer answers_;
    std::uint64_t at_ = 0;
    bool is_open_ = false;
    bool is_parsing_ = false;
};

}  // namespace eddy::cli::bench
