import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { start } from "../support/cli.ts";
import { poll } from "../support/poll.ts";
import { connectPlain } from "../support/reporting.ts";
import { setup } from "./export-setup.ts";

describe("an interrupted export", () => {
  /** A view of as many rows as wanted, made by the owner: one of ours would have to be filled first. */
  async function withLongView(rows: number, { time = "nothing" } = {}) {
    const bench = await setup();
    const owner = await connectPlain(bench.url);
    await owner.query(`
      CREATE VIEW reporting.long AS
      SELECT generate_series(1, ${rows}) AS number, repeat('x', 200) AS filler, now() AS ${time}`);
    return bench;
  }

  test("ends quietly and at once when the reader closes the pipe", async () => {
    const { url } = await withLongView(1_000_000_000);
    const running = start(["export", "--view", "long"], { DATABASE_URL: url });
    running.process.stdout?.once("data", () => running.process.stdout?.destroy());
    const { code, stderr } = await running.ended;
    expect([code, stderr]).toEqual([0, ""]);
  });

  test("keeps the previous file after Ctrl-C, and no part of a new one", async () => {
    const { url, folder } = await withLongView(1_000_000_000, { time: "usage_hour" });
    const out = join(folder, "long.csv");
    await writeFile(out, "before");
    const running = start(["export", "--view", "long", "--out", out], { DATABASE_URL: url });
    const owner = await connectPlain(url);
    await poll(
      async () =>
        (
          await owner.query(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query LIKE 'COPY%'",
          )
        ).rowCount,
      { deadlineMs: 30_000 },
    );
    running.process.kill("SIGINT");
    const { code, stderr } = await running.ended;
    expect([code, stderr]).toEqual([130, expect.stringContaining("Interrupted.")]);
    expect(await readdir(folder)).toEqual(["long.csv"]);
    expect(await readFile(out, "utf8")).toBe("before");
  });

  test("leaves nothing behind when the disk fills up", async ({ skip }) => {
    const { folder, run } = await withLongView(100_000);
    const small = join(folder, "small");
    await mkdir(small);
    const command = promisify(execFile);
    const isMounted = await command("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", small]).then(
      () => true,
      () => false,
    );
    if (!isMounted) return skip("this user may not mount a small disk");
    onTestFinished(async () => void (await command("umount", [small])));
    for (const format of ["csv", "json", "parquet"]) {
      const { code, stderr } = await run("--view", "long", "--format", format, "--out", join(small, "long"));
      // Snappy makes little of so much of the same.
      if (format === "parquet" && code === 0) continue;
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining("cannot be written: no space is left. No part of the export was kept."),
      ]);
      expect(await readdir(small)).toEqual([]);
    }
  });
});
