import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Redis, type RedisOptions } from "ioredis";
import { onTestFinished } from "vitest";
import { createAuthority } from "./certificates.ts";
import { freePorts } from "./listen.ts";
import { poll } from "./poll.ts";
import { startRedis } from "./service.ts";
import { temporaryFolder } from "./temporary.ts";

export const PASSWORD = "redis-kinds-password";
const HOST = "127.0.0.1";

interface Node {
  readonly port: number;
  readonly keys: Redis;
  kill(): void;
}

interface Folder {
  readonly dir: string;
  readonly ca: string;
  readonly tls: RedisOptions["tls"];
  readonly lines: readonly string[];
}

async function makeFolder(): Promise<Folder> {
  await startRedis();
  const authority = createAuthority();
  const { cert, key } = authority.issue(HOST);
  const lines = [
    "port 0",
    `bind ${HOST}`,
    `tls-cert-file ${cert}`,
    `tls-key-file ${key}`,
    `tls-ca-cert-file ${authority.ca}`,
    "tls-auth-clients no",
    "tls-replication yes",
  ];
  return { dir: temporaryFolder(), ca: authority.ca, tls: { ca: readFileSync(authority.ca, "utf8") }, lines };
}

async function startNode(
  { dir, tls, lines }: Folder,
  port: number,
  own: readonly string[],
  ...flags: string[]
): Promise<Node> {
  const home = join(dir, String(port));
  mkdirSync(home);
  const config = join(home, "redis.conf");
  const all = [...lines, `tls-port ${port}`, `dir ${home}`, `requirepass ${PASSWORD}`, ...own];
  writeFileSync(config, `${all.join("\n")}\n`);
  const child: ChildProcess = spawn("redis-server", [config, ...flags], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  const keys = new Redis({
    host: HOST,
    port,
    password: PASSWORD,
    ...(tls && { tls }),
    maxRetriesPerRequest: null,
  });
  keys.on("error", () => {});
  onTestFinished(() => keys.disconnect());
  await poll(() => keys.ping());
  return { port, keys, kill: () => void child.kill("SIGKILL") };
}

async function untilLinked({ keys }: Node): Promise<void> {
  await poll(async () => (await keys.info("replication")).includes("master_link_status:up"), { everyMs: 50 });
}

async function rotate(nodes: readonly Node[], password: string, ...sentinels: Node[]): Promise<void> {
  for (const { keys } of nodes) await keys.config("SET", "masterauth", password);
  for (const { keys } of [...nodes, ...sentinels])
    await keys.acl("SETUSER", "default", "resetpass", `>${password}`);
  for (const { keys } of sentinels) await keys.call("SENTINEL", "SET", "usage", "auth-pass", password);
  for (const { keys } of [...nodes, ...sentinels])
    await keys.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
}

const STORED = [`masterauth ${PASSWORD}`, 'save ""', "appendonly yes", "maxmemory-policy noeviction"];
const SLOTS = 16_384;

export interface RedisKind {
  readonly environment: Readonly<Record<string, string>>;
  readonly otherCa: string;
  killPrimary(prefix: string): Promise<void>;
  rotate(password: string): Promise<void>;
  keys(): Promise<string[]>;
}

/** Three primaries, each with a replica if it holds the keys of the prefix. The first address of the URL is dead. */
export async function startCluster(prefix: string): Promise<RedisKind> {
  const folder = await makeFolder();
  const ports = await freePorts(4);
  const own = ["tls-cluster yes", "cluster-enabled yes", "cluster-node-timeout 1500", ...STORED];
  const nodes = await Promise.all(ports.map((port) => startNode(folder, port, own)));
  const [first, ...others] = nodes as [Node, ...Node[]];
  const primaries = nodes.slice(0, 3);
  const share = Math.ceil(SLOTS / 3);
  for (const [i, { keys }] of primaries.entries()) {
    await keys.cluster("ADDSLOTSRANGE", i * share, Math.min(SLOTS, (i + 1) * share) - 1);
  }
  for (const { port } of others) await first.keys.cluster("MEET", HOST, port);
  const slot = await first.keys.cluster("KEYSLOT", prefix);
  const owner = primaries[Math.floor(slot / share)] as Node;
  const id = String(await owner.keys.cluster("MYID"));
  const replica = nodes[3] as Node;
  await poll(() => replica.keys.cluster("REPLICATE", id), { everyMs: 50 });
  await untilLinked(replica);
  const states = () => Promise.all(nodes.map(({ keys }) => keys.cluster("INFO")));
  await poll(async () => (await states()).every((state) => state.includes("cluster_state:ok")), {
    everyMs: 50,
  });
  return {
    environment: {
      REDIS_URL: `rediss://${HOST}:1,${primaries.map(({ port }) => `${HOST}:${port}`).join(",")}`,
      REDIS_PASSWORD: PASSWORD,
      REDIS_CA_FILE: folder.ca,
    },
    otherCa: createAuthority().ca,
    killPrimary: async () => owner.kill(),
    rotate: (password) => rotate(nodes, password),
    keys: async () => {
      const left = [replica, ...primaries.filter((one) => one !== owner)];
      return (await Promise.all(left.map(({ keys }) => keys.keys("*")))).flat();
    },
  };
}

export async function startSentinel(): Promise<RedisKind> {
  const folder = await makeFolder();
  const [primaryPort, replicaPort, sentinelPort] = (await freePorts(3)) as [number, number, number];
  const primary = await startNode(folder, primaryPort, STORED);
  const replica = await startNode(folder, replicaPort, [...STORED, `replicaof ${HOST} ${primaryPort}`]);
  await untilLinked(replica);
  const watch = [
    `sentinel monitor usage ${HOST} ${primaryPort} 1`,
    `sentinel auth-pass usage ${PASSWORD}`,
    "sentinel down-after-milliseconds usage 1000",
    "sentinel failover-timeout usage 4000",
  ];
  const sentinel = await startNode(folder, sentinelPort, watch, "--sentinel");
  const knows = async () =>
    String(await sentinel.keys.call("SENTINEL", "REPLICAS", "usage")).includes(String(replicaPort));
  await poll(knows, { deadlineMs: 30_000, everyMs: 100 });
  return {
    environment: {
      REDIS_URL: `rediss+sentinel://${HOST}:1,${HOST}:${sentinelPort}/usage`,
      REDIS_PASSWORD: PASSWORD,
      REDIS_SENTINEL_PASSWORD: PASSWORD,
      REDIS_CA_FILE: folder.ca,
    },
    otherCa: createAuthority().ca,
    killPrimary: async () => primary.kill(),
    rotate: (password) => rotate([primary, replica], password, sentinel),
    keys: () => replica.keys.keys("*"),
  };
}
