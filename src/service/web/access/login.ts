import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { Clock } from "../../../clock.ts";
import { html } from "../html.ts";
import { sendBare } from "../send.ts";
import type { Access } from "./access.ts";
import { logIn, logOut } from "./session.ts";

/** A bound against guessing, for each address that connects. */
const TRIES_A_MINUTE = 10;

const bodySchema = z.object({
  token: z.string().max(1_000).catch(""),
  next: z.string().max(2_000).catch("/"),
});

/** `/login` and `/logout`, where tokens are set. */
export function addLogin(
  app: FastifyInstance,
  { access, clock }: { access: Access & { kind: "tokens" }; clock: Clock },
): void {
  app.get<{ Querystring: { next?: unknown } }>("/login", async (request, reply) =>
    sendBare(reply, 200, { title: "Log in", body: form(pathOf(String(request.query.next ?? "/"))) }),
  );
  app.post(
    "/login",
    { config: { rateLimit: { max: TRIES_A_MINUTE, timeWindow: 60_000 } } },
    async (request, reply) => {
      const { token, next } = bodySchema.parse(request.body ?? {});
      const role = access.roleOf(token.trim());
      if (role === undefined) {
        const body = form(pathOf(next), "This token is not valid. Ask whoever runs the service for it.");
        return sendBare(reply, 401, { title: "Log in", body });
      }
      logIn(reply, role, clock);
      return reply.redirect(pathOf(next), 303);
    },
  );
  // Without a form's token: being logged out does no harm.
  app.post("/logout", async (_request, reply) => {
    logOut(reply);
    return reply.redirect("/login", 303);
  });
}

/** A path of ours, whatever was asked for: the address comes from outside. */
function pathOf(next: string): string {
  const ours = "http://ours.invalid";
  if (!next.startsWith("/") || !URL.canParse(next, ours)) return "/";
  const url = new URL(next, ours);
  // Two slashes at the start would name another host.
  return url.origin === ours && !/^\/[/\\]/.test(url.pathname) ? `${url.pathname}${url.search}` : "/";
}

function form(next: string, problem?: string) {
  return html`<form class="login" method="post" action="/login">
    <input type="hidden" name="next" value="${next}">
    <label>Token
      <input type="password" name="token" required autofocus autocomplete="current-password"
        ${problem === undefined ? "" : html`aria-invalid="true" aria-describedby="problem"`}>
    </label>
    ${problem === undefined ? "" : html`<p id="problem" class="notice bad" role="alert">${problem}</p>`}
    <p>The service's settings USAGE_WEB_TOKEN and USAGE_WEB_READ_TOKEN hold it.</p>
    <button>Log in</button>
  </form>`;
}
