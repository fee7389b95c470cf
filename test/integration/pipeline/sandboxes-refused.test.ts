import { expect, test } from "vitest";
import { ALL, fault, inLedger, inViews, setupSandboxes } from "../../support/sandboxes.ts";
import type { Bench } from "../../support/source.ts";

/** Responses about sandboxes that cannot be: nothing of them is stored, and all is there once they are right. */

test.each(["repeated-page", "endless", "cursor-expired", "no-cursor"] as const)(
  "pages that cannot be (%s) are refused; nothing is doubled, and the rest is loaded",
  async (wrong) => {
    // So long that hours take several pages of 100.
    const bench = await setupSandboxes({ workspaces: [0], days: 12 });
    for (const times of [1000, 1]) {
      const stored = await syncWith(bench, wrong, times);
      if (times > 1 && (wrong === "endless" || wrong === "no-cursor")) expect(stored).toEqual([]);
    }
    await expectAll(bench);
  },
);

test("records that cannot be are refused with all of their response, and loaded once they can", async () => {
  const bench = await setupSandboxes({ workspaces: [0], days: 12 });
  for (const wrong of ["null", "negative", "many-digits", "off-hour"] as const)
    expect([wrong, await syncWith(bench, wrong, 1000)]).toEqual([wrong, []]);
  await syncWith(bench, "negative", 1);
  await expectAll(bench);
});

/** A sync while so many responses are wrong: what is stored of sandboxes then, all of it right. */
async function syncWith(bench: Bench, wrong: Parameters<typeof fault>[0], times: number): Promise<string[]> {
  bench.standin.faults.script(fault(wrong, times));
  await bench.sync(ALL);
  expect(bench.standin.faults.fired).toBeGreaterThan(0);
  bench.standin.faults.clear();
  const [stored, ofWorkspace] = [await inViews(bench, "sandbox"), await inViews(bench, "workspace")];
  expect(stored.filter((line) => !inLedger(bench, "sandbox").includes(line))).toEqual([]);
  expect(ofWorkspace.filter((line) => !inLedger(bench, "workspace").includes(line))).toEqual([]);
  await bench.passTime();
  return stored;
}

async function expectAll(bench: Bench): Promise<void> {
  await bench.sync(ALL);
  for (const by of ["workspace", "sandbox"] as const)
    expect(await inViews(bench, by)).toEqual(inLedger(bench, by));
}
