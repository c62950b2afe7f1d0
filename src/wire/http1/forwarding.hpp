// Hop-by-hop fields of HTTP messages: what an intermediary must not forward (RFC 9110, 7.6.1).
#pragma once

#include <eddy/wire/http1/headers.hpp>

#include <optional>
#include <string_view>

namespace eddy::http1 {

/// True for methods whose requests may be sent again when no response has come (RFC 9110, 9.2.2):
/// GET, HEAD, OPTIONS, TRACE, PUT and DELETE.
bool is_idempotent(std::string_view method) noexcept;

/// True for hop-by-hop fields whatever Connection names: Connection, Keep-Alive,
/// Proxy-Authenticate, Proxy-Authentication-Info, Proxy-Authorization, Proxy-Connection, TE,
/// Trailer, Transfer-Encoding, Upgrade (RFC 9110, 7.6.1 and 11.7).
bool is_hop_by_hop(std::string_view name) noexcept;

/// True for fields that Connection cannot make hop-by-hop: Cache-Control, Content-Encoding,
/// Content-Length, Content-Range, Content-Type, Date and Host. They are for all recipients, so a
/// sender must not name them there (RFC 9110, 7.6.1). Without one the message has another meaning:
/// a request that loses its Host is routed elsewhere.
bool is_for_all_recipients(std::string_view name) noexcept;

/// Selection of the fields of one message that an intermediary forwards: all except hop-by-hop
/// fields and fields that a Connection field names. All Connection fields count; their items are
/// compared ignoring case. An item that is no token, such as a quoted one, names no field. Names
/// for all recipients are ignored there.
///
/// Of TE the item "trailers" passes, since a recipient that reads trailers lets a sender send them.
/// A sender of TE must name it in Connection (RFC 9110, 10.1.4): the intermediary adds that.
///
/// Fields that the intermediary adds itself, such as Via, are added after the selection, so that a
/// peer cannot remove them by naming them. Content-Length passes, since it describes the content;
/// writers of heads have their own rules for it. Nothing is allocated. The list is viewed: it must
/// outlive this object and not change meanwhile. One thread.
class end_to_end_fields {
public:
    explicit end_to_end_fields(const header_list& of) noexcept;

    /// The field of that list as it is forwarded; none if it must not be.
    std::optional<header> forwarded(header field) const noexcept;

private:
    bool is_named(std::string_view name) const noexcept;

    const header_list& all_;
    bool names_fields_ = false;  // Connection has other items than close and keep-alive
};

/// Removes the fields of a message that must not be forwarded, as end_to_end_fields selects them,
/// and reduces TE to "trailers". Allocates nothing.
void remove_hop_by_hop(header_list& from) noexcept;

}  // namespace eddy::http1
