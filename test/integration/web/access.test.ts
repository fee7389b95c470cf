import { sql } from "kysely";
import { request } from "undici";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/core/base/clock.ts";
import { openStore } from "../../../src/core/store/db/database.ts";
import { LARGEST_BODY } from "../../../src/web/server.ts";
import { now as currentTime } from "../../support/clock.ts";
import { type PagesBench, refusalOf, setupPages, TOKENS } from "../../support/pages.ts";
import { share } from "../../support/share.ts";
import { setupMigrated } from "../../support/store.ts";

/** Who may look, as somebody finds out who should not. */

const { USAGE_WEB_TOKEN: OPERATOR, USAGE_WEB_READ_TOKEN: VIEWER } = TOKENS;
const HOUR_MS = 3_600_000;

type Options = Parameters<typeof setupPages>[1];

const database = share(() => setupMigrated());

/** The pages of a database without a source. Nothing of the stand-in is asked. */
function serve(environment: Record<string, string> = {}, options: Options = {}) {
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key-4713" };
  const { store, url } = database();
  return setupPages({ store, databaseUrl: url, standin }, { environment, ...options });
}

const setCookies = (headers: Record<string, string | string[] | undefined>) =>
  [headers["set-cookie"] ?? []].flat();

/** The cookie of a new session, as a browser sends it. */
async function logIn(pages: PagesBench, token: string = VIEWER) {
  const [cookie = ""] = setCookies((await pages.post("/login", { token })).headers);
  return { cookie: cookie.split(";")[0] ?? "" };
}

/** The status of the stream of a page, and the stream, which ends with the test. */
async function follow({ url }: PagesBench, session: { cookie: string }) {
  const headers = { ...session, accept: "text/event-stream" };
  const { statusCode, body } = await request(`${url}/overview/live`, { headers });
  onTestFinished(() => void body.on("error", () => {}).destroy());
  return { status: statusCode, body };
}

