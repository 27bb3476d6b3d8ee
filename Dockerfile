# One executable that contains the web client, on a base with the C library, certificates and time
# zones: no shell, no package manager, no node_modules.

FROM node:24.11.1-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
COPY packages/client/package.json packages/client/
COPY packages/protocol/package.json packages/protocol/
COPY packages/server/package.json packages/server/
COPY packages/testkit/package.json packages/testkit/
COPY packages/web/package.json packages/web/
RUN npm ci --omit=dev
COPY packages packages
COPY scripts/build-executable.ts scripts/server-entries.ts scripts/
RUN node_modules/.bin/bun scripts/build-executable.ts /out/parley && mkdir /out/data

FROM gcr.io/distroless/base-nossl-debian12:nonroot
COPY --from=build /out/parley /usr/local/bin/parley
# A new volume gets the owner of the folder where it is mounted: /data has everything of one node,
# /files is for the files that several nodes share.
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build --chown=65532:65532 /out/data /files
# BUN_CONFIG_MAX_HTTP_REQUESTS: without it, at most 256 answers of agents stream at the same time.
ENV HOST=0.0.0.0 \
    PORT=8080 \
    PARLEY_DATA=/data \
    BUN_CONFIG_MAX_HTTP_REQUESTS=65336
USER 65532:65532
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
  CMD ["/usr/local/bin/parley", "ready"]
ENTRYPOINT ["/usr/local/bin/parley"]
