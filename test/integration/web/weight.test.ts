import { readdirSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ASSETS = fileURLToPath(new URL("../../../src/service/web/assets", import.meta.url));

test("all script of the pages together stays below 100 kB", () => {
  const own = readdirSync(ASSETS, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".js"))
    .map((file) => statSync(`${ASSETS}/${file}`).size);
  const bytes = own.reduce((sum, size) => sum + size, 0);
  expect(own.length).toBeGreaterThan(0);
  expect(bytes).toBeLessThan(100_000);
});
