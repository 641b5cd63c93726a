# Builds with the project's own scripts. The image runs without root and writes only to /data:
#
#   docker build -t partita .
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges \
#     -p 127.0.0.1:10000-10002:10000-10002 -v partita-data:/data -e PARTITA_ACCOUNTS='shop:BASE64KEY' partita
#
# With `-e PARTITA_DEVELOPMENT=true` instead of accounts it serves the development account, whose key is public: publish the
# port to 127.0.0.1 only (docs/operating.md).
FROM rust:1-bookworm AS build
ENV PARTITA_CACHE=/cache
WORKDIR /partita
# RocksDB first: it takes long, and changes only with the lock file.
COPY Cargo.toml Cargo.lock ./
COPY scripts scripts
RUN bash -c '. scripts/environment'
COPY . .
RUN bash -c '. scripts/environment && cargo build --profile packaged --locked --bin partita && strip -o /partita.bin "$CARGO_TARGET_DIR/packaged/partita"'

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends libstdc++6 && rm -rf /var/lib/apt/lists/* && \
    install -d -o 10001 -g 10001 -m 700 /data
COPY --from=build /partita.bin /usr/local/bin/partita
# Under these names it is Azurite (docs/azurite.md), whose data is in the working directory if no other is named.
RUN for name in azurite azurite-blob azurite-queue azurite-table; do ln -s partita /usr/local/bin/$name; done
WORKDIR /data
USER 10001:10001
ENV PARTITA_LISTEN=0.0.0.0:10002 PARTITA_QUEUE_LISTEN=0.0.0.0:10001 PARTITA_BLOB_LISTEN=0.0.0.0:10000 PARTITA_DATA=/data
EXPOSE 10000 10001 10002
VOLUME /data
HEALTHCHECK --interval=10s --timeout=6s --start-period=10s CMD ["partita", "health"]
ENTRYPOINT ["partita"]
CMD ["serve"]
