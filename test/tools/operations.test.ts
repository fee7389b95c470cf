import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { json, text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { openPlace } from "../../src/features/export/place.ts";
import { createAuthority } from "../support/certificates.ts";
import { usageEtl } from "../support/cli.ts";
import { freePorts, listenInTest } from "../support/listen.ts";
import { poll } from "../support/poll.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { setupService } from "../support/service.ts";
import { setupMigrated } from "../support/store.ts";
import { temporaryFile, temporaryFolder } from "../support/temporary.ts";
import { notFound, notInstalled, venvOf } from "./counterparts.ts";
import { FIRST, manifestOf, setupFiles, signal, wrongFiles } from "./files.ts";

/** Servers of others beside the service, configured as the documents say. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const TOKEN = "an-operator-token-of-tests";

/** A server until the test ends. */
function startServer(
  program: string,
  args: readonly string[],
): { process: ChildProcess; said: () => string } {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (piece) => {
      said += piece;
    });
  onTestFinished(async () => {
    if (child.exitCode === null && child.kill("SIGTERM")) await once(child, "exit");
  });
  return { process: child, said: () => said };
}

test("a rule that fires in Prometheus reaches the receiver of Alertmanager", async ({ skip }) => {
  const missing = notFound("prometheus") ?? notFound("promtool") ?? notFound("prometheus-alertmanager");
  if (missing !== undefined) skip(missing);
  const [servicePort, prometheusPort, managerPort] = (await freePorts(3)) as [number, number, number];
  const received: { status: string; labels: Record<string, string>; annotations: Record<string, string> }[] =
    [];
  const receiver = createServer(async (request, response) => {
    received.push(...((await json(request)) as { alerts: typeof received }).alerts);
    response.end();
  });
  const receiverPort = await listenInTest(receiver);
  const bench = await setupService({ days: 2, workspaces: 1 });
  const service = await bench.serve({ environment: { HTTP_PORT: String(servicePort) } });

  const checked = spawnSync("promtool", ["check", "metrics"], {
    encoding: "utf8",
    input: await (await fetch(`http://127.0.0.1:${servicePort}/metrics`)).text(),
  });
  expect([checked.status, checked.stderr]).toEqual([0, ""]);

  const folder = temporaryFolder();
  // What is shipped, but for the addresses and for how long a test would wait.
  writeFileSync(
    join(folder, "rules.yml"),
    read("docs/deploy/monitoring/rules.yml").replace(/for: \d+m/g, "for: 1s"),
  );
  const shipped = read("docs/deploy/monitoring/prometheus.yml").replaceAll("15s", "1s");
  const prometheus = shipped.replace(
    / {4}dns_sd_configs[\s\S]*/,
    `    static_configs: [{ targets: ["127.0.0.1:${servicePort}"] }]
alerting:
  alertmanagers: [{ static_configs: [{ targets: ["127.0.0.1:${managerPort}"] }] }]
`,
  );
  expect(prometheus).not.toBe(shipped);
  const config = join(folder, "prometheus.yml");
  writeFileSync(config, prometheus);
  const manager = temporaryFile(`
route: { receiver: on-call, group_by: ["..."], group_wait: 0s }
receivers: [{ name: on-call, webhook_configs: [{ url: "http://127.0.0.1:${receiverPort}" }] }]
`);
  startServer("prometheus-alertmanager", [
    `--config.file=${manager}`,
    `--storage.path=${join(folder, "manager")}`,
    `--web.listen-address=127.0.0.1:${managerPort}`,
    "--cluster.listen-address=",
  ]);
  startServer("prometheus", [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${prometheusPort}`,
  ]);
  const valueNow = async (query: string) => {
    const url = `http://127.0.0.1:${prometheusPort}/api/v1/query?query=${encodeURIComponent(query)}`;
    const { data } = (await (await fetch(url)).json()) as { data: { result: { value: [number, string] }[] } };
    return data.result[0]?.value[1];
  };
  await poll(async () => (await valueNow("usage_etl_database_up")) === "1", {
    deadlineMs: 60_000,
    everyMs: 200,
  });
  const names = () => received.map(({ status, labels }) => `${labels.alertname} ${status}`);
  expect(names()).not.toContain("UsageEtlDown firing");

  service.process.kill("SIGTERM");
  await poll(() => names().includes("UsageEtlDown firing"), { deadlineMs: 60_000 });
  expect(received.find(({ labels }) => labels.alertname === "UsageEtlDown")).toMatchObject({
    labels: { severity: "critical", instance: `127.0.0.1:${servicePort}` },
    annotations: { summary: `usage-etl 127.0.0.1:${servicePort} does not respond` },
  });
  expect(names()).not.toContain("UsageEtlDatabaseDown firing");
});

test("behind nginx as the document configures it, people log in twice and are named, and AI clients need their token alone", async ({
  skip,
}) => {
  const missing = notFound("nginx", ["-v"]);
  if (missing !== undefined) skip(missing);
  const [servicePort, proxyPort] = (await freePorts(2)) as [number, number];
  const bench = await setupService({ days: 2, workspaces: 1 });
  await bench.serve({
    environment: {
      HTTP_PORT: String(servicePort),
      USAGE_WEB_TOKEN: TOKEN,
      USAGE_WEB_TRUSTED_PROXIES: "127.0.0.1",
      USAGE_WEB_USER_HEADER: "X-Forwarded-User",
    },
  });
  const [, documented = ""] = /```nginx\n([\s\S]*?)```/.exec(read("docs/pages.md")) ?? [];
  const folder = temporaryFolder();
  const own = documented
    .replaceAll("127.0.0.1:9464", `127.0.0.1:${servicePort}`)
    .replace("/etc/nginx/usage.htpasswd", join(folder, "htpasswd"));
  writeFileSync(join(folder, "htpasswd"), "ada:{PLAIN}secret-of-ada\n");
  const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${folder}/${name};`)
    .join(" ");
  const config = join(folder, "nginx.conf");
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr;
events {}
http { access_log off; ${paths} server { listen 127.0.0.1:${proxyPort}; ${own} } }
`,
  );
  const nginx = startServer("nginx", ["-c", config, "-p", folder]);
  const at = (path: string, headers: Record<string, string>, form?: Record<string, string>) =>
    fetch(`http://127.0.0.1:${proxyPort}${path}`, {
      redirect: "manual",
      headers,
      ...(form && { method: "POST", body: new URLSearchParams(form) }),
    });
  const basic = { authorization: `Basic ${Buffer.from("ada:secret-of-ada").toString("base64")}` };
  await poll(async () => (await at("/", {})).status === 401, { deadlineMs: 30_000 }).catch((error: Error) => {
    throw new Error(nginx.said(), { cause: error });
  });
  expect((await at("/", { ...basic, accept: "text/html" })).headers.get("location")).toMatch(/^\/login/);
  const origin = { ...basic, origin: `http://127.0.0.1:${proxyPort}` };
  const login = await at("/login", origin, { token: TOKEN });
  const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
  const page = await at("/", { ...basic, cookie, "x-forwarded-user": "mallory" });
  const shown = await page.text();
  expect([page.status, shown.includes("ada"), shown.includes("mallory")]).toEqual([200, true, false]);
  const mcp = async (headers: Record<string, string>) => {
    const response = await fetch(`http://127.0.0.1:${proxyPort}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
    });
    return response.status;
  };
  expect(await mcp({})).toBe(401);
  expect(await mcp({ authorization: `Bearer ${TOKEN}` })).toBe(200);
});

test("a mail arrives through aiosmtpd with STARTTLS and a login, and its refusal is shown", async ({
  skip,
}) => {
  const missing = notInstalled("operations");
  if (missing !== undefined) skip(missing);
  const [port] = (await freePorts(1)) as [number];
  const { cert, key } = createAuthority().issue("localhost");
  const program = temporaryFile(`
import email, email.policy, json, ssl, sys, time
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

class Handler:
    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        said = {name: mail[name] for name in ("from", "to", "subject")}
        said["text"] = mail.get_body(("plain",)).get_content()
        said["hello"] = session.host_name
        print(json.dumps(said), flush=True)
        return "250 taken"

def login(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"ada", b"secret-of-ada"), handled=False)

context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(${JSON.stringify(cert)}, ${JSON.stringify(key)})
Controller(Handler(), hostname="127.0.0.1", port=${port}, tls_context=context, require_starttls=True,
           auth_required=True, authenticator=login).start()
print("ready", flush=True)
time.sleep(300)
`);
  const server = startServer(join(venvOf("operations"), "bin/python"), [program]);
  await poll(() => server.said().includes("ready"), { deadlineMs: 30_000 });
  const { url } = await setupMigrated();
  const owners = temporaryFile(
    `rules: []
routes:
  - { name: finance, type: email, secret: USAGE_ROUTE_SMTP, from: usage@example.com, to: [finance@example.com] }
`,
    "owners.yaml",
  );
  const send = (password: string) =>
    usageEtl(["alerts", "test", "finance"], {
      DATABASE_URL: url,
      USAGE_ROUTE_SMTP: `smtp://ada:${password}@127.0.0.1:${port}?name=usage.example.com`,
    });
  const applied = await usageEtl(["owners", "apply", owners], { DATABASE_URL: url });
  expect(applied.code, applied.stderr).toBe(0);
  const sent = await send("secret-of-ada");
  expect(sent.code, sent.stderr).toBe(0);
  expect(JSON.parse(/^\{.*\}$/m.exec(server.said())?.[0] ?? "null")).toMatchObject({
    from: "usage@example.com",
    to: "finance@example.com",
    subject: expect.stringContaining("finance"),
    hello: "usage.example.com",
  });
  const refused = await send("another");
  expect(refused.code).toBeGreaterThan(0);
  expect(refused.stderr).toContain("535");
  expect(refused.stdout + refused.stderr).not.toContain("another");
});

