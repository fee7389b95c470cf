import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { dashboard, type Panel } from "./dashboard/dashboard.ts";
import { programOf } from "./dashboard/grafana-types.ts";

/** What the compiler says of the panels. */
async function check(panels: readonly Panel[]): Promise<string> {
  // Below node_modules, where no other check looks.
  const cache = fileURLToPath(new URL("../../node_modules/.cache/", import.meta.url));
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "grafana-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const [name, text] of Object.entries(programOf(panels))) await writeFile(join(folder, name), text);
  const compilerOptions = { strict: true, noEmit: true, skipLibCheck: true, types: [], target: "es2022" };
  const config = {
    compilerOptions: { ...compilerOptions, allowImportingTsExtensions: true, module: "preserve" },
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ ...config, files: ["program.ts"] }));
  const ended = await promisify(execFile)("tsc", ["--project", folder]).catch((error) => error);
  return ended.stdout;
}

test("the panels have the form that Grafana's own types describe", async () => {
  expect(await check(dashboard.panels)).toBe("");
  const [panel] = dashboard.panels.filter(({ type }) => type === "heatmap") as [Panel];
  expect(await check([{ ...panel, options: { ...panel.options, colour: {} } }])).toContain("colour");
});
