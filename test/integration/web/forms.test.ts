import { expect, test } from "vitest";
import { createBackfill } from "../../../src/core/store/work/backfills.ts";
import { type PagesBench, setupPages, TOKENS } from "../../support/pages.ts";
import { setupMigrated } from "../../support/store.ts";

/** Who may change something: an operator, by a form of their own session. */

const { USAGE_WEB_TOKEN: OPERATOR, USAGE_WEB_READ_TOKEN: VIEWER } = TOKENS;
const PAGE = "/backfills/1";
const FIELD = /name="_csrf" value="([^"]*)"/;

/** A backfill that runs, and as many people as look at it, each with a browser of their own. */
async function serve(environment: Record<string, string> = {}) {
  const { store, url } = await setupMigrated();
  const standin = { url: "http://127.0.0.1:9", apiKey: "platform-key-4713" };
  const sql = async <T>(text: string) =>
    (await store.transaction(({ client }) => client.query(text))).rows as T[];
  await sql(
    "INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest) VALUES ('default', 'http://127.0.0.1:9', '2026-01-05', 1, '')",
  );
  await createBackfill(store, {
    meter: "traces",
    sourceId: 1,
    range: { start: 0, end: 86_400_000 },
    stride: "day",
    groupings: ["project"],
    workspaceIds: [],
    reprocess: "missing",
    tasks: [],
    by: { name: null, role: "operator", via: "command" },
  });
  await sql("UPDATE usage.backfill SET state = 'running', finished_at = NULL");
  return {
    browser: (): Promise<PagesBench> => setupPages({ store, databaseUrl: url, standin }, { environment }),
    state: async () => (await sql<{ state: string }>("SELECT state FROM usage.backfill"))[0]?.state,
    actions: () =>
      sql<{ action: string; outcome: string; actor: string | null }>(
        "SELECT * FROM usage.operator_action WHERE action <> 'backfill.start' ORDER BY action_id",
      ),
  };
}

test("a form changes something once, with its session's token, and keeps who did it", async () => {
  const { browser, state, actions } = await serve({
    ...TOKENS,
    USAGE_WEB_USER_HEADER: "x-person",
    USAGE_WEB_TRUSTED_PROXIES: "127.0.0.1",
  });
  const ana = await browser();
  await ana.post("/login", { token: OPERATOR });
  const first = await ana.get(PAGE);
  expect([first.headers["set-cookie"]].flat()[0]).toMatch(
    /^usage_etl_form=[^;]+; Path=\/; HttpOnly; SameSite=Lax$/,
  );
  const done = await ana.post(`${PAGE}/pause`, {}, { from: PAGE, headers: { "x-person": "ana" } });
  expect([done.status, done.headers.location, await state()]).toEqual([303, PAGE, "paused"]);
  expect(await actions()).toMatchObject([{ action: "backfill.pause" }]);
  expect(JSON.stringify(await actions())).toContain("ana");
});

test("a missing, made-up, foreign or stolen token changes nothing", async () => {
  const { browser, state, actions } = await serve(TOKENS);
  const [ana, ben, viewer] = [await browser(), await browser(), await browser()];
  const [login] = await Promise.all([ana, ben].map((one) => one.post("/login", { token: OPERATOR })));
  const [anasSession = ""] = String(login?.headers["set-cookie"]).split(";");
  await viewer.post("/login", { token: VIEWER });
  const bens = await ben.get(PAGE);
  const [, bensToken = ""] = FIELD.exec(bens.text) ?? [];
  const [bensSecret = ""] = String(bens.headers["set-cookie"]).split(";");
  const [, anasToken = ""] = FIELD.exec((await ana.get(PAGE)).text) ?? [];
  expect([bensToken, anasToken]).not.toContain("");
  const refused = async (by: PagesBench, fields: Record<string, string>, headers = {}) => {
    const { status, text } = await by.post(`${PAGE}/pause`, fields, { headers });
    return [status, /<h1>(.*?)<\/h1>/.exec(text)?.[1]];
  };
  const tooOld = [403, "This form is too old"];
  expect(await refused(ana, {})).toEqual(tooOld);
  expect(await refused(ana, { _csrf: "made-up" })).toEqual(tooOld);
  expect(await refused(ana, { _csrf: bensToken })).toEqual(tooOld);
  // Ben's token with Ben's secret, which is not enough: it is bound to his session too.
  const both = { cookie: `${anasSession}; ${bensSecret}` };
  expect(await refused(ana, { _csrf: bensToken }, both)).toEqual(tooOld);
  const from = { "sec-fetch-site": "cross-site", origin: "https://evil.example" };
  expect(await refused(ana, { _csrf: anasToken }, from)).toEqual([403, "This form was sent by another site"]);
  expect(await refused(ana, { _csrf: anasToken }, { "sec-fetch-site": "same-site" })).toEqual([
    403,
    "This form was sent by another site",
  ]);
  // A session that ended takes its forms with it.
  await ben.post("/logout");
  expect((await ben.post(`${PAGE}/pause`, { _csrf: bensToken })).headers.location).toMatch(/^\/login/);

  // Who only looks has no form. Another's token does not help.
  expect((await viewer.get(PAGE)).text).not.toMatch(FIELD);
  for (const _csrf of ["", anasToken])
    expect(await refused(viewer, { _csrf })).toEqual([403, "Your login is read-only"]);
  expect([await state(), await actions()]).toEqual(["running", []]);
  // The page of the first form still works: nothing above used it up.
  expect((await ana.post(`${PAGE}/pause`, { _csrf: anasToken })).status).toBe(303);
});

