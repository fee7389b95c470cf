import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../../../clock.ts";
import { html } from "../html.ts";
import { sendBare } from "../send.ts";
import { type Access, isOwnHost } from "./access.ts";
import { type Who, whoOf } from "./session.ts";

const WITHOUT_LOGIN = new Set(["/login", "/logout"]);

/** Lets a request pass if whoever sent it may look. What passed is known by `whoSent`. */
export function addGuard(
  app: FastifyInstance,
  given: { access: Access; clock: Clock; userHeader: string | undefined },
): (request: FastifyRequest) => Who {
  const { access } = given;
  const known = new WeakMap<FastifyRequest, Who>();
  app.addHook("onRequest", async (request, reply) => {
    // One way to write an address: an absolute one would name a host of its own.
    const [path = ""] = request.url.split("?");
    const isAsset = path.startsWith("/assets/");
    // What a page shows is old in a minute, and may be for one person only. So may be where an answer leads.
    if (!isAsset) reply.header("cache-control", "no-store");
    if (access.kind === "off") return refuse(reply, 403, OFF);
    if (access.kind === "open" && !isOwnHost(request.headers.host)) return refuse(reply, 403, FOREIGN_HOST);
    if (isFromElsewhere(request)) return refuse(reply, 403, FOREIGN_SITE);
    // Styles and scripts are the same for everybody, and the login page needs them.
    if (isAsset || (access.kind === "tokens" && WITHOUT_LOGIN.has(path))) return;
    const who = whoOf(request, given);
    if (who !== undefined) {
      known.set(request, who);
      return;
    }
    const isPage = request.method === "GET" && String(request.headers.accept ?? "").includes("text/html");
    if (isPage) return reply.redirect(`/login?next=${encodeURIComponent(request.url)}`, 303);
    return refuse(reply, 401, LOG_IN);
  });
  return (request) => {
    const who = known.get(request);
    if (who === undefined) throw new Error("a request passed the guard unseen");
    return who;
  };
}

/** A request that changes something and that another site's page sent, as a browser says. */
function isFromElsewhere({ method, headers }: FastifyRequest): boolean {
  const site = headers["sec-fetch-site"];
  return method !== "GET" && method !== "HEAD" && site !== undefined && site !== "same-origin";
}

const OFF = {
  title: "These pages are off",
  body: html`<p>The service listens beyond this machine, and nobody could be asked for a token.</p>
    <p>Set <code>USAGE_WEB_TOKEN</code> to 16 characters or more and start the service again, or listen on 127.0.0.1 only (<code>HTTP_HOST</code>).</p>`,
};
const FOREIGN_HOST = {
  title: "This address is not served",
  body: html`<p>Without a token the pages are served under the names of this machine only, such as <code>127.0.0.1</code> and <code>localhost</code>.</p>
    <p>Open them under such a name. Behind a proxy, set <code>USAGE_WEB_TOKEN</code>.</p>`,
};
const FOREIGN_SITE = {
  title: "This form was sent by another site",
  body: html`<p>Nothing was changed. <a href="/">Go to the overview</a>, and send the form there.</p>`,
};
const LOG_IN = {
  title: "Log in first",
  body: html`<p>Nothing was changed. <a href="/login">Log in</a>, and do it again.</p>`,
};

function refuse(reply: FastifyReply, status: number, page: Parameters<typeof sendBare>[2]) {
  return sendBare(reply, status, page);
}
