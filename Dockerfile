# The service without build tools: one stage installs dependencies and compiles, the image holds what comes out of it.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# No install script is needed: msgpackr takes its compiled part from a package of its own. npm installs TypeScript too, which a
# library could use for its types.
RUN npm ci --omit=dev --ignore-scripts
# JavaScript, since a container that cannot write would strip types anew at each start.
COPY tsconfig.json ./
COPY test/release test/release
COPY src src
COPY jobs jobs
RUN PATH="$PATH:/app/node_modules/.bin" node test/release/build.ts && find dist -name '*.map' -delete
# TypeScript, types, maps, texts and tests of libraries are not needed (59 MB), nor what the S3 client has for browsers (6 MB,
# dist-es: for Node its packages name dist-cjs). Licenses stay.
RUN rm -rf node_modules/typescript node_modules/@typescript node_modules/.bin node_modules/.package-lock.json \
 && find node_modules -type f -regextype egrep -regex '.*\.([mc]?ts|map|flow|md)' ! -iname 'licen*' -delete \
 && rm -rf node_modules/fastify/test node_modules/bintrees/test \
      node_modules/@aws-sdk/*/dist-es node_modules/@smithy/*/dist-es node_modules/@aws/*/dist-es

FROM ${NODE_IMAGE}
# A running container installs nothing.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn-* \
      /usr/local/bin/yarn /usr/local/bin/yarnpkg
ENV NODE_ENV=production HTTP_HOST=0.0.0.0
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json package.json
COPY --from=build /app/src/cli.js src/cli.js
COPY sql sql
# The numeric id of `node`: Kubernetes must see that it is not root.
USER 1000:1000
EXPOSE 9464
# Liveness, not readiness: a database that is away must not restart the container.
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=4 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.HTTP_PORT || 9464}/livez`).then((r) => process.exit(Number(!r.ok)), () => process.exit(1))"]
# A smaller young generation saves a third of a worker's memory.
ENTRYPOINT ["node", "--max-semi-space-size=4", "src/cli.js"]
CMD ["serve"]
