import { type BrowserServer, chromium } from "playwright-core";
import { aptInstall, isExecutable, mayAptInstall, onPath } from "../../../src/features/servers/install.ts";

/** Debian's smallest first: the shell has no windows and starts in half the time. */
const PROGRAMS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"];
const MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome";
/** With a font that has the glyphs of the pages: a machine without any font draws boxes. */
const PACKAGES = ["chromium-headless-shell", "fonts-dejavu-core"] as const;
const START_MS = 60_000;

/**
 * Starts a Chromium for tests and pictures: that of `CHROME_PATH`, else one of this machine, else Debian's, installed
 * first as root. Throws an error whose message says why there is none, and what to do.
 */
export async function startChromium({
  env = process.env,
  say = (line: string) => void process.stderr.write(`${line}\n`),
  args = [] as readonly string[],
} = {}): Promise<BrowserServer> {
  const executablePath = await findChromium(env, say);
  // Chromium refuses to run as root with its sandbox; nobody else runs without it.
  const isRoot = process.getuid?.() === 0;
  return chromium.launchServer({
    executablePath,
    chromiumSandbox: !isRoot,
    // A small /dev/shm, as in a container, would end the page.
    args: ["--disable-dev-shm-usage", "--force-color-profile=srgb", ...args],
    timeout: START_MS,
  });
}

async function findChromium(env: NodeJS.ProcessEnv, say: (line: string) => void): Promise<string> {
  const { CHROME_PATH } = env;
  if (CHROME_PATH !== undefined && CHROME_PATH !== "") {
    if (isExecutable(CHROME_PATH)) return CHROME_PATH;
    throw new Error(`CHROME_PATH=${CHROME_PATH} is not a program.`);
  }
  const find = () => onPath(PROGRAMS, env) ?? (isExecutable(MAC) ? MAC : undefined);
  const found = find();
  if (found !== undefined) return found;
  const next = `Install chromium, or set CHROME_PATH to a Chromium or Chrome.`;
  if (!(await mayAptInstall(env))) throw new Error(`No Chromium on PATH. ${next}`);
  say(`No Chromium on PATH: installing ${PACKAGES[0]} with apt-get, once (100 MB).`);
  await aptInstall(PACKAGES, env).catch((error: Error) => {
    throw new Error(`No Chromium on PATH, and apt-get could not install it: ${error.message} ${next}`);
  });
  const installed = find();
  if (installed === undefined) throw new Error(`apt-get installed ${PACKAGES[0]}, but it is not on PATH.`);
  return installed;
}
