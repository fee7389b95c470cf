import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import tls from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { Secret } from "../../../../src/core/base/secret.ts";
import { NOT_ENCODED } from "../../../../src/core/base/url.ts";
import type { Condition } from "../../../../src/features/alerts/conditions.ts";
import { deliver } from "../../../../src/features/alerts/deliver.ts";
import { alertOf, messageOf } from "../../../../src/features/alerts/message.ts";
import type { Route, RouteType } from "../../../../src/features/owners/alert-route.ts";
import { receiverOf, routeProblem } from "../../../../src/features/owners/receiver.ts";
import { createAuthority } from "../../../support/certificates.ts";
import { setProxies, startForwardProxy } from "../../../support/forward-proxy.ts";
import { listenInTest } from "../../../support/listen.ts";
import { type Manner, openReceivers, type ReceivedMessage } from "../../../support/receivers.ts";

const SECRET = "sesame-0123456789";

const condition: Condition = {
  kind: "budget",
  owner: "search",
  isFiring: true,
  severity: "critical",
  count: 2,
  newest: 7,
  message: "Budget of owner <!channel> & co: used up. See usage-etl owners budgets.",
  over: "no budget has passed a mark in its month or billing period",
};
const about = { source: "default", since: 1, webUrl: "https://usage.example.com/" };
const firing = messageOf("default", [alertOf(condition, about)]);
const cleared = messageOf("default", [alertOf({ ...condition, isFiring: false }, about)]);

const routeOf = (type: RouteType): Route => ({
  line: 1,
  name: "one",
  type,
  setting: "USAGE_ROUTE_ONE",
  owners: null,
  kinds: null,
  severities: null,
  sender: type === "email" ? "usage@example.com" : null,
  recipients: type === "email" ? ["ada@example.com", "bob@example.com"] : [],
});

async function listen(mail?: Parameters<typeof openReceivers>[1]) {
  const got: ReceivedMessage[] = [];
  const responses: Manner[] = [];
  const receivers = await openReceivers((message) => {
    got.push(message);
    return responses.shift() ?? "well";
  }, mail);
  onTestFinished(receivers.close);
  const urls: Readonly<Record<RouteType, string>> = {
    webhook: `${receivers.webUrl}/webhook?key=${SECRET}`,
    slack: `${receivers.webUrl}/slack`,
    teams: `${receivers.webUrl}/teams`,
    google_chat: `${receivers.webUrl}/google-chat`,
    pagerduty: `${receivers.webUrl.replace("//", `//${SECRET}@`)}/pagerduty`,
    email: `smtp://127.0.0.1:${receivers.smtpPort}`,
  };
  const send = (
    type: RouteType,
    {
      message = firing,
      withinMs = 20_000,
      url = urls[type],
      webUrl = "https://usage.example.com/" as string | undefined,
    } = {},
  ) => {
    const route = routeOf(type);
    const receiver = receiverOf(route, new Map([["USAGE_ROUTE_ONE", new Secret(url)]]));
    const deadline = AbortSignal.timeout(withinMs);
    return deliver(message, {
      route,
      receiver,
      deadline,
      withinMs,
      signal: undefined,
      webUrl,
      clock: { wait: async () => {} },
    });
  };
  return {
    send,
    got,
    responses,
    smtpPort: receivers.smtpPort,
    webPort: Number(new URL(receivers.webUrl).port),
  };
}

const LINK = "https://usage.example.com/owners?source=default";

