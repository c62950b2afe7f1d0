// llhttp as the second opinion on requests: for tests and the fuzz target to compare with.
#pragma once

#include <eddy/wire/http1.hpp>

#include "wire/http1/text.hpp"

#include <llhttp.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http1 {

/// A request as a parser has reported it.
struct reported_request {
    std::string method;
    std::string target;
    unsigned minor_version = 0;
    std::vector<std::pair<std::string, std::string>> fields;  // without the white space around
    std::string body;
    std::vector<std::pair<std::string, std::string>> trailers;
    bool keep_alive = false;
};

/// The complete requests at the beginning of an input, up to the first that closes.
struct report {
    std::vector<reported_request> requests;
    int error = 0;  // of llhttp: its code
};

inline report report_of_eddy(std::string_view input) {
    report out;
    request_parser parser;
    reported_request now;
    for (;;) {
        const step one = parser.parse(input);
        input.remove_prefix(one.consumed);
        switch (one.what) {
            case event::need_more:
            case event::error: return out;
            case event::head: {
                const request_head& head = parser.head();
                now = {head.method, head.target, head.minor_version, {}, {}, {}, head.keep_alive};
                for (const header h : head.headers) now.fields.emplace_back(h.name, h.value);
                break;
            }
            case event::body: now.body += one.body; break;
            case event::end:
                for (const header h : parser.trailers()) now.trailers.emplace_back(h.name, h.value);
                out.requests.push_back(now);
                if (!now.keep_alive || now.method == "CONNECT") return out;
                break;
        }
    }
}

/// State of one run of llhttp, which reports texts in pieces.
struct llhttp_run {
    report out;
    reported_request now;
    std::string name;
    std::string value;
    bool in_value = false;
    bool in_trailers = false;

    void end_field() {
        if (in_value) {
            auto& list = in_trailers ? now.trailers : now.fields;
            list.emplace_back(std::exchange(name, {}), trim(value));
            value.clear();
        }
        in_value = false;
    }
    static llhttp_run& of(llhttp_t* parser) { return *static_cast<llhttp_run*>(parser->data); }
};

inline report report_of_llhttp(std::string_view input) {
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_message_begin = [](llhttp_t* p) {
        llhttp_run& run = llhttp_run::of(p);
        run.now = {};
        run.in_trailers = false;
        return 0;
    };
    settings.on_url = [](llhttp_t* p, const char* at, std::size_t size) {
        llhttp_run::of(p).now.target.append(at, size);
        return 0;
    };
    settings.on_header_field = [](llhttp_t* p, const char* at, std::size_t size) {
        llhttp_run::of(p).end_field();
        llhttp_run::of(p).name.append(at, size);
        return 0;
    };
    settings.on_header_value = [](llhttp_t* p, const char* at, std::size_t size) {
        llhttp_run::of(p).in_value = true;
        llhttp_run::of(p).value.append(at, size);
        return 0;
    };
    settings.on_headers_complete = [](llhttp_t* p) {
        llhttp_run& run = llhttp_run::of(p);
        run.end_field();
        run.in_trailers = true;
        run.now.method = llhttp_method_name(static_cast<llhttp_method_t>(p->method));
        run.now.minor_version = p->http_minor;
        return 0;
    };
    settings.on_body = [](llhttp_t* p, const char* at, std::size_t size) {
        llhttp_run::of(p).now.body.append(at, size);
        return 0;
    };
    settings.on_message_complete = [](llhttp_t* p) {
        llhttp_run& run = llhttp_run::of(p);
        run.end_field();
        run.now.keep_alive = llhttp_should_keep_alive(p) != 0;
        run.out.requests.push_back(run.now);
        return 0;
    };
    llhttp_run run;
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    parser.data = &run;
    for (;;) {
        const llhttp_errno_t error = llhttp_execute(&parser, input.data(), input.size());
        if (error != HPE_PAUSED_UPGRADE) {
            run.out.error = error;
            return run.out;
        }
        // Eddy's parser leaves it to its caller whether the connection leaves HTTP.
        input.remove_prefix(static_cast<std::size_t>(llhttp_get_error_pos(&parser) - input.data()));
        llhttp_resume_after_upgrade(&parser);
    }
}

/// Errors of llhttp about requests that Eddy may accept: methods and versions that it does not
/// know, a tab behind a Content-Length (RFC 9112, 5: any white space), empty items of a list of
/// codings, blanks before a chunk's extension, and absolute targets of other schemes' forms.
inline bool is_stricter(int error) {
    return error == HPE_INVALID_METHOD || error == HPE_INVALID_VERSION ||
           error == HPE_INVALID_CONTENT_LENGTH || error == HPE_INVALID_TRANSFER_ENCODING ||
           error == HPE_INVALID_CHUNK_SIZE || error == HPE_INVALID_URL || error == HPE_STRICT;
}

/// First difference in the requests that Eddy accepts, which llhttp must report the same; empty
/// without one.
inline std::string difference_to_llhttp(std::string_view input) {
    const report ours = report_of_eddy(input);
    const report theirs = report_of_llhttp(input);
    const std::size_t both = std::min(ours.requests.size(), theirs.requests.size());
    for (std::size_t i = 0; i < both; ++i) {
        const reported_request& a = ours.requests[i];
        const reported_request& b = theirs.requests[i];
        const std::string which = " of request " + std::to_string(i) + " differs";
        if (a.method != b.method) return "the method" + which;
        if (a.target != b.target) return "the target" + which;
        if (a.minor_version > 1 || a.minor_version != b.minor_version) return "the version" + which;
        if (a.fields != b.fields) return "a field" + which;
        if (a.method == "CONNECT") return {};  // its content is not HTTP to llhttp
        if (a.body != b.body) return "the body" + which;
        if (a.trailers != b.trailers) return "a trailer" + which;
        if (a.keep_alive && !b.keep_alive) return "keep-alive" + which;
    }
    if (ours.requests.size() > both && !is_stricter(theirs.error))
        return "a request is missing, error " + std::to_string(theirs.error);
    return {};
}

}  // namespace eddy::http1
