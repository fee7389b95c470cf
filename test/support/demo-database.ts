import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTestDatabase, ensureTemplate, pastPooler } from "./database.ts";
import { startDemo } from "./running-demo.ts";
import { atEnd } from "./share.ts";

export async function setupDemoDatabase(): Promise<string> {
  await ensureTemplate("demo", async (url) => {
    const folder = mkdtempSync(join(tmpdir(), "usage-etl-"));
    const { close } = await startDemo(folder, {
      options: ["--inline"],
      env: { DATABASE_URL: await pastPooler(url) },
    });
    await close();
    rmSync(folder, { recursive: true });
  });
  const { url, drop } = await createTestDatabase({ template: "demo" });
  atEnd(drop);
  return pastPooler(url);
}
