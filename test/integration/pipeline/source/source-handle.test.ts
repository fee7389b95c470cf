import { expect, test } from "vitest";
import { Secret } from "../../../../src/core/base/secret.ts";
import {
  isKeyRefused,
  isRefusedLately,
  keepRefusal,
} from "../../../../src/core/pipeline/source/refused-key.ts";
import { createSourceHandle } from "../../../../src/core/pipeline/source/source-handle.ts";
import { ACCESS_PROVEN_FOR_MS } from "../../../../src/core/store/access/workspace-access.ts";
import { platformError } from "../../../support/platform-error.ts";
import { setup } from "../../../support/source.ts";

const SYNC_MS = 60_000;

async function setupHandle() {
  const bench = await setup({ workspaces: [0], days: 1 });
  const source = await bench.open();
  let [now, key, contacts] = [0, "first", 0];
  const { organization } = source.billing;
  const billing = Object.assign(source.billing, {
    organization: async (...requested: Parameters<typeof organization>) => {
      contacts += 1;
      return organization(...requested);
    },
  });
  const deps = {
    ...source,
    billing,
    clock: { ...source.clock, now: () => now },
    config: { ...source.config, apiKey: Object.assign(new Secret("x"), { reveal: () => key }) },
  };
  const handle = createSourceHandle(deps, SYNC_MS);
  const rotate = (to: string) => {
    key = to;
  };
  const passTime = (ms: number) => {
    now += ms;
  };
  const isRefused = () => isRefusedLately(source);
  return { bench, source, deps, handle, rotate, passTime, isRefused, contacts: () => contacts };
}

test("contact is made once for a sync, and again when it is older or the key is another one", async () => {
  const { handle, rotate, passTime, contacts } = await setupHandle();
  const [first, same] = await Promise.all([handle.open(), handle.open()]);
  expect(same).toBe(first);
  passTime(SYNC_MS - 1);
  expect(await handle.open()).toBe(first);
  expect(contacts()).toBe(1);
  passTime(1);
  const second = await handle.open();
  expect(second).not.toBe(first);
  expect(contacts()).toBe(2);
  rotate("second");
  expect(await handle.open()).not.toBe(second);
  expect(contacts()).toBe(3);
  // A sync makes contact though it was made just now, and what follows uses it.
  const third = await handle.openForSync();
  expect(contacts()).toBe(4);
  expect(await handle.open()).toBe(third);
  expect(contacts()).toBe(4);
});

test("contact that failed is made again, and so is an entry", async () => {
  const { handle, deps, contacts } = await setupHandle();
  const { organization } = deps.billing;
  Object.assign(deps.billing, {
    organization: async () => {
      throw platformError(400);
    },
  });
  await expect(handle.open()).rejects.toThrow("it says 400");
  Object.assign(deps.billing, { organization });
  await handle.open();
  expect(contacts()).toBe(1);

  let fails = true;
  const broken = createSourceHandle(
    {
      ...deps,
      get store() {
        if (fails) throw new Error("no store");
        return deps.store;
      },
    },
    SYNC_MS,
  );
  await expect((async () => broken.known())()).rejects.toThrow("no store");
  fails = false;
  const known = await broken.known();
  expect(known).toEqual({ store: deps.store, sourceId: 1 });
  expect(await broken.known()).toBe(known);
});

test("a refused key is left alone for an hour by every process, and another key is not", async () => {
  const { bench, handle, deps, source, rotate, isRefused, contacts } = await setupHandle();
  const known = await handle.known();
  expect(await handle.known()).toBe(known);
  for (const [error, isOne] of [
    [platformError(401), true],
    [platformError(403), true],
    [platformError(404), false],
    [new Error("401"), false],
  ] as const) {
    expect(isKeyRefused(error)).toBe(isOne);
    await keepRefusal({ ...deps, sourceId: source.sourceId }, error);
    expect(await isRefused()).toBe(isOne);
    await bench.sql("UPDATE usage.source SET refused_at = NULL, refused_code = NULL, refused_message = NULL");
  }
  await keepRefusal({ ...deps, sourceId: source.sourceId }, platformError(403));
  expect(await bench.sql("SELECT refused_code, refused_message FROM usage.source")).toEqual([
    { refused_code: "status_403", refused_message: "it says 403" },
  ]);
  expect(await handle.openForSync()).toBeUndefined();
  expect(contacts()).toBe(0);
  await bench.sql("UPDATE usage.source SET refused_at = now() - interval '61 minutes'");
  expect(await handle.openForSync()).toBeDefined();
  expect(await isRefused()).toBe(false);

  rotate("second");
  await createSourceHandle(deps, SYNC_MS).known();
  await keepRefusal({ ...deps, sourceId: source.sourceId }, platformError(401));
  expect(await handle.known()).not.toBe(known);
  expect(await isRefused()).toBe(false);
  await keepRefusal({ ...deps, sourceId: source.sourceId }, platformError(401));
  await createSourceHandle(deps, SYNC_MS).known();
  expect(await isRefused()).toBe(true);
});

test("access is proven anew once half of the proof's time is used up", async () => {
  const { bench, handle, passTime } = await setupHandle();
  const { access } = await handle.open();
  const { requests } = bench.standin;
  const requested = async () => {
    const before = requests.count;
    await access.fresh();
    return requests.count - before;
  };
  passTime(ACCESS_PROVEN_FOR_MS / 2);
  expect(await requested()).toBe(0);
  passTime(1);
  expect(await requested()).toBe(2);
  expect(await requested()).toBe(0);
});
