// A client of http and https: fetches URLs, all at the same time, and prints what they have.
//
//     fetch URL...
#include <eddy/http/client_pool.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace eddy;

task<result<std::string>> fetch(http::client_pool& web, std::string url) {
    auto answer = co_await web.get(url);
    if (!answer) co_return fail(answer.error());
    std::string text = std::to_string(answer->status) + " " + answer->url + "\n";
    while (auto piece = co_await answer->body().read()) text += *piece;
    if (!answer->body().ended()) co_return fail(errc::truncated);
    co_return text;
}

task<> fetch_into(http::client_pool& web, std::string url, result<std::string>& into) {
    into = co_await fetch(web, url);
}

task<bool> fetch_all(std::vector<std::string> urls) {
    http::client_pool web;
    std::vector<result<std::string>> pages(urls.size());
    co_await join_scope([&](scope& all) -> task<> {
        for (std::size_t i = 0; i < urls.size(); ++i) all.spawn(fetch_into(web, urls[i], pages[i]));
        co_return;
    });
    bool is_whole = true;
    for (std::size_t i = 0; i < urls.size(); ++i) {
        if (pages[i])
            std::fwrite(pages[i]->data(), 1, pages[i]->size(), stdout);
        else
            std::fprintf(stderr, "%s: %s\n", urls[i].c_str(), pages[i].error().message().c_str());
        is_whole &= pages[i].has_value();
    }
    co_return is_whole;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: fetch URL...\n", stderr);
        return 1;
    }
    auto made = loop::create();
    if (!made) {
        std::fprintf(stderr, "no event loop: %s\n", made.error().message().c_str());
        return 1;
    }
    return (*made)->run(fetch_all({argv + 1, argv + argc})) ? 0 : 1;
}