test("files are written to, checked in and removed from the S3 of moto", async ({ skip }) => {
  const missing = notInstalled("operations");
  if (missing !== undefined) skip(missing);
  const [port] = (await freePorts(1)) as [number];
  const endpoint = `http://127.0.0.1:${port}`;
  const server = startServer(join(venvOf("operations"), "bin/moto_server"), [
    "-H",
    "127.0.0.1",
    "-p",
    String(port),
  ]);
  await poll(() => fetch(`${endpoint}/usage`, { method: "PUT" }).then(({ ok }) => ok), {
    deadlineMs: 60_000,
  }).catch((error: Error) => {
    throw new Error(server.said(), { cause: error });
  });
  const environment = {
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "a-key-of-tests",
    AWS_SECRET_ACCESS_KEY: "a-secret-of-tests",
  };
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  const place = await openPlace("s3://usage/warehouse", { signal });
  const { url, write, load } = await setupFiles();
  await load("workspace", FIRST, [[WORKSPACES[0], 7]]);
  await write({ place });
  await load("workspace", FIRST, [[WORKSPACES[0], 9]]);
  await write({ place, keepMs: 0 });
  expect(await wrongFiles(place)).toEqual([]);
  const listed = await text((await fetch(`${endpoint}/usage?list-type=2`)).body as never);
  const keys = [...listed.matchAll(/<Key>([^<]+)<\/Key>/g)].map(([, key]) => key as string);
  expect(keys.sort()).toEqual([...(await place.list("")).keys()].map((name) => `warehouse/${name}`).sort());
  // The check finds an object that somebody else wrote over.
  const [{ path = "" } = {}] = Object.values((await manifestOf(place)).datasets).flatMap(
    ({ files }) => files,
  );
  const file = await place.create(path);
  await file.write(Buffer.from("another file"));
  await file.commit();
  expect(await wrongFiles(place)).toHaveLength(1);
  const forgotten = await usageEtl(["source", "forget", "default", "--with-records"], {
    DATABASE_URL: url,
    USAGE_EXPORT_DIR: place.address,
    ...environment,
  });
  expect(forgotten.code, forgotten.stderr).toBe(0);
  expect(await text((await fetch(`${endpoint}/usage?list-type=2`)).body as never)).not.toContain("<Key>");
});
