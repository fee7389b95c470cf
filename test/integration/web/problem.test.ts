import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../../src/store/db/database.ts";
import { type PagesBench, setupPages, setupViewer, TOKENS, textOf } from "../../support/pages.ts";
import { setupMigrated } from "../../support/store.ts";

/** Pages that say what went wrong lead on as every other page does. */

async function migrated() {
  const { store, url } = await setupMigrated();
  return { store, databaseUrl: url, standin: { url: "http://127.0.0.1:9", apiKey: "platform-key-4713" } };
}

/** A source that was contacted. */
const withSource = async () => {
  const served = await migrated();
  await served.store.transaction(({ client }) =>
    client.query(
      "INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest) VALUES ('default', 'http://127.0.0.1:9', '2026-01-05', 1, '')",
    ),
  );
  return served;
};

/** Where the navigation leads, and the link that is marked as the page that is shown. */
function navigationOf(html: string) {
  const [, nav] = /<nav aria-label="Screens">(.*?)<\/nav>/s.exec(html) ?? [];
  if (nav === undefined) return undefined;
  const [, current] = /href="([^"]*)" aria-current="page"/.exec(nav) ?? [];
  return { links: [...nav.matchAll(/href="([^"]*)"/g)].map(([, to]) => to), current };
}

const linksTo = (query: string) => [
  "/",
  ...["coverage", "usage", "owners", "differences", "months", "alerts", "backfills", "timeline"].map(
    (path) => `/${path}${query}`,
  ),
];

async function shown(pages: PagesBench, path: string) {
  const { status, text } = await pages.get(path);
  const hasFooter = text.includes("<footer>") && text.includes("All days and times are UTC.");
  // Nothing was read, so it is as of no instant.
  expect(text).not.toContain("As of");
  return { status, hasFooter, title: /<h1>(.*?)<\/h1>/.exec(text)?.[1], ...navigationOf(text) };
}

test("a page that says what went wrong has the navigation, which keeps a source that there is", async () => {
  const pages = await setupPages(await withSource());
  const whole = { hasFooter: true };
  for (const [path, expected] of [
    ["/nowhere?source=default", { status: 404, links: linksTo("?source=default"), current: undefined }],
    ["/nowhere", { status: 404, links: linksTo("") }],
    [
      "/usage?by=team&source=default",
      { status: 400, links: linksTo("?source=default"), current: "/usage?source=default" },
    ],
    ["/backfills/4711?source=default", { status: 404, current: "/backfills?source=default" }],
    ["/months/never?source=default", { status: 400, current: "/months?source=default" }],
    ["/usage?source=other", { status: 404, title: "Not found", links: linksTo(""), current: "/usage" }],
    ["/usage?source=%00", { status: 400, links: linksTo("") }],
    ["/usage?source=%22%3E%3Cscript%3E", { status: 404, links: linksTo("") }],
    ["/usage.xlsx?source=default&measure=cost", { status: 404, links: linksTo("?source=default") }],
  ] as const)
    expect([path, await shown(pages, path)]).toMatchObject([path, { ...whole, ...expected }]);
  const refused = await pages.post("/backfills/1/pause?source=default");
  expect(refused.status).toBe(403);
  expect(navigationOf(refused.text)?.current).toBe("/backfills?source=default");
});

test("before the first sync, and while Postgres is away, the navigation is there too", async () => {
  const served = await migrated();
  const before = await setupPages(served);
  expect(await shown(before, "/months?source=default")).toMatchObject({
    ...{ status: 200, title: "Nothing is loaded yet", hasFooter: true, links: linksTo("?source=default") },
  });
  const away = openStore({ url: "postgres://nobody@127.0.0.1:9/nothing", maxConnections: 1 });
  onTestFinished(() => away.close());
  const pages = await setupViewer(served);
  const cookie = String(
    (await pages.post("/login", { token: TOKENS.USAGE_WEB_READ_TOKEN })).headers["set-cookie"],
  );
  const cut = await setupPages(served, { environment: TOKENS, services: { reader: away.db } });
  const { status, text } = await cut.get("/usage?source=default", { cookie: cookie.split(";")[0] ?? "" });
  expect(status).toBe(503);
  expect(navigationOf(text)).toEqual({ links: linksTo("?source=default"), current: "/usage?source=default" });
  expect(textOf(text)).toContain("You may look. Addresses of users are masked.");
  expect(text).toContain(`action="/logout"`);
});

test("who is not logged in sees no navigation, whatever went wrong", async () => {
  const served = await withSource();
  const stranger = await setupPages(served, { environment: TOKENS });
  for (const [path, status] of [
    ["/login", 200],
    ["/login?next=%2Fnowhere", 200],
    ["/assets/nowhere.js", 404],
  ] as const) {
    const answer = await stranger.get(path);
    expect([path, answer.status, navigationOf(answer.text)]).toEqual([path, status, undefined]);
    expect(answer.text).not.toContain("<footer>");
  }
  expect((await stranger.get("/nowhere")).status).toBe(303);
  const program = await stranger.get("/nowhere", { accept: "application/json" });
  expect([program.status, navigationOf(program.text)]).toEqual([401, undefined]);
  const off = await setupPages(served, { environment: { HTTP_HOST: "0.0.0.0" } });
  expect(navigationOf((await off.get("/nowhere")).text)).toBeUndefined();

  const viewer = await setupViewer(served);
  expect(await shown(viewer, "/nowhere")).toMatchObject({ status: 404, hasFooter: true, links: linksTo("") });
  const refused = await viewer.post("/backfills/1/pause");
  expect([refused.status, navigationOf(refused.text)?.links]).toEqual([403, linksTo("")]);
});
