// Hop-by-hop fields of HTTP messages: what an intermediary must not forward (RFC 9110, 7.6.1).
#pragma once

#include <eddy/wire/http1/headers.hpp>

#include <optional>
#include <string_view>

namespace eddy::http1 {

/// Whether a field of this name belongs to one connection by itself: Connection, Keep-Alive,
/// Proxy-Authenticate, Proxy-Authentication-Info, Proxy-Authorization, Proxy-Connection, TE,
/// Trailer, Transfer-Encoding, Upgrade (RFC 9110, 7.6.1 and 11.7).
bool is_hop_by_hop(std::string_view name) noexcept;

/// Whether Connection cannot make this field one of a single connection: Cache-Control,
/// Content-Encoding, Content-Length, Content-Range, Content-Type, Date and Host. They are for all
/// recipients, so no sender may name them there (RFC 9110, 7.6.1), and the message without one is
/// another message: a peer that names Host would have it routed without one.
bool is_for_all_recipients(std::string_view name) noexcept;

/// Selection of the fields of one message that an intermediary forwards: all but those that are
/// hop-by-hop, and those that a Connection field names. All Connection fields count, their items
/// compared ignoring case; an item that is no token, such as a quoted one, names no field. Names
/// for all recipients are ignored there.
///
/// Of TE the item "trailers" passes, since a recipient that reads trailers lets a sender send them.
/// A sender of TE must name it in Connection (RFC 9110, 10.1.4): the intermediary adds that.
///
/// What an intermediary adds itself, such as Via, it adds after the selection, so that no peer can
/// have it removed by naming it. Content-Length passes, since it describes the content; writers of
/// heads have their own rules for it. Nothing is allocated. It views the list, which must outlive
/// it and not change meanwhile. One thread.
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
