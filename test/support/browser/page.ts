import { type Browser, type BrowserContext, chromium, type Page, type Response } from "playwright-core";
import { beforeEach, expect, onTestFinished } from "vitest";
import { serviceUrl } from "../services.ts";

/** How somebody looks at a page. */
export interface View {
  /** Default true. */
  readonly javascript?: boolean;
  /** Default light. */
  readonly scheme?: "light" | "dark";
  /** Pixels; default 1280. */
  readonly width?: number;
  readonly forcedColors?: boolean;
  readonly reducedMotion?: boolean;
}

export interface Opened {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What went wrong in the page so far. What is left at the end of the test fails it. */
  readonly problems: string[];
  /** Opens a path and expects that status, by default 200. */
  go(path: string, status?: number): Promise<Response>;
  /** Does the work with scripts allowed, whatever the view says: axe is one. */
  withScripts<T>(work: () => Promise<T>): Promise<T>;
}

let connection: Promise<Browser> | undefined;

/** Call it in a file of browser tests: where no browser can be had, its tests are skipped and say why. */
export function inBrowser(): void {
  beforeEach(async (context) => {
    connection ??= serviceUrl("browser").then((url) => chromium.connect(url));
    const failure = await connection.then(
      () => undefined,
      (error: Error) => error.message,
    );
    if (failure !== undefined) context.skip(failure);
  });
}

/**
 * Opens a window on pages of the server at `base`, as a person who looks that way. The test fails on a violation of the
 * content security policy, an error in the console or a script, a failed request, and a request to another host.
 */
export async function openPage(base: string, view: View = {}): Promise<Opened> {
  const { javascript = true, scheme = "light", width = 1280, forcedColors, reducedMotion } = view;
  if (connection === undefined) throw new Error("call inBrowser() first");
  const context = await (await connection).newContext({
    baseURL: base,
    viewport: { width, height: 800 },
    colorScheme: scheme,
    forcedColors: forcedColors === true ? "active" : "none",
    reducedMotion: reducedMotion === true ? "reduce" : "no-preference",
    locale: "en-US",
    timezoneId: "America/St_Johns",
  });
  context.setDefaultTimeout(15_000);
  const problems: string[] = [];
  onTestFinished(async () => {
    await context.close();
    expect(problems).toEqual([]);
  });
  const page = await context.newPage();
  const expected = watch(page, base, problems);
  // Playwright's own switch is for good, and axe would never end.
  const session = await context.newCDPSession(page);
  const forbidScripts = (value: boolean) => session.send("Emulation.setScriptExecutionDisabled", { value });
  if (!javascript) await forbidScripts(true);
  return {
    page,
    context,
    problems,
    go: async (path, status = 200) => {
      const url = new URL(path, base).href;
      if (status >= 400) expected.add(url);
      const response = await page.goto(url, { waitUntil: "load" });
      expect([path, response?.status()]).toEqual([path, status]);
      return response as Response;
    },
    withScripts: async (work) => {
      if (javascript) return await work();
      await forbidScripts(false);
      return await work().finally(() => forbidScripts(true));
    },
  };
}

/** Writes down what goes wrong in a page. Returns the addresses whose error status is expected. */
function watch(page: Page, base: string, problems: string[]): Set<string> {
  const expected = new Set<string>();
  const { origin } = new URL(base);
  page.on("pageerror", (error) => problems.push(`error in a script: ${error.message}`));
  page.on("crash", () => problems.push("the page crashed"));
  // Also violations of the content security policy, which Chromium reports here with and without scripts.
  page.on("console", (message) => {
    const { url } = message.location();
    const isExpected = expected.has(url) && message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isExpected) problems.push(`console: ${message.text()} (${url})`);
  });
  page.on("dialog", async (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    await dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.origin !== origin) problems.push(`another host: ${url.href}`);
  });
  page.on("requestfailed", (request) => {
    // A stream of events that ends since the page is left, and the icon that a Chromium with windows asks for beside the page.
    const reason = request.failure()?.errorText;
    const isIcon = request.url().endsWith("/assets/icon.svg");
    const mayEnd = isIcon || ["eventsource", "fetch"].includes(request.resourceType());
    if (reason === "net::ERR_ABORTED" && mayEnd) return;
    problems.push(`request failed: ${request.url()} ${reason}`);
  });
  page.on("response", (response) => {
    if (
      response.status() >= 400 &&
      !expected.has(response.url()) &&
      !response.request().isNavigationRequest()
    )
      problems.push(`${response.status()}: ${response.url()}`);
  });
  return expected;
}
