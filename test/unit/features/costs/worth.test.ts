import { expect, test } from "vitest";
import { totalWorth } from "../../../../src/features/costs/worth.store.ts";

const of = (
  from: string,
  to: string,
  cost: string,
  more: { workspaceId?: string; measure?: "lcu" } = {},
) => ({
  about: { workspaceId: "a", meter: "traces", measure: "traces", from, to, ...more } as const,
  worth: [{ currency: "USD", cost }],
});

test("usage that the export and a total report is worth its largest difference, and other usage adds to it", () => {
  const [day, month] = [of("2026-10-08", "2026-10-09", "0.70"), of("2026-10-01", "2026-11-01", "-2.50")];
  const usd = (cost: string) => [{ currency: "USD", cost }];
  expect(totalWorth([day, month])).toEqual(usd("2.5"));
  expect(totalWorth([day, of("2026-10-08T05:00:00Z", "2026-10-08T06:00:00Z", "0.30")])).toEqual(usd("0.7"));
  expect(totalWorth([day, of("2026-10-09", "2026-10-10", "-0.30")])).toEqual(usd("1"));
  expect(totalWorth([day, of("2026-10-08", "2026-10-09", "0.30", { workspaceId: "b" })])).toEqual(usd("1"));
  expect(totalWorth([day, of("2026-10-08", "2026-10-09", "0.30", { measure: "lcu" })])).toEqual(usd("1"));
  expect(totalWorth([{ ...day, worth: undefined }])).toEqual([]);
});
