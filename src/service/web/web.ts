import { fileURLToPath } from "node:url";
import cookie from "@fastify/cookie";
import csrf from "@fastify/csrf-protection";
import formbody from "@fastify/formbody";
import helmet from "@fastify/helmet";
import rateLimit from "@fastify/rate-limit";
import { fastifySSE } from "@fastify/sse";
import statics from "@fastify/static";
import type { FastifyInstance } from "fastify";
import { accessOf } from "./access/access.ts";
import { addGuard } from "./access/guard.ts";
import { addLogin } from "./access/login.ts";
import { sendProblem } from "./problem.ts";
import { routesOf, type WebServices } from "./routes.ts";
import { addBackfills } from "./screens/backfills.ts";
import { addCell } from "./screens/cell.ts";
import { addCoverage } from "./screens/coverage.ts";
import { addDifferences } from "./screens/differences.ts";
import { addMonths } from "./screens/months.ts";
import { addOverview } from "./screens/overview.ts";
import { addTimeline } from "./screens/timeline.ts";
import { addUsage } from "./screens/usage.ts";

const ASSETS = fileURLToPath(new URL("assets", import.meta.url));
/** Forms are small: ids of a selection at most. */
const LARGEST_FORM = 256 * 1024;
const NONE = ["'none'"];
const OWN = ["'self'"];

/** The operator's pages, in a scope of their own: their policy and login are not those of health, metrics and queues. */
export async function addPages(app: FastifyInstance, services: WebServices): Promise<void> {
  const { config, clock } = services;
  const access = accessOf(config);
  await app.register(async (pages) => {
    await pages.register(helmet, {
      contentSecurityPolicy: {
        useDefaults: false,
        directives: {
          defaultSrc: NONE,
          ...{ scriptSrc: OWN, styleSrc: OWN, imgSrc: OWN, connectSrc: OWN, formAction: OWN },
          ...{ baseUri: NONE, frameAncestors: NONE },
        },
      },
      // The address may hold what somebody looks for. Whether TLS is there is for the proxy to say.
      referrerPolicy: { policy: "same-origin" },
      strictTransportSecurity: false,
    });
    await pages.register(cookie, { secret: access.key });
    await pages.register(formbody, { bodyLimit: LARGEST_FORM });
    await pages.register(rateLimit, { global: false });
    const whoSent = addGuard(pages, { access, clock, userHeader: config.webUserHeader });
    await pages.register(csrf, {
      cookieKey: "usage_etl_form",
      cookieOpts: { path: "/", httpOnly: true, sameSite: "lax", signed: true },
      csrfOpts: { hmacKey: access.key, userInfo: true },
      getUserInfo: (request) => whoSent(request).session,
    });
    await pages.register(fastifySSE);
    await pages.register(statics, { root: ASSETS, prefix: "/assets/", cacheControl: false });
    pages.setErrorHandler(async (error, request, reply) => sendProblem(error, { request, reply, services }));
    pages.setNotFoundHandler(async (request, reply) => sendProblem(undefined, { request, reply, services }));
    if (access.kind === "tokens") addLogin(pages, { access, clock });

    const web = routesOf(pages, { services, whoSent, canLogOut: access.kind === "tokens" });
    addOverview(web);
    addCoverage(web);
    addCell(web);
    addBackfills(web);
    addUsage(web);
    addDifferences(web);
    addMonths(web);
    addTimeline(web);
  });
}
