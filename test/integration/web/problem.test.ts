import { expect, test } from "vitest";
import { readPage } from "../../support/dom.ts";
import { type PagesBench, refusalOf, setupPages, TOKENS } from "../../support/pages.ts";
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

const SCREENS = [
  ...["", "usage", "owners", "months"],
  ...["coverage", "differences", "backfills"],
  ...["alerts", "timeline"],
];
const screens = (query = "") => SCREENS.map((path) => `/${path}${query}`);
const OURS = "?source=default";

/** Status and navigation of a page. */
async function shown(pages: PagesBench, path: string) {
  const { status, screens, current } = await pages.read(path);
  return { status, screens, current };
}

test("a page that says what went wrong has the navigation, which keeps a source that there is", async () => {
  const pages = await setupPages(await withSource());
  for (const [path, status, query, current] of [
    ["/nowhere?source=default", 404, OURS, undefined],
    ["/nowhere", 404, "", undefined],
    ["/usage?by=team&source=default", 400, OURS, `/usage${OURS}`],
    ["/backfills/4711?source=default", 404, OURS, `/backfills${OURS}`],
    ["/months/never?source=default", 400, OURS, `/months${OURS}`],
    ["/usage?source=other", 404, "", "/usage"],
    ["/usage?source=%00", 400, "", "/usage"],
    ["/usage?source=%22%3E%3Cscript%3E", 404, "", "/usage"],
    ["/usage.xlsx?source=default&measure=cost", 404, OURS, undefined],
  ] as const)
    expect([path, await shown(pages, path)]).toEqual([path, { status, screens: screens(query), current }]);
  const refused = await pages.post("/backfills/1/pause?source=default");
  expect([refused.status, readPage(refused.text).current]).toEqual([403, `/backfills${OURS}`]);
});

/** Addresses that make no sense, by what is answered. */
const REFUSED = {
  "404 source_unknown": ["/usage?source=other", "/coverage?source=none", "/timeline?source=nobody"],
  "404 workspace_unknown": ["/usage?workspace=nobody", "/coverage?workspace=none"],
  "404 backfill_unknown": ["/backfills/4711"],
  "404 page_unknown": ["/backfills/0", "/backfills/x", "/backfills/99999999999"],
  "400 range_reversed": ["/usage?from=2026-03-05&to=2026-03-05", "/coverage?from=2026-03-02&to=2026-03-02"],
  "400 range_not_earlier": ["/usage?from=2026-03-05&to=2026-03-07&against=2026-03-04"],
  "400 month_invalid": ["/months/2026"],
  "400 period_not_over": ["/months/9000-01"],
  "400 period_before_data": ["/months/2019-12"],
  "400 query_invalid": [
    ...["month=2026-00", "from=2026-13-01", "by=team", "sort=name"].map((one) => `/usage?${one}`),
    ...["until=2026-02-30", "until=March+5"].map((one) => `/usage?from=2026-02-01&${one}`),
    ...["from=yesterday", "from=2026-03-01T00:30", "stride=week", "page=0"].map((one) => `/coverage?${one}`),
    ...["workspace=W&source=default", "from=2026-03-01"].map((one) => `/cell?${one}`),
    ...["page=0", "in=2026-13", "says=everybody", "state=odd"].map((one) => `/differences?${one}`),
    ...["kind=odd", "before=xyz", "before=WzFd"].map((one) => `/timeline?${one}`),
    ...["/owners?month=March", "/months?newest=x", "/usage?by=<script>alert(1)</script>"],
  ],
};

test("an address that makes no sense is refused with what is wrong, and so is its file", async () => {
  const pages = await setupPages(await withSource());
  for (const [refusal, addresses] of Object.entries(REFUSED)) {
    for (const address of addresses) {
      expect([address, await refusalOf(pages, address)]).toEqual([address, refusal]);
      const file = await pages.get(address.replace("/usage?", "/usage.csv?"));
      expect([address, file.status]).toEqual([address, Number(refusal.slice(0, 3))]);
    }
  }
  expect((await pages.get("/usage?by=<script>alert(1)</script>")).text).not.toContain("<script>alert");
});

test.each([
  ["25006", "postgres_read_only"],
  ["55P03", "postgres_busy"],
  ["57P01", "postgres_unreachable"],
])("an error %s of Postgres is named %s: only one that is away does not respond", async (state, code) => {
  const served = await withSource();
  const pages = await setupPages(served);
  await served.store.transaction(({ client }) =>
    client.query(`
      ALTER TABLE usage.backfill RENAME TO kept_backfill;
      CREATE FUNCTION usage.refuse() RETURNS SETOF usage.kept_backfill LANGUAGE plpgsql AS $$
        BEGIN RAISE 'it refuses' USING ERRCODE = '${state}'; END $$;
      CREATE VIEW usage.backfill AS SELECT * FROM usage.refuse()`),
  );
  const { status, text } = await pages.get("/backfills?source=default");
  expect([status, text.includes(`<code>${code}</code>`), text.includes("Postgres does not respond")]).toEqual(
    [503, true, code === "postgres_unreachable"],
  );
});

test("who is not logged in sees no navigation, whatever went wrong", async () => {
  const served = await withSource();
  const stranger = await setupPages(served, { environment: TOKENS });
  for (const [path, status] of [
    ["/login", 200],
    ["/login?next=%2Fnowhere", 200],
    ["/assets/nowhere.js", 404],
  ] as const)
    expect([path, await shown(stranger, path)]).toEqual([path, { status, screens: [], current: undefined }]);
  expect((await stranger.get("/nowhere")).status).toBe(303);
  expect((await stranger.get("/nowhere", { accept: "application/json" })).status).toBe(401);
  const off = await setupPages(served, { environment: { HTTP_HOST: "0.0.0.0" } });
  expect((await off.read("/nowhere")).screens).toEqual([]);
});