test("each receiver gets what it reads, in which names are only text", async () => {
  const { send, got } = await listen();
  for (const type of ["webhook", "slack", "teams", "google_chat"] as const)
    expect(await send(type)).toBe("responded with 200");
  expect(await send("pagerduty")).toBe("responded with 202");
  expect(await send("pagerduty", { message: cleared })).toBe("responded with 202");
  expect(await send("email")).toBe("responded with 250");
  const [webhook, slack, teams, chat, trigger, resolve] = got.slice(0, 6).map(({ body }) => JSON.parse(body));
  const said = (name: string) => `ALERT usage-etl default: Budget of owner ${name} co: used up.`;
  expect(webhook).toMatchObject({
    text: `${said("&lt;!channel&gt; &amp;")} ${LINK}`,
    alerts: [
      { alert: "budget", owner: "search", severity: "critical", state: "firing", count: 2, link: LINK },
    ],
  });
  expect(slack).toEqual({ text: `${said("&lt;!channel&gt; &amp;")} <${LINK}|Show it>` });
  expect(teams.attachments).toMatchObject([
    {
      contentType: "application/vnd.microsoft.card.adaptive",
      content: {
        type: "AdaptiveCard",
        body: [{ type: "TextBlock", text: `${said("\\<!channel\\> &")} [Show it](${LINK})` }],
      },
    },
  ]);
  expect(chat).toEqual({ text: `${said("‹!channel› &")} <${LINK}|Show it>` });
  expect(trigger).toMatchObject({
    routing_key: SECRET,
    event_action: "trigger",
    links: [{ href: LINK }],
    payload: { severity: "critical", class: "budget", group: "search", source: "usage-etl default" },
  });
  expect(resolve).toEqual({ routing_key: SECRET, event_action: "resolve", dedup_key: trigger.dedup_key });
  const mail = got[6]?.body ?? "";
  expect(mail).toMatch(/^Subject: usage-etl default: 1 alert$/m);
  expect(mail).toMatch(/^To: ada@example.com, bob@example.com$/m);
  expect(mail).toContain(firing.id);
});

test("the same sent again has the same id, and news another", () => {
  const idOf = (changed: Partial<Condition>, since = 1) =>
    alertOf({ ...condition, ...changed }, { ...about, since }).id;
  expect(idOf({})).toBe(idOf({}));
  expect(
    new Set([idOf({}), idOf({ count: 3 }), idOf({ newest: 8 }), idOf({}, 2), idOf({ isFiring: false })]).size,
  ).toBe(5);
});

test.each([
  ["webhook", "refuses", /^Route one responded with 503\.$/, 3],
  ["webhook", "redirects", /redirects \(307\), and no redirect is followed/, 1],
  ["webhook", "cuts", /does not respond \(/, 3],
  ["slack", "lies", /responded with 200, but did not take the message\.$/, 1],
  ["slack", "refuses", /responded with 503/, 3],
  ["pagerduty", "lies", /responded with 202, but did not take the message\.$/, 1],
  ["pagerduty", "redirects", /redirects/, 1],
  ["email", "refuses", /responded with 451/, 3],
  ["email", "cuts", /does not respond \(/, 3],
] as const)("a %s that %s has not taken it", async (type, manner, said, tries) => {
  const { send, got, responses } = await listen();
  responses.push(manner, manner, manner);
  const error = await send(type).catch((thrown) => thrown);
  expect(error).toMatchObject({ code: "route_failed", isCertain: manner !== "cuts" });
  expect(error.message).toMatch(said);
  expect(got).toHaveLength(tries);
  expect(`${error.message} ${error.next} ${error.cause}`).not.toMatch(/sesame|127\.0/);
});

test.each(["webhook", "slack", "teams", "google_chat", "pagerduty", "email"] as const)(
  "a %s that fails once is asked again, and one that never responds is given up in time",
  async (type) => {
    const { send, got, responses } = await listen();
    responses.push("refuses");
    expect(await send(type)).toMatch(/^responded with 2/);
    expect(got).toHaveLength(2);
    responses.push("holds");
    await expect(send(type, { withinMs: 300 })).rejects.toMatchObject({
      message: "Route one does not respond within 0.3 s.",
      isCertain: false,
    });
  },
);

test("a webhook whose response never ends has taken the message", async () => {
  const { send } = await listen();
  const drips: NodeJS.Timeout[] = [];
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/plain" });
    drips.push(setInterval(() => response.write("."), 20));
  });
  onTestFinished(() => drips.forEach(clearInterval));
  const url = `http://127.0.0.1:${await listenInTest(server)}/hook`;
  expect(await send("webhook", { url, withinMs: 300 })).toBe("responded with 200");
});

test("a receiver that is not there certainly has nothing", async () => {
  const { send } = await listen();
  for (const [type, url] of [
    ["webhook", `http://127.0.0.1:9/${SECRET}`],
    ["email", `smtp://ada:${SECRET}@127.0.0.1:9`],
  ] as const) {
    const error = await send(type, { url }).catch((thrown) => thrown);
    expect(error).toMatchObject({ message: "Route one does not respond (ECONNREFUSED).", isCertain: true });
    expect(`${error.next}`).not.toContain(SECRET);
  }
});

