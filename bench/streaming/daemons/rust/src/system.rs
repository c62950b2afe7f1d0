//! System calls that std and tokio do not have, as results.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use tokio::io::unix::AsyncFd;
use tokio::io::Interest;

pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A listening Unix socket in non-blocking mode; an earlier file of the name is removed.
pub fn listen(path: &str, mode: u32, is_seqpacket: bool, backlog: libc::c_int) -> io::Result<OwnedFd> {
    let kind = if is_seqpacket { libc::SOCK_SEQPACKET } else { libc::SOCK_STREAM };
    // SAFETY: plain system calls; `address` is a whole sockaddr_un that lives until bind() has returned.
    unsafe {
        let fd = check(libc::socket(libc::AF_UNIX, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0))?;
        let socket = OwnedFd::from_raw_fd(fd);
        let mut address: libc::sockaddr_un = mem::zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        if path.len() >= address.sun_path.len() || path.is_empty() || path.contains('\0') {
            return Err(io::Error::other(format!("{path}: no name for a Unix socket")));
        }
        for (to, from) in address.sun_path.iter_mut().zip(path.bytes()) {
            *to = from as libc::c_char;
        }
        let _ = std::fs::remove_file(path);
        let size = mem::size_of::<libc::sockaddr_un>() as libc::socklen_t;
        check(libc::bind(fd, (&raw const address).cast(), size))?;
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        check(libc::listen(fd, backlog))?;
        Ok(socket)
    }
}

pub fn accept(listener: &OwnedFd) -> io::Result<OwnedFd> {
    // SAFETY: no address is asked for; the new descriptor has no other owner.
    unsafe {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let fd = check(libc::accept4(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Sends without blocking and without SIGPIPE.
pub fn send(socket: &OwnedFd, data: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: `data` is valid for its length.
    let sent = unsafe { libc::send(socket.as_raw_fd(), data.as_ptr().cast(), data.len(), flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// A descriptor that tokio polls for its life.
pub fn polled<T: AsFd + AsRawFd>(descriptor: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: what implements AsFd owns or borrows its descriptor, which thus stays open and the same.
    Ok(unsafe { AsyncFd::register_with_interest(descriptor, interest)? })
}

/// Result of recvmsg(): the size of the data, the descriptors, MSG_TRUNC and MSG_CTRUNC.
pub struct Received {
    pub size: usize,
    pub descriptors: Vec<OwnedFd>,
    pub is_cut: bool,
    pub has_lost_descriptors: bool,
}

const MAX_DESCRIPTORS: usize = 8;

pub fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> io::Result<Received> {
    #[repr(align(8))]
    struct Control([u8; 32 + 4 * MAX_DESCRIPTORS]);
    let mut control = Control([0; 32 + 4 * MAX_DESCRIPTORS]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: the header points to `part`, `buffer` and `control`, which outlive the call; the descriptors that the
    // kernel has written have no other owner.
    unsafe {
        let mut header: libc::msghdr = mem::zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = control.0.len() as _;
        let size = libc::recvmsg(socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC);
        let size = usize::try_from(size).map_err(|_| io::Error::last_os_error())?;
        let mut descriptors = Vec::new();
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while let Some(found) = message.as_ref() {
            if found.cmsg_level == libc::SOL_SOCKET && found.cmsg_type == libc::SCM_RIGHTS {
                let bytes = found.cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let first = libc::CMSG_DATA(message).cast::<RawFd>();
                for index in 0..bytes / mem::size_of::<RawFd>() {
                    descriptors.push(OwnedFd::from_raw_fd(first.add(index).read_unaligned()));
                }
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
        Ok(Received {
            size,
            descriptors,
            is_cut: header.msg_flags & libc::MSG_TRUNC != 0,
            has_lost_descriptors: header.msg_flags & libc::MSG_CTRUNC != 0,
        })
    }
}

/// Raises the soft limit of open files to the hard one, and returns it.
pub fn raise_file_limit() -> io::Result<usize> {
    // SAFETY: plain system calls with a structure of ours.
    unsafe {
        let mut limit: libc::rlimit = mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        limit.rlim_cur = limit.rlim_max;
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit))?;
        Ok(limit.rlim_cur as usize)
    }
}

/// Zeroed memory that forked processes share, for the life of the process.
pub fn shared_slice<T>(count: usize) -> io::Result<&'static [T]> {
    // SAFETY: the mapping is large enough, aligned to pages, and never unmapped. Callers use types of atomics alone,
    // for which zeros are valid.
    unsafe {
        let size = count * mem::size_of::<T>();
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(std::slice::from_raw_parts(memory.cast(), count))
    }
}

pub fn signals(numbers: &[libc::c_int]) -> libc::sigset_t {
    // SAFETY: sigemptyset() makes the zeroed set a valid one.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for number in numbers {
            libc::sigaddset(&raw mut set, *number);
        }
        set
    }
}

/// Lets this thread take the signals that end the process; workers begin with them blocked, until they have handlers.
pub fn unblock_ending_signals() -> io::Result<()> {
    let ending = signals(&[libc::SIGTERM, libc::SIGINT]);
    // SAFETY: a set of ours.
    let failed = unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const ending, std::ptr::null_mut()) };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(failed))
    }
}
