// Loading of a site's script, and its calls.
#include "runtime/http/script/site_script.hpp"

#include "runtime/http/script/site_callbacks.hpp"
#include "runtime/scripting/http_callback.hpp"
#include "runtime/scripting/loop_script.hpp"
#include "runtime/scripting/script_names.hpp"

#include <array>
#include <utility>

namespace eddy::runtime::http {
namespace {

constexpr std::size_t on_http_request = first_own_callback;

script_type site_script_type(const script_identity& of) {
    script_type made;
    made.callbacks = site_callbacks();
    made.fields = {{"name", of.name},
                   {"port", static_cast<double>(of.port)},
                   {"type", std::string("http")},
                   {"state", std::string("running")},
                   {"protocol", std::string("tcp")}};
    made.daemon = of.daemon;
    return made;
}

class loaded_script final : public site_script {
public:
    loaded_script(const script_config& from, const script_identity& identity,
                  serving::journal& lines)
        : file_(from.file),
          max_body_(from.body),
          script_(site_script_type(identity), from, lines) {}

    task<outcome<>> start() override {
        auto loaded = co_await script_.load_in_slices(std::exchange(file_, {}));
        if (!loaded) co_return loaded;
        co_return co_await script_.start();
    }
    task<outcome<>> prepare(script_file by) override { return script_.prepare(std::move(by)); }
    void adopt() override { script_.adopt(); }
    void discard() override { script_.discard(); }
    task<void> stop(duration limit) override { return script_.stop(limit); }
    task<void> end(duration limit) override { return script_.end(limit); }

    bool answers() const noexcept override { return script_.defines(on_http_request); }
    task<std::optional<eddy::http::response>> answer(eddy::http::request& incoming) override {
        return answer_by(script_, on_http_request, incoming, max_body_);
    }
    const script_tallies& counted() const noexcept override { return script_.counted(); }

private:
    script_file file_;  // until it is loaded
    const std::size_t max_body_;
    loop_script script_;
};

}  // namespace

std::span<const script::callback> site_callbacks() {
    static const std::array<script::callback, 1> all = {http_request_callback()};
    return all;
}

outcome<std::unique_ptr<site_script>> site_script::make(const script_config& from,
                                                        const script_identity& identity,
                                                        serving::journal& lines) {
    return std::make_unique<loaded_script>(from, identity, lines);
}

outcome<> try_site_script(const script_config& from) {
    return try_script(site_script_type({}), from);
}

task<outcome<>> try_site_script_in_slices(script_config from) {
    return try_script_in_slices(site_script_type({}), std::move(from));
}

std::vector<std::string> site_functions() { return functions_of(site_script_type({})); }

}  // namespace eddy::runtime::http