test.each(["start", "requested"] as const)(
  "mail goes over TLS (%s), to a server whose certificate is valid",
  async (from) => {
    const authority = createAuthority();
    const { cert, key } = authority.issue("localhost");
    const files = { cert: readFileSync(cert), key: readFileSync(key), from };
    const { send, got, smtpPort } = await listen({ tls: files });
    const scheme = from === "start" ? "smtps" : "smtp";
    const url = `${scheme}://ada:${SECRET}@localhost:${smtpPort}`;
    await expect(send("email", { url })).rejects.toMatchObject({
      message: expect.stringMatching(/offers no TLS, or none with a valid certificate/),
      isCertain: true,
    });
    const before = tls.getCACertificates("default");
    tls.setDefaultCACertificates([readFileSync(authority.ca, "utf8")]);
    onTestFinished(() => tls.setDefaultCACertificates(before));
    expect(got).toEqual([]);
    expect(await send("email", { url })).toBe("responded with 250");
  },
);

test("mail to a server without TLS is not sent, but on this machine", async () => {
  const { send, got, smtpPort } = await listen();
  await expect(send("email", { url: `smtp://localhost:${smtpPort}` })).rejects.toMatchObject({
    message: "Route one offers no TLS, or none with a valid certificate (502 not here).",
  });
  expect(got).toEqual([]);
});

test("a relay on this machine that requires STARTTLS and a login gets both, whatever its certificate", async () => {
  const { cert, key } = createAuthority().issue("relay.test");
  const login = `ada@example.com:${SECRET}`;
  const tls = { cert: readFileSync(cert), key: readFileSync(key), from: "requested", login } as const;
  const { send, got, smtpPort } = await listen({ tls });
  const url = (user: string) => `smtp://${user}127.0.0.1:${smtpPort}`;
  expect(await send("email", { url: url(`ada%40example.com:${SECRET}@`) })).toBe("responded with 250");
  expect(got[0]?.login).toBe(login);
  await expect(send("email", { url: url("") })).rejects.toMatchObject({
    message: "Route one responded with 530 5.7.0 Must issue a STARTTLS command first.",
    isCertain: true,
  });
  const wrong = await send("email", { url: url(`bob%40example.com:wrong-${SECRET}@`) }).catch(
    (thrown) => thrown,
  );
  expect(wrong.message).toMatch(/refuses the login: 535-5\.7\.8 No login \[redacted\].* Ask \[redacted\]\.$/);
  const encoded = Buffer.from(`\0bob@example.com\0wrong-${SECRET}`).toString("base64");
  for (const secret of ["sesame", "@example.com", encoded, encoded.slice(0, 20)])
    expect(wrong.message).not.toContain(secret);
  expect(got).toHaveLength(1);
});

test("a relay on this machine whose STARTTLS fails still takes mail without a login, and another one does not", async () => {
  const { send, got, smtpPort } = await listen({ tls: { from: "requested", isBroken: true } });
  expect(await send("email", { url: `smtp://127.0.0.1:${smtpPort}` })).toBe("responded with 250");
  await expect(send("email", { url: `smtp://localhost:${smtpPort}` })).rejects.toMatchObject({
    message: expect.stringContaining("(454 4.7.0 TLS not available due to local problem)"),
  });
  expect(got).toHaveLength(1);
});

test.each(["webhook", "slack", "teams", "google_chat"] as const)(
  "the login in the address of a %s is sent as basic authentication, and shown nowhere",
  async (type) => {
    const { send, got, responses, webPort } = await listen();
    const url = `http://ada%40corp:${SECRET}%2F%3A@127.0.0.1:${webPort}/${type}`;
    await send(type, { url });
    expect(got[0]).toMatchObject({ path: `/${type}` });
    expect(got[0]?.login).toBe(`Basic ${Buffer.from(`ada@corp:${SECRET}/:`).toString("base64")}`);
    responses.push("redirects");
    const error = await send(type, { url }).catch((thrown) => thrown);
    expect(`${error.message} ${error.next} ${error.stack} ${error.cause}`).not.toMatch(/sesame|corp/);
  },
);

