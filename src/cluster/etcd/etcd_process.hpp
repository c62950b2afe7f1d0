// Test fixture: real servers of etcd at free ports, each in a folder of its own, which may be
// killed, stopped and started again.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include "base/files/temporary_folder.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cluster::testing {

/// A port that was free a moment ago.
inline std::uint16_t free_port() {
    const unique_fd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(probe.get(), reinterpret_cast<const sockaddr*>(&at), size) != 0 ||
        ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0)
        throw std::runtime_error("no free port");
    return ntohs(at.sin_port);
}

/// One server. It is killed by the destructor. One thread; calls block for the process alone, not
/// until it serves.
class etcd_process {
public:
    /// Files of TLS for clients; empty: none. Clients need a certificate of the same authority.
    struct tls_files {
        std::string ca = {};
        std::string cert = {};
        std::string key = {};
    };

    /// A member of the cluster `all`, as --initial-cluster has it; made by make_cluster().
    etcd_process(std::string name, std::uint16_t client_port, std::uint16_t peer_port,
                 std::string all, std::vector<std::string> more, tls_files files)
        : name_(std::move(name)),
          client_port_(client_port),
          peer_port_(peer_port),
          all_(std::move(all)),
          more_(std::move(more)),
          files_(std::move(files)) {}
    etcd_process(const etcd_process&) = delete;
    etcd_process& operator=(const etcd_process&) = delete;
    ~etcd_process() { kill(); }

    /// False where there is no etcd.
    static bool is_installed() {
        return std::system("command -v etcd >/dev/null 2>&1") == 0;  // NOLINT(cert-env33-c)
    }

    void start() {
        const std::string scheme = files_.cert.empty() ? "http" : "https";
        const std::string clients = scheme + "://127.0.0.1:" + std::to_string(client_port_);
        const std::string peers = "http://127.0.0.1:" + std::to_string(peer_port_);
        std::vector<std::string> words{"etcd",
                                       "--name",
                                       name_,
                                       "--data-dir",
                                       folder_.file("data"),
                                       "--listen-client-urls",
                                       clients,
                                       "--advertise-client-urls",
                                       clients,
                                       "--listen-peer-urls",
                                       peers,
                                       "--initial-advertise-peer-urls",
                                       peers,
                                       "--initial-cluster",
                                       all_,
                                       "--initial-cluster-token",
                                       folder_token(),
                                       "--logger",
                                       "zap"};
        if (!files_.cert.empty())
            for (const std::string& word :
                 {std::string("--cert-file"), files_.cert, std::string("--key-file"), files_.key,
                  std::string("--trusted-ca-file"), files_.ca, std::string("--client-cert-auth")})
                words.push_back(word);
        words.insert(words.end(), more_.begin(), more_.end());
        std::vector<char*> arguments;
        for (std::string& each : words) arguments.push_back(each.data());
        arguments.push_back(nullptr);
        const std::string log = folder_.file("log");
        child_ = ::fork();
        if (child_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
            ::dup2(out, STDOUT_FILENO);
            ::dup2(out, STDERR_FILENO);
            ::execvp(arguments[0], arguments.data());
            ::_exit(127);
        }
        if (child_ < 0) throw std::runtime_error("fork() failed");
    }
    void kill() {
        if (child_ <= 0) return;
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        child_ = 0;
    }
    /// Forgets all that it holds; not while it runs.
    void forget() { std::filesystem::remove_all(folder_.file("data")); }
    /// SIGSTOP and SIGCONT.
    void freeze() const { ::kill(child_, SIGSTOP); }
    void go_on() const { ::kill(child_, SIGCONT); }
    /// False once the process has ended by itself, such as for a port that is taken.
    bool is_running() {
        if (child_ > 0 && ::waitpid(child_, nullptr, WNOHANG) == child_) child_ = 0;
        return child_ > 0;
    }

    std::uint16_t port() const noexcept { return client_port_; }
    /// "127.0.0.1:PORT".
    std::string authority() const { return "127.0.0.1:" + std::to_string(client_port_); }
    /// The end of the server's log.
    std::string log() const {
        std::ifstream file(folder_.file("log"));
        std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        return text.size() > 2000 ? text.substr(text.size() - 2000) : text;
    }

private:
    /// Clusters of several tests at one time are apart, also where they take each other's ports.
    std::string folder_token() const { return "eddy-" + std::to_string(::getpid()) + all_; }

    std::string name_;
    std::uint16_t client_port_;
    std::uint16_t peer_port_;
    std::string all_;
    std::vector<std::string> more_;
    tls_files files_;
    eddy::testing::temporary_folder folder_;
    pid_t child_ = 0;
};

/// A cluster of `count` servers, started; they take a moment until they serve.
inline std::vector<std::unique_ptr<etcd_process>> make_cluster(std::size_t count,
                                                               std::vector<std::string> more = {},
                                                               etcd_process::tls_files files = {}) {
    std::vector<std::uint16_t> ports;
    std::string all;
    for (std::size_t i = 0; i < count; ++i) {
        ports.push_back(free_port());
        ports.push_back(free_port());
        all += (all.empty() ? "n" : ",n") + std::to_string(i) +
               "=http://127.0.0.1:" + std::to_string(ports.back());
    }
    std::vector<std::unique_ptr<etcd_process>> made;
    for (std::size_t i = 0; i < count; ++i) {
        made.push_back(std::make_unique<etcd_process>("n" + std::to_string(i), ports[2 * i],
                                                      ports[2 * i + 1], all, more, files));
        made.back()->start();
    }
    return made;
}

}  // namespace eddy::cluster::testing
