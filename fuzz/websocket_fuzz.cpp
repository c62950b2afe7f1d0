// Fuzzes the WebSocket codec: no input may crash the parser, and neither the way it is cut nor the
// way it is read may change the events; a slow decoder yields the same. Handshakes that are
// accepted are answered, and the answer fits the offer.
//
// The first byte chooses role, compression, limits and what is fuzzed; the second how the rest is
// cut, or the policy on compression.
#include "cuts.hpp"
#include "wire/websocket/reference_decoder.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace eddy;
using namespace eddy::websocket;

constexpr std::uint8_t as_client = 1;
constexpr std::uint8_t compressed = 2;
constexpr std::uint8_t tight_limits = 4;
constexpr std::uint8_t as_extensions = 8;
constexpr std::uint8_t as_protocols = 16;

std::string run(std::string_view input, std::uint8_t flags, std::uint8_t how, reading way,
                const limits& bounds) {
    parser reader((flags & as_client) != 0 ? role::client : role::server, bounds);
    reader.allow_compressed((flags & compressed) != 0);
    return transcript(reader, input, cut(input.size(), how), way);
}

void read_frames(std::string_view input, std::uint8_t flags, std::uint8_t how) {
    limits bounds;
    if ((flags & tight_limits) != 0) bounds = {.frame = 130, .message = 140};
    const role reads = (flags & as_client) != 0 ? role::client : role::server;
    const std::string expected =
        reference_decoder(reads, bounds, (flags & compressed) != 0).decode(input);
    for (const reading way : {reading::in_place, reading::collected}) {
        EDDY_ASSERT(run(input, flags, 0, way, bounds) == expected);
        EDDY_ASSERT(run(input, flags, 1, way, bounds) == expected);
        EDDY_ASSERT(run(input, flags, how, way, bounds) == expected);
    }
}

deflate_policy choose_policy(std::uint8_t byte) {
    return {.resets_own_context = (byte & 1) != 0,
            .resets_peer_context = (byte & 2) != 0,
            .own_window_bits = least_window_bits + (byte >> 2 & 7U),
            .peer_window_bits = least_window_bits + (byte >> 5 & 7U)};
}

// A server's answer to the field, which has to fit the bounds of both ends; and the field as an
// answer to a client.
void shake_hands(std::string_view field, std::string_view name, std::uint8_t policy_byte) {
    client_offer offer;
    offer.key = make_key({});
    offer.protocols = {"a", "b"};
    offer.deflate = choose_policy(policy_byte);
    http1::request_head request;
    request.method = "GET";
    request.upgrade = true;
    EDDY_ASSERT(request.headers.add("Upgrade", "websocket"));
    EDDY_ASSERT(request.headers.add("Sec-WebSocket-Version", "13"));
    EDDY_ASSERT(request.headers.add("Sec-WebSocket-Key", offer.key));
    if (!request.headers.add(name, field)) return;
    const server_policy policy{.protocols = offer.protocols, .deflate = offer.deflate};
    if (const auto agreed = check_request(request, policy)) {
        if (agreed->deflate) {
            EDDY_ASSERT(agreed->deflate->server_max_window_bits <= policy.deflate->own_window_bits);
            EDDY_ASSERT(agreed->deflate->client_max_window_bits <=
                        policy.deflate->peer_window_bits);
        }
        http1::header_list answer;
        EDDY_ASSERT(add_response_fields(answer, *agreed));
    }
    http1::response_head response;
    response.status = 101;
    response.upgrade = true;
    EDDY_ASSERT(response.headers.add("Upgrade", "websocket"));
    EDDY_ASSERT(response.headers.add("Sec-WebSocket-Accept", accept_of(offer.key)));
    EDDY_ASSERT(response.headers.add(name, field));
    if (const auto agreed = check_response(response, offer); agreed && agreed->deflate) {
        EDDY_ASSERT(agreed->deflate->client_max_window_bits <= offer.deflate->own_window_bits);
        EDDY_ASSERT(agreed->deflate->server_max_window_bits <= offer.deflate->peer_window_bits);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
    if ((data[0] & as_extensions) != 0)
        shake_hands(input, "Sec-WebSocket-Extensions", data[1]);
    else if ((data[0] & as_protocols) != 0)
        shake_hands(input, "Sec-WebSocket-Protocol", data[1]);
    else
        read_frames(input, data[0], data[1]);
    return 0;
}
