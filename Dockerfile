# A container with the daemon: the program, glibc and certificates, and no shell. Build and run it:
#
#     docker build -t eddy .
#     docker run -d --name eddy -p 127.0.0.1:6379:6379 -v eddy:/var/lib/eddy eddy
#     docker exec eddy eddy create cache db -p 6379 --bind '*' --protected-mode no -s
#
# docs/operations.md has the rest: volumes, ports, health, io_uring.
FROM debian:bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3 ca-certificates binutils && rm -rf /var/lib/apt/lists/*
COPY . /src
WORKDIR /src
RUN apt-get update && ./eddy-dev package --tar && mkdir /made && \
    tar -xzf build/package/eddy-*.tar.gz -C /made --strip-components=1 && packaging/container/root.sh /out /made/bin/eddy

FROM scratch
COPY --from=build /out/root /
COPY --from=build --chown=65532:65532 /out/own /
COPY LICENSE /usr/share/doc/eddy/copyright
USER 65532:65532
WORKDIR /var/lib/eddy
ENV EDDY_SOCKET=/run/eddy/eddy.sock EDDY_STATE_DIR=/var/lib/eddy HOME=/var/lib/eddy
VOLUME ["/var/lib/eddy"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s CMD ["/usr/bin/eddy", "ls", "-q"]
ENTRYPOINT ["/usr/bin/eddy"]
CMD ["daemon"]
