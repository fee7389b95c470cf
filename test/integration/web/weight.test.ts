import { readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ASSETS = fileURLToPath(new URL("../../../src/service/web/assets", import.meta.url));

test("all script of the pages together stays below 100 kB, the chart library included", () => {
  const own = readdirSync(ASSETS, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".js"))
    .map((file) => statSync(`${ASSETS}/${file}`).size);
  const uplot = statSync(createRequire(import.meta.url).resolve("uplot/dist/uPlot.iife.min.js")).size;
  const bytes = own.reduce((sum, size) => sum + size, uplot);
  expect(own.length).toBeGreaterThan(0);
  expect(bytes).toBeLessThan(100_000);
});
