import { fileURLToPath } from "node:url";
import cookie from "@fastify/cookie";
import csrf from "@fastify/csrf-protection";
import formbody from "@fastify/formbody";
import helmet from "@fastify/helmet";
import { fastifySSE } from "@fastify/sse";
import statics from "@fastify/static";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { requireDatabaseUrl } from "../../config/config.ts";
import { NONE, OWN, policyOf } from "../http/policy.ts";
import { proxiesOf } from "../http/proxies.ts";
import { accessOf, addGuard, addLogin } from "./access.ts";
import { addAlerts } from "./activity/alerts.ts";
import { addOverview } from "./activity/overview.ts";
import { addTimeline } from "./activity/timeline.ts";
import { addBackfillList } from "./backfills/list.ts";
import { addNewBackfill } from "./backfills/new.ts";
import { addOneBackfill } from "./backfills/one.ts";
import { addCell } from "./coverage/cell.ts";
import { addCoverage } from "./coverage/coverage.ts";
import { addDifferences } from "./differences.ts";
import { addOwners } from "./figures/owners.ts";
import { addUsage } from "./figures/usage.ts";
import { addMonths } from "./months/routes.ts";
import { sendProblem } from "./problem.ts";
import { routesOf, type WebServices } from "./routes.ts";
import { EndedSessions } from "./sessions.ts";

const ASSETS = fileURLToPath(new URL("assets", import.meta.url));
const LARGEST_FORM = 256 * 1024;

/** The operator's pages, in their own scope: policy and login are not those of health, metrics and queues. */
export async function addPages(app: FastifyInstance, services: WebServices): Promise<void> {
  const { config, clock, log } = services;
  const access = accessOf(config);
  await app.register(async (pages) => {
    await pages.register(helmet, policyOf({ styleSrc: OWN, imgSrc: OWN, formAction: OWN, baseUri: NONE }));
    await pages.register(cookie, { secret: access.key });
    await pages.register(formbody, { bodyLimit: LARGEST_FORM });
    const sessions = new EndedSessions(requireDatabaseUrl(config));
    pages.addHook("onClose", () => sessions.close());
    const isProxy = proxiesOf(config.webTrustedProxies);
    const whoLooks = addGuard(pages, { access, clock, isProxy, userHeader: config.webUserHeader, sessions });
    const whoSent = (request: FastifyRequest) => {
      const who = whoLooks(request);
      if (who === undefined) throw new Error("a request passed the guard unseen");
      return who;
    };
    const canLogOut = access.kind === "tokens";
    await pages.register(csrf, {
      cookieKey: "usage_etl_form",
      cookieOpts: { path: "/", httpOnly: true, sameSite: "lax", signed: true },
      csrfOpts: { hmacKey: access.key, userInfo: true },
      getUserInfo: (request) => whoSent(request).session,
    });
    await pages.register(fastifySSE);
    await pages.register(statics, { root: ASSETS, prefix: "/assets/", cacheControl: false });
    // Some browsers ask for it whatever a page names.
    pages.get("/favicon.ico", async (_, reply) => reply.sendFile("icon.svg"));
    const answer = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
      const who = whoLooks(request);
      const viewed = who && { who, canLogOut };
      return sendProblem(error, { request, reply, log, viewed });
    };
    pages.setErrorHandler(answer);
    pages.setNotFoundHandler((request, reply) => answer(undefined, request, reply));
    if (access.kind === "tokens") addLogin(pages, { access, clock, sessions });

    const web = routesOf(pages, { services, whoSent, sessions, canLogOut });
    addOverview(web);
    addAlerts(web);
    addCoverage(web);
    addCell(web);
    addBackfillList(web);
    addNewBackfill(web);
    addOneBackfill(web);
    addUsage(web);
    addOwners(web);
    addDifferences(web);
    addMonths(web);
    addTimeline(web);
  });
}
