// Fields of responses by files.
#include "http/files/file_response.hpp"

#include <eddy/http/multipart.hpp>

#include "http/fields/byte_ranges.hpp"
#include "http/fields/conditionals.hpp"
#include "http/files/multipart_ranges.hpp"

#include <optional>
#include <string>
#include <utility>

namespace eddy::http {
namespace {

/// The field Range of a request that has exactly one, and whose conditions it fulfils.
range_selection ranges_of(const request& incoming, const validators& valid, std::uint64_t size) {
    if (incoming.method() != "GET") return {};
    std::optional<std::string_view> field;
    for (const http1::header each : incoming.headers()) {
        if (!http1::equal_ignoring_case(each.name, "Range")) continue;
        if (field) return {};
        field = each.value;
    }
    if (!field || !is_range_wanted(incoming.headers(), valid)) return {};
    return select_ranges(*field, size);
}

void add_validators(response& to, const representation& chosen, bool varies,
                    std::string_view cache_control) {
    to.add("ETag", chosen.etag);
    if (!chosen.last_modified.empty()) to.add("Last-Modified", chosen.last_modified);
    if (varies) to.add("Vary", "Accept-Encoding");
    if (!cache_control.empty()) to.add("Cache-Control", cache_control);
}

}  // namespace

response plain_response(int status) {
    return response(status, "text/plain; charset=utf-8",
                    std::string(http1::reason_phrase(status)) + "\n");
}

file_response respond_with(const request& incoming, const representation& chosen,
                           const media_type& type, bool varies, std::string_view cache_control,
                           std::int64_t now) {
    const validators valid{chosen.etag, chosen.modified, now};
    const std::uint64_t size = chosen.size();
    file_response made;
    switch (evaluate_preconditions(incoming.headers(), valid, true)) {
        case precondition::failed: made.head = plain_response(412); return made;
        case precondition::not_modified:
            made.head.status = 304;
            add_validators(made.head, chosen, varies, cache_control);
            return made;
        case precondition::holds: break;
    }
    const range_selection selected = ranges_of(incoming, valid, size);
    if (selected.what == range_selection::kind::unsatisfiable) {
        made.head = plain_response(416);
        made.head.add("Content-Range", content_range_of_none(size));
        return made;
    }
    made.has_content = true;
    std::string content_type(type.name);
    if (selected.what == range_selection::kind::whole) {
        made.parts.push_back({{}, 0, size});
    } else if (selected.ranges.size() == 1) {
        made.head.status = 206;
        made.head.add("Content-Range", content_range(selected.ranges[0], size));
        made.parts.push_back({{}, selected.ranges[0].first, selected.ranges[0].size});
    } else {
        made.head.status = 206;
        const std::string boundary = make_boundary();
        made.parts = multipart_ranges(selected.ranges, size, type.name, boundary);
        content_type = "multipart/byteranges; boundary=" + boundary;
    }
    made.head.add("Content-Type", content_type);
    if (chosen.coding != content_coding::identity)
        made.head.add("Content-Encoding", to_string(chosen.coding));
    add_validators(made.head, chosen, varies, cache_control);
    made.head.add("Accept-Ranges", "bytes");
    return made;
}

}  // namespace eddy::http
