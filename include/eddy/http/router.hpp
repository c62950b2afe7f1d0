// Router: a table of methods and path patterns, each with the handler of its requests.
#pragma once

#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// A method and a path such as "/v1/runtimes/{name}/start", where {name} stands for one segment.
struct route {
    std::string method;
    std::string path;
};

/// The route of a request.
struct routing {
    std::optional<std::size_t> index;  ///< of the route in the table
    std::vector<std::string> parameters;
    std::string allow;  ///< when only the method is wrong: those that would do
};

/// Finds the route of a request; HEAD goes where GET does.
routing find_route(std::span<const route> table, std::string_view method, std::string_view path);

/// Routes with their handlers. Add them all before it serves. One loop's thread.
class router {
public:
    /// Answers a request; it may be a plain callable that returns the task of a coroutine.
    using handler = std::function<task<response>(request& incoming)>;
    /// Answers a request that fits no route: 404, or 405 where only the method is wrong and `allow`
    /// has the right ones. The router adds the field Allow.
    using refusal =
        std::function<response(const request& incoming, int status, std::string_view allow)>;

    /// Without a `refuse`, refusals are a line of text.
    explicit router(refusal refuse = nullptr);

    /// Requests of this method and path go to `to`. GET also gets HEAD.
    router& add(std::string_view method, std::string_view path, handler to);

    /// All routes, in the order in which they were added.
    std::span<const route> routes() const noexcept { return routes_; }

    /// Answers a request by its route's handler, or a refusal. The router and the request must live
    /// until then.
    task<response> dispatch(request& incoming) const;

private:
    std::vector<route> routes_;
    std::vector<handler> handlers_;  // of the same index
    refusal refuse_;
};

}  // namespace eddy::http