test("without a token, only the names of this machine are served, whatever address they resolve to", async () => {
  const pages = await serve();
  const status = async (host: string) => (await pages.get("/", { host })).status;
  for (const host of ["127.0.0.1:9464", "LOCALHOST:1", "[::1]:9464", "etl.localhost", "127.8.9.1"])
    expect([host, await status(host)]).toEqual([host, 200]);
  const foreign = ["localhost.evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "10.0.0.7"];
  for (const host of [...foreign, "0.0.0.0", "evil.example#localhost", "[::2]", "evillocalhost"])
    expect([host, await status(host)]).toEqual([host, 403]);
  const { text } = await pages.get("/", { host: "evil.example" });
  expect(text).toContain("USAGE_WEB_TOKEN");
  // Neither a path nor a file says more to a foreign name.
  for (const path of ["/coverage", "/nowhere", "/login"])
    expect((await pages.get(path, { host: "evil.example" })).status).toBe(403);
});

test("beyond this machine the pages are off until a token is set, and say so", async () => {
  for (const HTTP_HOST of ["0.0.0.0", "::", "10.0.0.7", "etl.example"]) {
    const pages = await serve({ HTTP_HOST });
    for (const path of ["/", "/coverage", "/login", "/nowhere"]) {
      const { status, text } = await pages.get(path);
      expect([HTTP_HOST, path, status]).toEqual([HTTP_HOST, path, 403]);
      expect(text).toContain("USAGE_WEB_TOKEN");
    }
    expect((await pages.post("/login", { token: "" })).status).toBe(403);
  }
});

test("a wrong, empty, longer or repeated token opens nothing, and ten tries a minute are answered", async () => {
  const pages = await serve(TOKENS);
  const wrong = ["", " ", OPERATOR.slice(0, -1), `${OPERATOR}x`, OPERATOR.toUpperCase(), "x".repeat(1_001)];
  for (const token of wrong) {
    const { status, text, headers } = await pages.post("/login", { token, next: "/coverage" });
    expect([token.slice(0, 30), status, setCookies(headers)]).toEqual([token.slice(0, 30), 401, []]);
    expect(text).toContain(`value="/coverage"`);
  }
  const twice = await pages.post("/login", { token: [OPERATOR, OPERATOR] });
  expect(twice.status).toBe(401);
  const more = await Promise.all(Array.from({ length: 4 }, () => pages.post("/login", { token: "guess" })));
  expect(more.map(({ status }) => status).sort()).toEqual([401, 401, 401, 429]);
  const late = await pages.post("/login", { token: "guess" });
  expect([late.status, setCookies(late.headers)]).toEqual([429, []]);
  expect(late.text).toContain("in a minute");
  expect((await pages.post("/login", { token: OPERATOR })).status).toBe(303);
});

test("right tokens are no guesses: people behind one proxy do not lock each other out, and a minute later guesses are answered again", async () => {
  let now = currentTime();
  const pages = await serve(TOKENS, { services: { clock: { ...systemClock, now: () => now } } });
  const responses = async (token: string, times: number) => {
    const all = Array.from({ length: times }, () => pages.post("/login", { token }));
    return [...new Set((await Promise.all(all)).map(({ status }) => status))];
  };
  expect(await responses(OPERATOR, 30)).toEqual([303]);
  expect(await responses("guess", 9)).toEqual([401]);
  expect(await responses(VIEWER, 5)).toEqual([303]);
  await responses("guess", 1);
  expect(await responses("guess", 2)).toEqual([429]);
  expect(await responses(OPERATOR, 2)).toEqual([303]);
  now += 60_000;
  expect(await responses("guess", 2)).toEqual([401]);
});

/** The status of a token that is tried at a door, sent by a proxy with this X-Forwarded-For. */
async function tryToken(pages: { url: string }, door: string, token: string, forwarded: string) {
  const headers = { "x-forwarded-for": forwarded };
  const sent =
    door === "/mcp"
      ? { headers: { ...headers, authorization: `Bearer ${token}`, "content-type": "application/json" } }
      : { headers: { ...headers, "content-type": "application/x-www-form-urlencoded" } };
  const body = door === "/mcp" ? "{}" : `token=${token}`;
  const { statusCode, body: said } = await request(`${pages.url}${door}`, { method: "POST", ...sent, body });
  await said.dump();
  return statusCode;
}

test.each([
  ["/login", 303],
  ["/mcp", 400],
])(
  "at %s a guess counts against the address that a trusted proxy saw, and a right token is let in",
  async (door, letIn) => {
    const pages = await serve({ ...TOKENS, USAGE_WEB_TRUSTED_PROXIES: "127.0.0.1, 10.0.0.0/8, fd00::/8" });
    const from = (forwarded: string, token = "guess") => tryToken(pages, door, token, forwarded);
    for (let i = 0; i < 10; i++) {
      const own = i % 2 === 0 ? "203.0.113.7" : "203.0.113.7, 10.1.2.3,fd00::1";
      expect([i, await from(i < 5 ? own : `198.51.100.${i}, ${own}`)]).toEqual([i, 401]);
    }
    expect(await from("198.51.100.99, 203.0.113.7")).toBe(429);
    expect(await from("::ffff:203.0.113.7")).toBe(429);
    expect(await from("203.0.113.7:4711")).toBe(429);
    expect(await from("203.0.113.7", OPERATOR)).toBe(letIn);
    expect(await from("203.0.113.8")).toBe(401);
    // Whoever has one address of IPv6 has all of its network.
    for (let i = 0; i < 10; i++) expect(await from(`2001:db8:1:2::${i}`)).toBe(401);
    expect([await from("2001:db8:1:2:9:9:9:9"), await from("2001:db8:1:3::1")]).toEqual([429, 401]);
  },
);

test.each(["/login", "/mcp"])("at %s nobody else's X-Forwarded-For is believed", async (door) => {
  for (const USAGE_WEB_TRUSTED_PROXIES of ["", "10.0.0.1"]) {
    const pages = await serve({ ...TOKENS, USAGE_WEB_TRUSTED_PROXIES });
    const statuses: number[] = [];
    for (let i = 0; i < 12; i++) statuses.push(await tryToken(pages, door, "guess", `198.51.100.${i}`));
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
  }
});

test("whoever has no valid cookie is led to the login page and back, never to another site", async () => {
  const pages = await serve(TOKENS);
  const requested = await pages.get("/usage?by=project&from=2026-01-05");
  expect([requested.status, requested.headers.location]).toEqual([
    303,
    "/login?next=%2Fusage%3Fby%3Dproject%26from%3D2026-01-05",
  ]);
  // A program gets no login page, nor does its form.
  expect((await pages.get("/", { accept: "application/json" })).status).toBe(401);
  const program = { headers: { accept: "*/*" } };
  expect((await pages.post("/backfills/new", { from: "2026-01-05" }, program)).status).toBe(401);

  const form = (await pages.get(requested.headers.location as string)).text;
  expect(form).toContain(`value="/usage?by=project&amp;from=2026-01-05"`);
  const nexts: [string, string][] = [
    ["/usage?by=project", "/usage?by=project"],
    ["//evil.example", "/"],
    ["/\\evil.example", "/"],
    ["/\t/evil.example", "/"],
    ["/%0d%0aset-cookie:x=1", "/%0d%0aset-cookie:x=1"],
    ["/.//evil.example", "/"],
    ["/x/..//evil.example", "/"],
    ["https://evil.example/", "/"],
    ["javascript:alert(1)", "/"],
    ["", "/"],
  ];
  for (const [next, to] of nexts) {
    const { status, headers } = await pages.post("/login", { token: VIEWER, next });
    expect([next, status, headers.location]).toEqual([next, 303, to]);
  }
  const shown = await pages.get(`/login?next=${encodeURIComponent(`"><script>alert(1)</script>`)}`);
  expect(shown.text).not.toContain("<script>alert");
});

test("a cookie lasts twelve hours, is signed, and is for this site's requests only", async () => {
  let now = currentTime();
  const pages = await serve(TOKENS, { services: { clock: { ...systemClock, now: () => now } } });
  const plain = await pages.post("/login", { token: OPERATOR, next: "/" });
  const [cookie = ""] = setCookies(plain.headers);
  expect(cookie).toMatch(/^usage_etl_session=[^;]+; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax$/);
  // Of a list, the first is what the browser used.
  for (const [proto, isSecure] of [
    ["https", true],
    ["HTTPS, http", true],
    ["http, https", false],
    ["", false],
  ] as const) {
    const headers = { "x-forwarded-proto": proto };
    const [sent = ""] = setCookies((await pages.post("/login", { token: OPERATOR }, { headers })).headers);
    expect([proto, sent.includes("; Secure")]).toEqual([proto, isSecure]);
  }

  const [, value = ""] = /^usage_etl_session=([^;]*)/.exec(cookie) ?? [];
  const withCookie = (given: string) => pages.get("/", { cookie: `usage_etl_session=${given}` });
  expect((await withCookie(value)).status).toBe(200);
  const plainValue = decodeURIComponent(value);
  const tampered = [
    plainValue.replace("operator", "viewer"),
    plainValue.replace(/\.\d+\./, `.${now + 1_000 * HOUR_MS}.`),
    plainValue.slice(0, plainValue.lastIndexOf(".")),
    // Of its last character some bits are not read.
    plainValue.replace(/[^.](?=[^.]*$)/, (first) => (first === "A" ? "B" : "A")),
    "operator.9999999999999.x",
    "",
    "s:",
  ];
  for (const one of tampered)
    expect([one, (await withCookie(encodeURIComponent(one))).status]).toEqual([one, 303]);

  // Another process with the same tokens knows the cookie; one with another token does not.
  const same = await serve(TOKENS);
  expect((await same.get("/", { cookie: `usage_etl_session=${value}` })).status).toBe(200);
  const other = await serve({ ...TOKENS, USAGE_WEB_TOKEN: "another-token-4714" });
  expect((await other.get("/", { cookie: `usage_etl_session=${value}` })).status).toBe(303);

  now += 12 * HOUR_MS - 1_000;
  expect((await withCookie(value)).status).toBe(200);
  now += 2_000;
  expect((await withCookie(value)).status).toBe(303);
});

test("logging out forgets the session; another site cannot log anybody in or out", async () => {
  const pages = await serve(TOKENS);
  const foreign = { headers: { "sec-fetch-site": "cross-site", origin: "https://evil.example" } };
  expect((await pages.post("/login", { token: OPERATOR }, foreign)).status).toBe(403);
  await pages.post("/login", { token: VIEWER });
  expect((await pages.get("/")).text).toContain("Read-only");
  expect((await pages.post("/logout", {}, foreign)).status).toBe(403);
  expect((await pages.post("/logout", {}, { headers: { "sec-fetch-site": "same-site" } })).status).toBe(403);
  expect((await pages.get("/")).status).toBe(200);
  const out = await pages.post("/logout", {}, { headers: { "sec-fetch-site": "same-origin" } });
  expect([out.status, out.headers.location]).toEqual([303, "/login"]);
  expect((await pages.get("/")).status).toBe(303);
});

test("logging out ends the session in every process, and the stream of a page that it follows; other sessions go on", async () => {
  const hasty = { ...systemClock, wait: (_ms: number, signal?: AbortSignal) => systemClock.wait(20, signal) };
  const [one, two] = [await serve(TOKENS), await serve(TOKENS, { services: { clock: hasty } })];
  const [session, other] = [await logIn(one), await logIn(one)];
  const stream = await follow(two, session);
  expect(stream.status).toBe(200);
  await one.post("/logout", {}, { headers: session });
  for (const pages of [one, two]) {
    expect((await pages.get("/", session)).status).toBe(303);
    expect((await pages.get("/", other)).status).toBe(200);
    expect((await follow(pages, session)).status).toBe(401);
  }
  // Ends: else this waits for as long as a stream lasts.
  await stream.body.text().catch(() => {});
});

/** Pages that have one connection to read with. */
async function serveByOne() {
  const reader = openStore({ url: database().url, maxConnections: 1 });
  onTestFinished(reader.close);
  return { reader, pages: await serve(TOKENS, { services: { reader: reader.db } }) };
}

test("while nobody can say whether a session ended, nobody is let in, pages keep their connections, and no logout is called done", async () => {
  const { reader, pages } = await serveByOne();
  const others = await serve(TOKENS);
  const [ended, stays, leaves] = [await logIn(pages), await logIn(pages), await logIn(pages)];
  await others.post("/logout", {}, { headers: ended });

  await database()
    .store.db.transaction()
    .execute(async (lock) => {
      await sql`lock table usage.ended_session`.execute(lock);
      const requested = [ended, stays, stays, stays, ended].map((session) => pages.get("/", session));
      requested.push(pages.post("/backfills/new", { from: "2026-01-05" }, { headers: ended }));
      await sql`select 1`.execute(reader.db);
      for (const { status, headers } of await Promise.all(requested))
        expect([status, headers["retry-after"]]).toEqual([503, "2"]);
      const out = await pages.post("/logout", {}, { headers: leaves });
      expect([out.status, setCookies(out.headers)]).toEqual([503, []]);
    });

  const after = await Promise.all([ended, stays, leaves].map((session) => pages.get("/", session)));
  expect(after.map(({ status }) => status)).toEqual([303, 200, 303]);
  expect((await pages.post("/logout", {}, { headers: leaves })).status).toBe(303);
  expect((await others.get("/", leaves)).status).toBe(303);
});

test("a NUL character, which no text in Postgres can have, is refused as what it is", async () => {
  const pages = await serve();
  for (const path of [
    "/usage?workspace=a%00b&by=user",
    "/months/2026-01?source=%00",
    "/usage.csv?source=%00",
  ]) {
    const { status, text } = await pages.get(path);
    expect([path, status]).toEqual([path, 400]);
    expect(text).toContain("NUL character");
  }
  // The six characters that JSON writes it with are a text as any other.
  expect(await refusalOf(pages, "/usage?source=%5Cu0000")).not.toContain("query_invalid");
  const form = { source: "a\0", digest: "x" };
  expect((await pages.post("/months/2026-01/close", form, { from: "/months" })).status).toBe(403);
});

test.each([300, 30_000, 500_000])(
  "a body of %d nested brackets is refused as a wrong request",
  async (levels) => {
    const pages = await serve(TOKENS);
    const session = await logIn(pages, OPERATOR);
    const headers = { ...session, "content-type": "application/json", authorization: `Bearer ${OPERATOR}` };
    const deep = "[".repeat(levels) + "]".repeat(levels);
    const call = `{"jsonrpc":"2.0","id":1,"method":"ping","params":${deep}}`;
    for (const path of ["/login", "/logout", "/mcp", "/backfills/new"])
      for (const body of [deep, call]) {
        const response = await request(`${pages.url}${path}`, { method: "POST", headers, body });
        await response.body.dump();
        const expected = body.length > LARGEST_BODY ? 413 : 400;
        expect([path, body.slice(0, 12), response.statusCode]).toEqual([path, body.slice(0, 12), expected]);
      }
  },
);

test("a person's name comes from the header that the setting names, from a trusted proxy, and from no other", async () => {
  const settings = { USAGE_WEB_USER_HEADER: "X-Forwarded-User", USAGE_WEB_TRUSTED_PROXIES: "127.0.0.1" };
  const named = await serve(settings);
  const { text } = await named.get("/", { "x-forwarded-user": "ana <b>", "x-user": "mallory" });
  expect(text).toContain("ana &lt;b&gt;");
  expect(text).not.toContain("mallory");
  for (const others of [{}, { ...settings, USAGE_WEB_TRUSTED_PROXIES: "10.0.0.1" }]) {
    const unnamed = await serve(others);
    // Naming a proxy makes nobody one.
    const headers = { "x-forwarded-user": "mallory", "x-forwarded-for": "10.0.0.1" };
    expect((await unnamed.get("/", headers)).text).not.toContain("mallory");
  }
});

test("other methods, odd paths and long addresses get a page that leads on, and nothing outside the pages", async () => {
  const pages = await serve();
  expect((await pages.get("/assets/style.css")).status).toBe(200);
  const icon = await pages.get("/favicon.ico");
  expect([icon.status, icon.headers["content-type"]]).toEqual([200, "image/svg+xml"]);
  const paths: [string, number][] = [
    ["/assets/../web.ts", 404],
    ["/assets/..%2fweb.ts", 404],
    ["/assets/%2e%2e/web.ts", 404],
    ["/assets/..%5cweb.ts", 403],
    ["/assets/%2e%2e%2f%2e%2e%2fserve.ts", 404],
    ["/assets//etc/passwd", 403],
    ["/assets/%00", 403],
    ["/assets/", 404],
    ["/assets", 404],
    ["/assets/../../../../package.json", 404],
    ["/%", 404],
    ["/%ff%zz", 404],
    ["/nowhere", 404],
    ["/backfills/999999999999999999999", 404],
    [`/usage?source=${"x".repeat(8_000)}`, 400],
  ];
  const seen: [string, number][] = [];
  for (const [path] of paths) {
    const response = await pages.get(path);
    seen.push([path, response.status]);
    expect(response.text, path).toContain(`<a href="/">`);
    expect(response.headers["content-type"]).toBe("text/html; charset=utf-8");
  }
  expect(seen).toEqual(paths);
  for (const method of ["PUT", "DELETE", "PATCH", "OPTIONS"]) {
    const response = await fetch(`${pages.url}/`, { method });
    expect([method, response.status]).toEqual([method, 404]);
  }
  const head = await fetch(`${pages.url}/`, { method: "HEAD" });
  expect([head.status, await head.text()]).toEqual([200, ""]);
});

test("every response has the policy, and nothing of it is kept or read as another type", async () => {
  const pages = await serve(TOKENS);
  await pages.post("/login", { token: OPERATOR });
  const responses = [
    ...(await Promise.all(["/", "/nowhere", "/login", "/?x=1"].map((path) => pages.get(path)))),
    await pages.post("/login", { token: "wrong" }),
    await pages.get("/", { cookie: "" }),
  ];
  const policy = [
    "default-src 'none'",
    ...["script", "connect"].map((kind) => `${kind}-src 'self'`),
    "frame-ancestors 'none'",
    ...["style", "img"].map((kind) => `${kind}-src 'self'`),
    "form-action 'self'",
    "base-uri 'none'",
  ].join(";");
  for (const { headers } of responses) {
    expect(headers).toMatchObject({
      "content-security-policy": policy,
      "x-content-type-options": "nosniff",
      "referrer-policy": "same-origin",
      "cache-control": "no-store",
    });
    expect(headers).not.toHaveProperty("x-powered-by");
  }
});

test("no token, key or password is in any page or line of the log", async () => {
  const pages = await serve(TOKENS);
  const texts: string[] = [];
  const keep = ({ text, headers }: { text: string; headers: object }) => {
    texts.push(text, JSON.stringify({ ...headers, "set-cookie": undefined }));
  };
  keep(await pages.get(`/?token=${OPERATOR}`));
  keep(await pages.post("/login", { token: `${OPERATOR}x`, next: `/?token=${OPERATOR}` }));
  keep(await pages.post("/login", { token: OPERATOR, next: "/" }));
  for (const path of ["/", "/nowhere", "/coverage?from=never", `/backfills/${OPERATOR}`])
    keep(await pages.get(path));
  const written = texts.join("\n").replaceAll(`token%3D${OPERATOR}`, "").replaceAll(`token=${OPERATOR}`, "");
  for (const secret of [OPERATOR, VIEWER, "platform-key-4713"]) expect(written).not.toContain(secret);
  const log = JSON.stringify(pages.logs);
  for (const secret of [OPERATOR, VIEWER, "platform-key-4713", "_csrf"]) expect(log).not.toContain(secret);
});
