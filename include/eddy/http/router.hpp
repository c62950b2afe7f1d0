// Router: methods and path patterns, each with the handler of its requests, and middleware around
// them.
//
//     http::router api;
//     api.get("/users/{id:int}", show_user)
//         .post("/users", add_user)
//         .get("/files/{path...}", send_file)
//         .use(log_requests);
//
// A pattern's segments are text, or have one parameter each: {name} stands for any text of a
// segment, {name:int} for a decimal integer, and "{name}.json" has text around it. {name...} at the
// end stands for all segments that are left, at least one. Where several patterns fit a path, the
// first segment in which they differ decides: text before a parameter, an integer before any text,
// one with text around it before one without, and the rest of the path last. A pattern that lacks
// the request's method gives way to the next one.
//
// Paths are compared decoded: a segment of %61 is "a". A segment with an encoded slash, NUL or
// other control byte fits no pattern.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// A method and a path pattern.
struct route {
    std::string method;  ///< "GET" and so on
    std::string path;    ///< the pattern
};

class router;

/// The middleware that is left for a request, and its handler behind that. It may be copied; valid
/// until the request's response. One loop's thread.
class chain {
public:
    /// Passes the request on and awaits its response. Call it at most once. Yields the response;
    /// an exception of a handler comes out of it.
    task<response> operator()(request& incoming) const;

private:
    friend class router;
    using middleware = std::function<task<response>(request& incoming, chain rest)>;
    using handler = std::function<task<response>(request& incoming)>;
    chain(const router* root, std::span<const middleware> left, const handler* last) noexcept
        : root_(root), left_(left), last_(last) {}

    const router* root_;  // finds the handler; null where that is known
    std::span<const middleware> left_;
    const handler* last_;
};

/// Routes with their handlers; a request_handler for sessions. Everything is added before it
/// serves, by one thread. Then it is not changed, and several threads may use it at a time, each
/// with a loop, if the handlers may.
class router final : public request_handler {
public:
    /// Answers a request; it may be a plain callable that returns the task of a coroutine.
    using handler = chain::handler;
    /// Runs around handlers: `rest` calls them, and their response may be changed.
    using middleware = chain::middleware;
    /// Answers a request that fits no route: 404, or 405 where only the method is wrong and `allow`
    /// has the right ones. The router adds the field Allow.
    using refusal =
        std::function<response(const request& incoming, int status, std::string_view allow)>;
    /// Answers a request that is malformed, too large, too slow, or whose handler threw.
    using error_responder = std::function<response(int status, std::string_view what)>;

    /// Refusals and errors are a line of text.
    router();
    /// The same with refusals by `refuse`.
    explicit router(refusal refuse);
    /// `other` may then only be assigned to or destroyed.
    router(router&& other) noexcept;
    /// The same.
    router& operator=(router&& other) noexcept;
    ~router();

    /// Requests of this method and path go to `to`. GET also gets HEAD, and OPTIONS is answered
    /// with the methods that a path has. A pattern that is malformed or there already is refused by
    /// assertion.
    router& add(std::string_view method, std::string_view pattern, handler to);
    /// The same for GET.
    router& get(std::string_view pattern, handler to);
    /// The same for POST.
    router& post(std::string_view pattern, handler to);
    /// The same for PUT.
    router& put(std::string_view pattern, handler to);
    /// The same for PATCH.
    router& patch(std::string_view pattern, handler to);
    /// The same for DELETE.
    router& del(std::string_view pattern, handler to);

    /// Adds the routes of another router below `prefix`, such as "/api", with its middleware around
    /// them. Its refusals and errors are this router's.
    router& mount(std::string_view prefix, router below);

    /// Adds middleware around everything that this router answers, refusals included. The first one
    /// added is the outermost.
    router& use(middleware around);

    /// Sets the answer to requests without a route.
    router& on_refusal(refusal refuse);
    /// Sets the answer to errors.
    router& on_error(error_responder respond);

    /// All routes, in the order in which they were added.
    std::span<const route> routes() const noexcept { return routes_; }

    /// Answers a request by its route's handler, or a refusal. The router and the request must live
    /// until then. Yields the response; an exception of a handler comes out of it. Errors are
    /// responses.
    task<response> dispatch(request& incoming) const;

    /// As dispatch(). Yields the same.
    task<response> handle(request& incoming) override { return dispatch(incoming); }
    response reject(int status, std::string_view what) override;

private:
    friend class chain;
    struct node;
    struct mounted;
    task<response> dispatch_to_route(request& incoming) const;
    response refusal_of(const request& incoming, std::string allow) const;

    std::unique_ptr<node> root_;
    std::vector<route> routes_;
    std::vector<handler> handlers_;                  // of the same index
    std::vector<std::shared_ptr<mounted>> mounted_;  // that handlers refer to
    std::vector<middleware> around_;
    refusal refuse_;
    error_responder respond_;
};

}  // namespace eddy::http
