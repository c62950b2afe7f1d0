// Memory files: made, sealed, mapped.
#include "http/files/file_content.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace eddy::http {
namespace {

result<mutable_bytes> map(int memory, std::size_t size, int protection, int kind) noexcept {
    void* const at = ::mmap(nullptr, size, protection, kind, memory, 0);
    if (at == MAP_FAILED) return fail_errno();
    return mutable_bytes(static_cast<std::byte*>(at), size);
}

}  // namespace

result<file_content> file_content::with_descriptor(std::size_t size) {
    unique_fd memory(::memfd_create("eddy-file", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory) return fail_errno();
    if (::ftruncate(memory.get(), static_cast<off_t>(size)) < 0) return fail_errno();
    const auto mapped = map(memory.get(), size, PROT_READ | PROT_WRITE, MAP_SHARED);
    if (!mapped) return fail(mapped.error());
    return file_content(std::move(memory), *mapped);
}

file_content::~file_content() {
    if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
}

result<> file_content::seal() noexcept {
    // The kernel seals no memory that something may write to.
    const std::size_t size = mapped_.size();
    ::munmap(mapped_.data(), size);
    mapped_ = {};
    const int all = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (::fcntl(memory_.get(), F_ADD_SEALS, all) < 0) return fail_errno();
    // Before Linux 6.7 sealed memory cannot be mapped as shared, whatever the protection.
    const auto mapped = map(memory_.get(), size, PROT_READ, MAP_PRIVATE);
    if (!mapped) return fail(mapped.error());
    mapped_ = *mapped;
    return {};
}

}  // namespace eddy::http
