// Choosing routes by a tree of pattern segments, and the answers where there is none.
#include <eddy/http/router.hpp>

#include <eddy/base/assert.hpp>

#include "http/routing/path_pattern.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace eddy::http {
namespace {

response plain_response(int status, std::string_view what) {
    std::string text(http1::reason_phrase(status));
    if (!what.empty()) text.append(": ").append(what);
    return {status, "text/plain; charset=utf-8", std::move(text) + "\n"};
}

response plain_refusal(const request&, int status, std::string_view) {
    return plain_response(status, {});
}

task<response> finished(response made) { co_return made; }

/// Adds a method to those of a field Allow.
void allow_method(std::string& allow, std::string_view method) {
    std::string_view listed = allow;
    while (!listed.empty()) {
        const std::size_t comma = listed.find(", ");
        if (listed.substr(0, comma) == method) return;
        listed = comma == listed.npos ? std::string_view() : listed.substr(comma + 2);
    }
    if (!allow.empty()) allow += ", ";
    allow += method;
}

}  // namespace

/// A segment of patterns, with the segments that follow it.
struct router::node {
    struct end {
        std::string method;
        std::size_t index;  // of the route
    };
    struct branch;

    std::vector<branch> branches;  // in the order in which they are tried
    std::vector<end> ends;

    struct search {
        std::string_view method;
        std::vector<path_argument> arguments;  // so far
        std::string allow;
        std::optional<std::size_t> found;
    };
    bool find(search& under_way, std::string_view path) const;
    bool take(search& under_way) const;
};

struct router::node::branch {
    pattern_segment segment;
    std::unique_ptr<node> next;
};

/// The middleware of a mounted router.
struct router::mounted {
    std::vector<middleware> around;
};

bool router::node::take(search& under_way) const {
    const auto found = std::ranges::find(ends, under_way.method, &end::method);
    if (found != ends.end()) {
        under_way.found = found->index;
        return true;
    }
    for (const end& each : ends) {
        allow_method(under_way.allow, each.method);
        if (each.method == "GET") allow_method(under_way.allow, "HEAD");
    }
    return false;
}

/// `path`, decoded, is what is left of it.
bool router::node::find(search& under_way, std::string_view path) const {
    if (path.empty()) return take(under_way);
    std::string_view behind = path;
    const std::string_view segment = take_segment(behind);
    for (const branch& each : branches) {
        if (each.segment.is == pattern_segment::kind::text) {
            if (segment == each.segment.before && each.next->find(under_way, behind)) return true;
            continue;
        }
        const std::size_t known = under_way.arguments.size();
        if (each.segment.is == pattern_segment::kind::rest) {
            const std::string_view rest = path.substr(1);
            if (rest.empty()) continue;
            under_way.arguments.push_back({each.segment.name, std::string(rest)});
            if (each.next->take(under_way)) return true;
        } else if (const auto value = each.segment.match(segment)) {
            under_way.arguments.push_back({each.segment.name, std::string(*value)});
            if (each.next->find(under_way, behind)) return true;
        }
        under_way.arguments.resize(known);
    }
    return false;
}

task<response> chain::operator()(request& incoming) const {
    if (!left_.empty()) return left_.front()(incoming, chain(root_, left_.subspan(1), last_));
    return root_ != nullptr ? root_->dispatch_to_route(incoming) : (*last_)(incoming);
}

router::router() : router(refusal(plain_refusal)) {}
router::router(refusal refuse)
    : root_(std::make_unique<node>()), refuse_(std::move(refuse)), respond_(plain_response) {}
router::router(router&&) noexcept = default;
router& router::operator=(router&&) noexcept = default;
router::~router() = default;

router& router::add(std::string_view method, std::string_view pattern, handler to) {
    EDDY_PRECONDITION(http1::is_token(method), "add() to a router: the method is no token");
    const auto segments = parse_pattern(pattern);
    EDDY_PRECONDITION(segments.has_value(), "add() to a router: the pattern's form is wrong");
    node* at = root_.get();
    for (const pattern_segment& each : *segments) {
        auto place = std::ranges::find(at->branches, each, &node::branch::segment);
        if (place == at->branches.end()) {
            place = std::ranges::find_if(at->branches, [&](const node::branch& other) {
                return each.precedes(other.segment);
            });
            place = at->branches.insert(place, {each, std::make_unique<node>()});
        }
        at = place->next.get();
    }
    EDDY_PRECONDITION(std::ranges::find(at->ends, method, &node::end::method) == at->ends.end(),
                      "a second route of one method and pattern");
    at->ends.push_back({std::string(method), routes_.size()});
    routes_.push_back({std::string(method), std::string(pattern)});
    handlers_.push_back(std::move(to));
    return *this;
}

router& router::get(std::string_view pattern, handler to) {
    return add("GET", pattern, std::move(to));
}
router& router::post(std::string_view pattern, handler to) {
    return add("POST", pattern, std::move(to));
}
router& router::put(std::string_view pattern, handler to) {
    return add("PUT", pattern, std::move(to));
}
router& router::patch(std::string_view pattern, handler to) {
    return add("PATCH", pattern, std::move(to));
}
router& router::del(std::string_view pattern, handler to) {
    return add("DELETE", pattern, std::move(to));
}

router& router::mount(std::string_view prefix, router below) {
    EDDY_PRECONDITION(prefix.starts_with('/') && !prefix.ends_with('/'),
                      "mount(): the prefix begins with a '/' and does not end with one");
    auto its = std::make_shared<mounted>(std::move(below.around_));
    for (std::size_t i = 0; i < below.routes_.size(); ++i) {
        handler to = std::move(below.handlers_[i]);
        if (!its->around.empty())
            to = [around = its.get(), last = std::move(to)](request& incoming) {
                return chain(nullptr, around->around, &last)(incoming);
            };
        add(below.routes_[i].method, std::string(prefix) + below.routes_[i].path, std::move(to));
    }
    mounted_.push_back(std::move(its));
    std::ranges::move(below.mounted_, std::back_inserter(mounted_));
    return *this;
}

router& router::use(middleware around) {
    around_.push_back(std::move(around));
    return *this;
}

router& router::on_refusal(refusal refuse) {
    refuse_ = std::move(refuse);
    return *this;
}

router& router::on_error(error_responder respond) {
    respond_ = std::move(respond);
    return *this;
}

response router::reject(int status, std::string_view what) { return respond_(status, what); }

task<response> router::dispatch(request& incoming) const {
    return chain(this, around_, nullptr)(incoming);
}

task<response> router::dispatch_to_route(request& incoming) const {
    node::search search;
    search.method = incoming.method() == "HEAD" ? "GET" : incoming.method();
    std::string_view path = incoming.path();
    std::optional<std::string> decoded;
    if (path.find('%') != std::string_view::npos) {
        decoded = decode_path(path);
        path = decoded ? *decoded : std::string_view();
    }
    if (path.starts_with('/') && root_->find(search, path)) {
        incoming.set_route(std::move(search.arguments));
        return handlers_[*search.found](incoming);
    }
    return finished(refusal_of(incoming, std::move(search.allow)));
}

response router::refusal_of(const request& incoming, std::string allow) const {
    const bool is_options = incoming.method() == "OPTIONS";
    const bool is_of_all = is_options && incoming.target() == "*";
    if (is_of_all || (is_options && !allow.empty())) {
        response options(204);
        allow_method(allow, "OPTIONS");
        options.add("Allow", allow);
        return options;
    }
    response refused = refuse_(incoming, allow.empty() ? 404 : 405, allow);
    if (!allow.empty()) refused.add("Allow", allow);
    return refused;
}

}  // namespace eddy::http
