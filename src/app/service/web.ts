import { fileURLToPath } from "node:url";
import cookie from "@fastify/cookie";
import csrf from "@fastify/csrf-protection";
import formbody from "@fastify/formbody";
import helmet from "@fastify/helmet";
import multipart, { type MultipartFile } from "@fastify/multipart";
import { fastifySSE } from "@fastify/sse";
import statics from "@fastify/static";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { requireDatabaseUrl } from "../../core/base/config.ts";
import { networksOf } from "../../core/base/networks.ts";
import { accessOf, addGuard, addLogin } from "../../web/access.ts";
import { NONE, OWN, policyOf } from "../../web/policy.ts";
import { sendProblem } from "../../web/problem.ts";
import { routesOf, type WebServices } from "../../web/routes.ts";
import { EndedSessions } from "../../web/sessions.ts";
import { featurePages } from "./registered.ts";

const ASSETS = fileURLToPath(new URL("../../web/assets", import.meta.url));
const LARGEST_FORM = 256 * 1024;
/** A page that shows a file sends it back in base64 to be confirmed. The command takes larger files. */
const LARGEST_UPLOAD = 2 * 1024 * 1024;

async function readUpload(part: MultipartFile): Promise<void> {
  const content = (await part.toBuffer()).toString("base64");
  Object.assign(part, { value: { name: part.filename, content } });
}

/** Pages have their own scope, because health, metrics and queues have another policy and login. */
export async function addPages(app: FastifyInstance, services: WebServices): Promise<void> {
  const { config, clock, log } = services;
  const access = accessOf(config);
  await app.register(async (pages) => {
    await pages.register(helmet, policyOf({ styleSrc: OWN, imgSrc: OWN, formAction: OWN, baseUri: NONE }));
    await pages.register(cookie, { secret: access.key });
    await pages.register(formbody, { bodyLimit: LARGEST_FORM });
    await pages.register(multipart, {
      attachFieldsToBody: "keyValues",
      limits: { fileSize: LARGEST_UPLOAD, fieldSize: 2 * LARGEST_UPLOAD, files: 1, fields: 30, parts: 31 },
      onFile: readUpload,
    });
    const sessions = new EndedSessions(requireDatabaseUrl(config));
    pages.addHook("onClose", () => sessions.close());
    const isProxy = networksOf(config.webTrustedProxies);
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
    // Some browsers request this path, whatever icon a page names.
    pages.get("/favicon.ico", async (_, reply) => reply.sendFile("icon.svg"));
    const response = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
      const who = whoLooks(request);
      const viewed = who && { who, canLogOut };
      return sendProblem(error, { request, reply, log, viewed });
    };
    pages.setErrorHandler(response);
    pages.setNotFoundHandler((request, reply) => response(undefined, request, reply));
    if (access.kind === "tokens") addLogin(pages, { access, clock, sessions });

    const web = routesOf(pages, { services, whoSent, sessions, canLogOut });
    for (const add of await featurePages()) add(web);
  });
}
