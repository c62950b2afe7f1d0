// Fuzz target of a cache's start with an append-only file of any content. It starts, or reports the
// reason; a refused file is left as it was; an accepted one is accepted again, with the same keys.
//
// The first byte chooses: the snapshot, the commands behind it, or the list of both.
#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/options/settings.hpp"
#include "runtime/type.hpp"
#include "serving/journal.hpp"

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

namespace {

using namespace eddy;
using namespace std::chrono_literals;
using nlohmann::json;
namespace fs = std::filesystem;

enum class place : std::uint8_t { commands, snapshot, list, single_file, count };

constexpr std::string_view empty_snapshot("REDIS0009\xff\0\0\0\0\0\0\0\0", 18);
constexpr std::string_view list_text =
    "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n";

struct nowhere final : serving::journal {
    void write(std::string_view) override {}
};

void put(const fs::path& at, std::string_view text) {
    std::ofstream(at, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
}

std::string content(const fs::path& at) {
    std::ifstream file(at, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

task<result<std::string>> digest(endpoint at) {
    result<stream> client = co_await loop::current().connect(at);
    if (!client) co_return std::unexpected(client.error());
    if (!co_await client->write_all("CONFIG SET requirepass ''\r\nDEBUG DIGEST\r\nPING\r\n"))
        co_return fail(errc::closed);
    std::string all;
    while (!all.ends_with("+PONG\r\n") && all.find("-NOAUTH") == std::string::npos) {
        const result<lease> got = co_await client->read();
        if (!got) co_return std::unexpected(got.error());
        all += got->text();
    }
    co_return all;
}

/// The keys after a start; empty where it does not start.
task<std::string> start_and_look(const fs::path& folder) {
    const runtime::type* const type = runtime::find_type("cache");
    EDDY_ASSERT(type != nullptr);
    nowhere events;
    const json options = {{"port", 0},
                          {"mode", "admin"},
                          {"maxmemory", "64M"},
                          {"dir", folder.string()},
                          {"appendonly", "yes"},
                          {"save", "off"},
                          {"config", "busy-reply-threshold 5"}};
    const auto parsed = runtime::settings::parse(type->options, options);
    EDDY_ASSERT(parsed);
    const auto cache = type->make({"c", *parsed, &events});
    if (!co_await cache->start()) co_return std::string();
    const result<std::string> keys = co_await with_timeout(60s, digest(cache->local()));
    EDDY_ASSERT(keys);
    co_await cache->stop(0s);
    co_return *keys;
}

task<> main_task(const fs::path& folder, place where, std::string_view text) {
    const fs::path files = folder / "appendonlydir";
    const fs::path touched[] = {files / "appendonly.aof.1.incr.aof",
                                files / "appendonly.aof.1.base.rdb",
                                files / "appendonly.aof.manifest", folder / "appendonly.aof"};
    if (where != place::single_file) {
        fs::create_directory(files);
        put(touched[0], where == place::commands ? text : std::string_view());
        put(touched[1], where == place::snapshot ? text : empty_snapshot);
        put(touched[2], where == place::list ? text : list_text);
    } else {
        put(touched[3], text);
    }
    const std::string first = co_await start_and_look(folder);
    if (first.empty()) {
        if (where == place::single_file) {
            // It may have been moved to the others.
            EDDY_ASSERT(fs::exists(touched[3]) ? content(touched[3]) == text
                                               : content(files / "appendonly.aof") == text);
        } else {
            EDDY_ASSERT(content(touched[static_cast<std::size_t>(where)]) == text);
        }
        co_return;
    }
    EDDY_ASSERT(co_await start_and_look(folder) == first);
}

/// In memory, where there is such a folder.
const fs::path& workplace() {
    static const fs::path made = [] {
        const bool has_memory = ::access("/dev/shm", W_OK) == 0;
        std::string name = has_memory ? "/dev/shm/eddy-fuzz-XXXXXX" : "/tmp/eddy-fuzz-XXXXXX";
        EDDY_ASSERT(::mkdtemp(name.data()) != nullptr);
        std::atexit([] { fs::remove_all(workplace()); });
        return fs::path(name);
    }();
    return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const auto where = static_cast<place>(data[0] % static_cast<unsigned>(place::count));
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    for (const auto& each : fs::directory_iterator(workplace())) fs::remove_all(each.path());
    loop_options options;
    options.kind = io_backend_kind::sim;
    const auto here = loop::create(options);
    EDDY_ASSERT(here);
    (*here)->run(main_task(workplace(), where, text));
    return 0;
}
