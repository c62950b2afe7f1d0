// Choosing a route, and the answers where there is none.
#include <eddy/http/router.hpp>

#include "http/path_pattern.hpp"

#include <utility>

namespace eddy::http {
namespace {

response plain_refusal(const request&, int status, std::string_view) {
    return response(status, "text/plain; charset=utf-8",
                    std::string(http1::reason_phrase(status)) + "\n");
}

task<response> finished(response made) { co_return made; }

}  // namespace

routing find_route(std::span<const route> table, std::string_view method, std::string_view path) {
    const std::string_view wanted = method == "HEAD" ? "GET" : method;
    routing found;
    for (std::size_t i = 0; i < table.size(); ++i) {
        auto parameters = match_path(table[i].path, path);
        if (!parameters) continue;
        if (table[i].method == wanted) {
            found.index = i;
            found.parameters = std::move(*parameters);
            found.allow.clear();
            return found;
        }
        if (!found.allow.empty()) found.allow += ", ";
        found.allow += table[i].method;
        if (table[i].method == "GET") found.allow += ", HEAD";
    }
    return found;
}

router::router(refusal refuse) : refuse_(refuse ? std::move(refuse) : refusal(plain_refusal)) {}

router& router::add(std::string_view method, std::string_view path, handler to) {
    routes_.push_back({std::string(method), std::string(path)});
    handlers_.push_back(std::move(to));
    return *this;
}

task<response> router::dispatch(request& incoming) const {
    routing to = find_route(routes_, incoming.method(), incoming.path());
    if (to.index) {
        incoming.set_route(routes_[*to.index].path, std::move(to.parameters));
        return handlers_[*to.index](incoming);
    }
    response refused = refuse_(incoming, to.allow.empty() ? 404 : 405, to.allow);
    if (!to.allow.empty()) refused.add("Allow", to.allow);
    return finished(std::move(refused));
}

}  // namespace eddy::http