test("a receiver is reached through the proxy of the environment, and a proxy that refuses is named", async () => {
  const { send, got, webPort } = await listen();
  const proxy = await startForwardProxy({ hosts: { "hooks.test:80": webPort }, login: "ada:pass@1" });
  setProxies({ HTTP_PROXY: proxy.url.replace("//", "//ada:pass%401@"), HTTPS_PROXY: proxy.url });
  const url = `http://bob:${SECRET}@hooks.test/webhook?key=1`;
  expect(await send("webhook", { url })).toBe("responded with 200");
  expect(got[0]).toMatchObject({ path: "/webhook?key=1", login: expect.stringMatching(/^Basic /) });
  const messageOfError = async (to: string, withinMs = 20_000) => {
    const error = await send("webhook", { url: to, withinMs }).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "route_failed" });
    expect(`${error.message} ${error.next}`).not.toMatch(/sesame|hooks|pass@1|pass%40/);
    return { message: error.message, isCertain: error.isCertain };
  };
  const https = `https://hooks.test/${SECRET}`;
  expect(await messageOfError(https)).toEqual({
    message: `Route one does not respond through the proxy ${proxy.url} (HTTPS_PROXY) (it refuses with 407).`,
    isCertain: true,
  });
  proxy.manner = 403;
  expect((await messageOfError(url)).message).toBe(
    `Route one responded with 403 through the proxy ${proxy.url} (HTTP_PROXY).`,
  );
  proxy.manner = "silent";
  setProxies({ HTTPS_PROXY: proxy.url });
  expect(await messageOfError(https, 300)).toEqual({
    message: `Route one does not respond through the proxy ${proxy.url} (HTTPS_PROXY) within 0.3 s.`,
    isCertain: false,
  });
  setProxies({ HTTPS_PROXY: "http://ada:pass/@1@127.0.0.1:9" });
  expect((await messageOfError(https)).message).toMatch(
    /cannot be reached: HTTPS_PROXY (is not of|has a character)/,
  );
  setProxies({ HTTPS_PROXY: "http://ada:pass%401@127.0.0.1:9" });
  expect(await messageOfError(https)).toEqual({
    message: "Route one does not respond through the proxy http://127.0.0.1:9 (HTTPS_PROXY) (ECONNREFUSED).",
    isCertain: true,
  });
});

const MAIL_FORM =
  "USAGE_ROUTE_ONE is not of the form smtps://user:password@host, which may end with ?name=HOST";

test.each([
  ["webhook", "ftp://host/path", "USAGE_ROUTE_ONE is not of the form https://host/path"],
  ["slack", SECRET, "USAGE_ROUTE_ONE is not of the form https://host/path"],
  ["webhook", `https://ada:${SECRET}@host/path`, undefined],
  ["google_chat", `https://ada:${SECRET}/x@host/path`, `USAGE_ROUTE_ONE ${NOT_ENCODED}`],
  ["email", "https://host", MAIL_FORM],
  ["email", "smtp://host?name=mail-1.example.com", undefined],
  ["email", "smtp://host?name=10.0.0.1", MAIL_FORM],
  ["email", "smtp://host?name=", MAIL_FORM],
  ["email", "smtp://host?name=a.test&name=b.test", MAIL_FORM],
  ["email", "smtp://host?pool=1", MAIL_FORM],
  ["email", `smtp://ada:${SECRET}%@host`, `USAGE_ROUTE_ONE ${NOT_ENCODED}`],
  ["email", `smtp://ada:${SECRET}%25@host`, undefined],
  ["email", `smtp://:${SECRET}@host`, MAIL_FORM],
  ["pagerduty", "a key", "USAGE_ROUTE_ONE is not an integration key, nor https://KEY@host/path"],
  ["pagerduty", SECRET, undefined],
] as const)("a setting of type %s is checked: %s", (type, value, problem) => {
  expect(routeProblem(routeOf(type), new Map([["USAGE_ROUTE_ONE", new Secret(value)]]))).toBe(problem);
  expect(routeProblem(routeOf(type), new Map())).toBe("USAGE_ROUTE_ONE is not set here");
});
