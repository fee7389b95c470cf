import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import {
  expectAccessible,
  expectKeyboard,
  expectNoSidewaysScroll,
  expectStill,
} from "../support/browser/checks.ts";
import { inBrowser, openPage, type View } from "../support/browser/page.ts";

inBrowser();

const POLICY = "default-src 'none'; style-src 'self'; script-src 'self'; img-src *";
const CSS: Readonly<Record<string, string>> = {
  "/style.css": "a:focus { outline: 2px solid } body { color: #111; background: #fff }",
  "/unseen.css": "a:focus { outline: none }",
  "/moving.css": "a { transition: color 1s }",
  "/wide.css": "p { width: 900px }",
  "/faint.css": "p { color: #ddd }",
};

async function serve(inner: string, style = "/style.css"): Promise<string> {
  const server = createServer((request, response) => {
    const { url = "" } = request;
    const css = CSS[url];
    if (css !== undefined) return response.setHeader("content-type", "text/css").end(css);
    if (url === "/throws.js") {
      return response.setHeader("content-type", "text/javascript").end("throw new Error('thrown')");
    }
    response
      .setHeader("content-type", "text/html; charset=utf-8")
      .setHeader("content-security-policy", POLICY);
    response.statusCode = url === "/" ? 200 : 404;
    return response.end(
      `<!doctype html><html lang="en"><head><title>T</title><link rel="stylesheet" href="${style}"></head><body><main><h1>T</h1><a href="/">Home</a>${inner}</main></body></html>`,
    );
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function problemsOf(inner: string, view: View = {}, path = "/"): Promise<string> {
  const { go, problems, page } = await openPage(await serve(inner), view);
  await go(path, path === "/" ? 200 : 404);
  // What the browser has to say of the page comes before its next answer.
  await page.evaluate("0");
  return problems.splice(0).join("\n");
}

test("the harness finds what a page must not do", async () => {
  const found = await problemsOf(`
    <script>1</script><p style="color: red">x</p><button type="button" onclick="alert(1)">x</button>
    <script src="/throws.js"></script><script src="/missing.js"></script>
    <img alt="x" src="http://example.invalid/x.png">`);
  for (const problem of [
    /inline script/,
    /inline style/,
    /inline event handler/,
    /thrown/,
    /404/,
    /another host/,
  ])
    expect(found).toMatch(problem);
});

test("the harness finds a violation of the policy without JavaScript, and nothing in a sound page", async () => {
  expect(await problemsOf(`<p style="color: red">x</p>`, { javascript: false })).toMatch(/inline style/);
  expect(await problemsOf("<p>not found</p>", { scheme: "dark" }, "/unknown")).toBe("");
});

test("the checks pass on a sound page, with and without JavaScript, and fail on a planted fault", async () => {
  for (const javascript of [true, false]) {
    const opened = await openPage(await serve("<p>sound</p>"), { javascript, width: 320 });
    await opened.go("/");
    await expectAccessible(opened);
    await expectNoSidewaysScroll(opened);
    await expectKeyboard(opened);
    await expectStill(opened);
  }
  const planted = async (style: string, check: typeof expectStill) => {
    const opened = await openPage(await serve("<p>planted</p>", style), { width: 320 });
    await opened.go("/");
    await expect(check(opened)).rejects.toThrow(/expected/);
  };
  await planted("/faint.css", expectAccessible);
  await planted("/wide.css", expectNoSidewaysScroll);
  await planted("/unseen.css", expectKeyboard);
  await planted("/moving.css", expectStill);
});