test("on this machine, without a login, a form needs its page's token and a name of this machine too", async () => {
  const { browser, state } = await serve();
  const pages = await browser();
  expect((await pages.post(`${PAGE}/pause`)).status).toBe(403);
  const evil = { headers: { host: "evil.example" } };
  expect((await pages.post(`${PAGE}/pause`, {}, { from: PAGE, ...evil })).status).toBe(403);
  // Only forms are read: a page of another site may send text or JSON without being asked.
  const [, token = ""] = FIELD.exec((await pages.get(PAGE)).text) ?? [];
  for (const type of ["text/plain", "application/json", "multipart/form-data; boundary=x"]) {
    const { status } = await pages.post(
      `${PAGE}/pause`,
      { _csrf: token },
      { headers: { "content-type": type } },
    );
    expect([type, status >= 400]).toEqual([type, true]);
  }
  const large = await pages.post(`${PAGE}/pause`, { _csrf: token, x: "x".repeat(300_000) });
  expect(large.status).toBe(413);
  expect(await state()).toBe("running");
  for (const method of ["PUT", "DELETE", "PATCH"])
    expect((await fetch(`${pages.url}${PAGE}/pause`, { method })).status).toBe(404);
  expect((await pages.get(`${PAGE}/pause`)).status).toBe(404);
  expect((await pages.post("/backfills/4711/pause", {}, { from: PAGE })).status).toBe(404);
});

test("whoever sends a form after their login ended comes back to the page that it was sent from, and nothing is done", async () => {
  const { browser, state, actions } = await serve(TOKENS);
  const pages = await browser();
  await pages.post("/login", { token: OPERATOR });
  const [, token = ""] = FIELD.exec((await pages.get(PAGE)).text) ?? [];
  await pages.post("/logout");
  const requested = "from=2026-01-05&to=2026-01-07&stride=day&group_by=project&group_by=user";
  const fields = {
    from: "2026-01-05",
    to: "2026-01-07",
    stride: "day",
    group_by: ["project", "user"],
    _csrf: token,
    digest: "d".repeat(64),
    shown_at: "1",
    windows: "w".repeat(100_000),
  };
  const address = (path: string) => `${pages.url}${path}`;
  const cases: [path: string, referer: string | undefined, page: string][] = [
    ["/backfills/new", address(`/backfills/new?${requested}`), `/backfills/new?${requested}`],
    // A page that a form responded with has no address of its own.
    ["/backfills/new", address("/backfills/new"), "/"],
    ["/backfills/new", undefined, "/"],
    ["/backfills/new", "https://evil.example/backfills/new?from=2020-01-01", "/"],
    ["/backfills/new", "no address", "/"],
    ["/months/2026-01/close", address("/months/2026-01?source=default"), "/months/2026-01?source=default"],
    [`${PAGE}/pause`, address(PAGE), PAGE],
    ["/nowhere", undefined, "/"],
  ];
  for (const [path, referer, page] of cases) {
    const headers = referer === undefined ? {} : { referer };
    const response = await pages.post(path, fields, { headers });
    const to = new URL(String(response.headers.location), pages.url);
    const next = to.searchParams.get("next") ?? "";
    const queryOf = (one: string) => [...new URL(one, pages.url).searchParams].sort();
    expect([path, referer, response.status, to.pathname, next.split("?")[0], queryOf(next)]).toEqual([
      path,
      referer,
      303,
      "/login",
      page.split("?")[0],
      queryOf(page),
    ]);
    expect(String(response.headers.location)).not.toMatch(/_csrf|digest|windows/);
  }
  expect([await state(), await actions()]).toEqual(["running", []]);
});
