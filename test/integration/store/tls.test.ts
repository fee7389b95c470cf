import { spawnSync } from "node:child_process";
import { chownSync, copyFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { checkReachable, openStore } from "../../../src/core/store/db/database.ts";
import { startLocalPostgres } from "../../../src/features/servers/postgres.ts";
import { type Certificate, createAuthority } from "../../support/certificates.ts";
import { start } from "../../support/cli.ts";
import { poll } from "../../support/poll.ts";

async function startTlsPostgres() {
  const { PATH = "" } = process.env;
  const server = await startLocalPostgres({ say: () => {}, env: { PATH } });
  onTestFinished(() => server.close());
  const admin = new pg.Client({ connectionString: server.url });
  await admin.connect();
  onTestFinished(() => admin.end());
  const { rows } = await admin.query<{ folder: string }>(
    "SELECT current_setting('data_directory') AS folder",
  );
  const folder = rows[0]?.folder ?? "";
  const { uid, gid } = statSync(folder);
  const take = (from: string, name: string) => {
    const to = join(folder, name);
    copyFileSync(from, to);
    chownSync(to, uid, gid);
  };
  let reloads = 0;
  const reload = async (settings: Record<string, string>) => {
    const mark = `tls.reload_${++reloads}`;
    for (const [name, value] of Object.entries({ ...settings, [mark]: "on" })) {
      await admin.query(`ALTER SYSTEM SET ${name} = '${value}'`);
    }
    await admin.query("SELECT pg_reload_conf()");
    await poll(async () => {
      const seen = await admin.query(`SELECT current_setting('${mark}', true) AS now`);
      return seen.rows[0]?.now === "on";
    });
  };
  return {
    url: server.url,
    use: async ({ cert, key }: Certificate, ca: string) => {
      take(cert, "server.crt");
      take(key, "server.key");
      take(ca, "clients-ca.crt");
      await reload({ ssl: "on", ssl_ca_file: "clients-ca.crt" });
    },
    off: () => reload({ ssl: "off" }),
    allow: async (line: string) => {
      writeFileSync(join(folder, "pg_hba.conf"), `${line}\n`);
      await reload({});
    },
  };
}

function reaching(server: { url: string }) {
  return async (parameters: Record<string, string>, host = "127.0.0.1") => {
    const store = openStore({ url: withParameters(server, parameters, host), maxConnections: 1 });
    return checkReachable(store)
      .then(() => "reached")
      .catch(({ code, message, next }) => `${message} ${next} [${code}]`.replace(/^Postgres at \S+ /, ""))
      .finally(() => store.close());
  };
}

function withParameters(
  server: { url: string },
  parameters: Record<string, string>,
  host = "127.0.0.1",
): string {
  const url = new URL(server.url);
  url.hostname = host;
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

test("a certificate that is wrong, expired, of another host or missing is named with the next step", async ({
  skip,
}) => {
  if (spawnSync("openssl", ["version"]).status !== 0) skip("openssl is not installed");
  const server = await startTlsPostgres();
  const [ours, other] = [createAuthority(), createAuthority()];
  const reach = reaching(server);
  const full = { sslmode: "verify-full", sslrootcert: ours.ca };

  expect(await reach(full)).toMatch(
    /^takes no TLS connection\. Switch TLS on .*sslmode=disable .*\[postgres_tls\]$/,
  );

  await server.use(ours.issue("127.0.0.1"), ours.ca);
  expect(await reach(full)).toBe("reached");
  expect(await reach({ ...full, sslmode: "require" })).toBe("reached");
  for (const wrong of [{ sslmode: "require" }, { ...full, sslrootcert: other.ca }]) {
    expect(await reach(wrong)).toMatch(
      /^shows a certificate of a CA that is not known here .* Add the file of its CA .*sslrootcert=/,
    );
  }
  expect(await reach({ sslmode: "no-verify" })).toBe("reached");
  expect(await reach({ ...full, sslrootcert: "/nowhere/ca.pem" })).toMatch(
    /^needs the file \/nowhere\/ca\.pem, which cannot be read: ENOENT\. Correct sslrootcert/,
  );
  expect(await reach({ ...full, sslcert: ours.ca, sslkey: ours.issue("other").key })).toMatch(
    /^needs a certificate and key that fit: .*Correct sslrootcert, sslcert and sslkey/,
  );
  expect(await reach(full, "localhost")).toMatch(
    /^shows a certificate for IP Address:127\.0\.0\.1, not for localhost\. Use a name of the certificate/,
  );

  await server.allow("hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca");
  expect(await reach({})).toMatch(
    /^.*takes TLS connections only\. Add sslmode=verify-full to DATABASE_URL\./,
  );
  expect(await reach(full)).toMatch(/^refuses the client certificate .*sslcert and sslkey in DATABASE_URL\./);
  const { cert: sslcert, key: sslkey } = ours.issue("client");
  expect(await reach({ ...full, sslcert, sslkey })).toBe("reached");
  const foreign = other.issue("client");
  expect(await reach({ ...full, sslcert: foreign.cert, sslkey: foreign.key })).toMatch(
    /^refuses the client certificate .*\[postgres_tls\]$/,
  );

  await server.use(ours.issue("127.0.0.1", -1), ours.ca);
  expect(await reach({ ...full, sslcert, sslkey })).toMatch(
    /^shows a certificate that has expired\. Renew the certificate of the server\./,
  );
});

test("channel_binding=require logs in by SCRAM over TLS alone", async ({ skip }) => {
  if (spawnSync("openssl", ["version"]).status !== 0) skip("openssl is not installed");
  const server = await startTlsPostgres();
  const reach = reaching(server);
  const ours = createAuthority();
  await server.use(ours.issue("127.0.0.1"), ours.ca);
  const bound = { sslmode: "require", sslrootcert: ours.ca, channel_binding: "require" };
  expect(await reach(bound)).toBe("reached");
  const refused =
    /^offers no login with channel binding\. .*remove channel_binding=require from DATABASE_URL\. \[postgres_tls\]$/;
  expect(await reach({ channel_binding: "require" })).toMatch(refused);
  for (const method of ["trust", "password"]) {
    await server.allow(`host all all 127.0.0.1/32 ${method}`);
    expect(await reach(bound)).toMatch(refused);
    expect(await reach({ ...bound, channel_binding: "prefer" })).toBe("reached");
  }
});

test("sslrootcert=system checks certificates by the authorities of the system and of Node", async ({
  skip,
}) => {
  if (spawnSync("openssl", ["version"]).status !== 0) skip("openssl is not installed");
  const server = await startTlsPostgres();
  const [ours, other] = [createAuthority(), createAuthority()];
  await server.use(ours.issue("localhost"), ours.ca);
  await server.allow("hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca");
  const { cert: sslcert, key: sslkey } = ours.issue("client");
  const full = { sslmode: "verify-full", sslrootcert: "system", sslcert, sslkey };
  const migrate = async (
    parameters: Record<string, string>,
    env: Record<string, string>,
    host = "localhost",
  ) => {
    const url = withParameters(server, parameters, host);
    const { code, stderr } = await start(["migrate"], { DATABASE_URL: url, ...env }).ended;
    return code === 0 ? "migrated" : stderr;
  };
  expect(await migrate(full, { SSL_CERT_FILE: ours.ca })).toBe("migrated");
  const { sslmode: _, ...byDefault } = full;
  expect(await migrate(byDefault, { NODE_EXTRA_CA_CERTS: ours.ca })).toBe("migrated");
  expect(await migrate(full, { SSL_CERT_FILE: other.ca })).toMatch(/certificate of a CA that is not known/);
  expect(await migrate(full, { SSL_CERT_FILE: ours.ca }, "127.0.0.1")).toMatch(
    /certificate for DNS:localhost/,
  );
});
