import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const PROGRAM = fileURLToPath(new URL("./read-garbage.ts", import.meta.url));

test("rows that were read are garbage of the young generation, though the first ones lived longer", async () => {
  const options = ["--expose-gc", "--max-semi-space-size=4"];
  const { stdout } = await promisify(execFile)(process.execPath, [...options, PROGRAM]);
  const { rows, grownMb } = JSON.parse(stdout);
  expect(rows).toBe(150_000);
  expect(grownMb).toBeLessThan(15);
}, 60_000);
