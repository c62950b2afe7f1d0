// Reader of Sec-WebSocket-Extensions, and the negotiation of permessage-deflate on both ends.
#pragma once

#include <eddy/wire/websocket/handshake.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace eddy::websocket {

inline constexpr std::string_view deflate_name = "permessage-deflate";

/// Reader of one field's value: `token *( ";" token [ "=" ( token / quoted-string ) ] )`, separated
/// by commas.
class extension_reader {
public:
    explicit extension_reader(std::string_view field) noexcept : rest_(field) {}

    /// The name of the next extension, after all parameters of the one before; empty at the end,
    /// and when the value is malformed.
    std::string_view next_extension() noexcept;

    struct parameter {
        std::string_view name;  // empty behind the last one, and when the value is malformed
        std::optional<std::string> value;
    };
    /// The next parameter of the extension.
    parameter next_parameter();

    bool is_malformed() const noexcept { return is_malformed_; }

private:
    void skip_blanks() noexcept;
    bool take(char c) noexcept;
    std::string_view take_token() noexcept;
    bool take_quoted(std::string& value);

    std::string_view rest_;
    bool is_malformed_ = false;
};

/// The parameters of one permessage-deflate, offered or agreed on.
struct deflate_parameters {
    bool is_valid = true;  // known ones only, each once, with a value where it must have one
    bool has_server_no_context_takeover = false;
    bool has_client_no_context_takeover = false;
    bool has_client_max_window_bits = false;
    std::optional<unsigned> server_max_window_bits;
    std::optional<unsigned> client_max_window_bits;
};

/// Reads them behind the extension's name.
deflate_parameters read_deflate(extension_reader& reader);

/// Server side: the terms for an offer; none if it cannot be met. `answer` gets the value to send.
std::optional<deflate_terms> accept_deflate(const deflate_parameters& offer,
                                            const deflate_policy& policy, std::string& answer);

/// Client side: the value to send.
std::string offer_deflate(const deflate_policy& policy);

/// Client side: the terms of an answer; none if it does not fit what was offered.
std::optional<deflate_terms> confirm_deflate(const deflate_parameters& answer,
                                             const deflate_policy& policy);

}  // namespace eddy::websocket
