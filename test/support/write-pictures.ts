import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { BILLED, PLANTED } from "../../src/app/demo/story.ts";
import { monthAt, monthBefore } from "../../src/core/domain/months/month.ts";
import { commandEnvironment } from "../../src/terminal/running-demo.ts";
import { startChromium } from "./browser/chromium.ts";
import { now } from "./clock.ts";
import { startDemo } from "./running-demo.ts";

/**
 * `npm run docs:pictures` writes pictures of the pages into docs/pictures, light and dark: of the demo that runs, else of
 * one that it starts for a minute or two. Look at them before you commit them.
 */
const FOLDER = fileURLToPath(new URL("../../docs/pictures", import.meta.url));
/** Pictures of a whole month have no notes on days that may still change. */
const MONTH = monthBefore(monthAt(now())).name;
const PICTURES = [
  { name: "overview", path: `/?source=${BILLED}`, height: 1000 },
  { name: "coverage", path: `/coverage?source=${PLANTED}`, height: 760 },
  { name: "usage", path: `/usage?source=${BILLED}&measure=cost&by=workspace`, height: 1000 },
  { name: "month", path: `/months/${MONTH}?source=${BILLED}`, height: 1000 },
  { name: "owners", path: `/owners?month=${MONTH}&source=${BILLED}`, height: 830 },
];
const LARGEST_BYTES = 220_000;
const LANGUAGE = "en-CA";

const { url, end } = await findDemo();
const server = await startChromium({ args: ["--enable-blink-features=LangAttributeAwareFormControlUI"] });
try {
  const browser = await chromium.connect(server.wsEndpoint());
  mkdirSync(FOLDER, { recursive: true });
  for (const colorScheme of ["light", "dark"] as const) {
    for (const { name, path, height } of PICTURES) {
      const page = await browser.newPage({ colorScheme, viewport: { width: 1280, height } });
      await page.route(isPage, async (route) => {
        const fetched = await route.fetch();
        await route.fulfill({ response: fetched, body: inLanguage(await fetched.text()) });
      });
      const response = await page.goto(new URL(path, url).href, { waitUntil: "load" });
      if (response?.status() !== 200) throw new Error(`${path} responded with ${response?.status()}`);
      const file = join(FOLDER, `${name}-${colorScheme}.png`);
      await page.screenshot({ path: file, animations: "disabled" });
      const { size } = statSync(file);
      if (size > LARGEST_BYTES) throw new Error(`${file} has ${size} bytes, more than ${LARGEST_BYTES}`);
      process.stdout.write(`${file} ${size} bytes\n`);
      await page.close();
    }
  }
  await browser.close();
} finally {
  await server.close();
  await end();
}

function isPage(url: URL): boolean {
  return PICTURES.some(({ path }) => path === `${url.pathname}${url.search}`);
}

function inLanguage(page: string): string {
  return page.replace('<html lang="en">', `<html lang="${LANGUAGE}">`);
}

async function findDemo(): Promise<{ url: string; end: () => Promise<void> }> {
  const { note = "" } = await commandEnvironment({ PATH: process.env.PATH });
  const [, running] = /Its pages: (\S+)/.exec(note) ?? [];
  if (running !== undefined) return { url: running, end: async () => {} };
  const dataDir = mkdtempSync(join(tmpdir(), "usage-etl-pictures-"));
  process.stdout.write("Starting a demo.\n");
  const { said, close } = await startDemo(dataDir);
  const [, pages = ""] = /Pages: (\S+)/.exec(said) ?? [];
  return {
    url: pages,
    end: async () => {
      await close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
