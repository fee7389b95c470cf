import { expect, test } from "vitest";
import { WORKSPACES_PER_REQUEST } from "../../../src/core/domain/planning/request.ts";
import { DAY_MS, HOUR_MS, type Stride } from "../../../src/core/domain/time/stride.ts";
import type { GroupBy } from "../../../src/core/domain/usage/record.ts";
import { ResponseCollector } from "../../../src/core/domain/usage/response.ts";
import { noteAccess } from "../../../src/core/store/access/workspace-access.ts";
import { applyListing } from "../../../src/core/store/access/workspaces.ts";
import { scopesOf } from "../../../src/core/store/catalog/scopes.ts";
import { loadResponse } from "../../../src/core/store/load/load.ts";
import { drawFetchToken } from "../../../src/core/store/work/fetch-ledger.ts";
import { intercepted } from "./model/statements.ts";
import { createSource, FIRST_DAY, setupStore } from "./setup.ts";

// Scopes of several strides and dimensions share their workspaces, projects and names, and a listing touches all of them.
// With enough rows, query plans read them in different orders. Without one lock order, a quarter of these loads deadlock.

const ROUNDS = 10;

test("loads of full batches and listings never wait for each other in a circle", async () => {
  const bundle = await setupStore({ maxConnections: 6 });
  const { store, reader } = bundle;
  const all = Array.from({ length: 300 }, (_, i) => `w${(i * 7919) % 300}`);
  const sourceId = await createSource(bundle, { workspaceIds: all, dataStart: FIRST_DAY });
  await reader.query("ANALYZE");
  // Each batch and its order differ, but every test run has the same ones.
  let turn = 0;
  const some = (count: number) => {
    turn++;
    return Array.from({ length: count }, (_, i) => all[(turn * 37 + i * 7) % all.length] as string);
  };
  const name = () => `Name ${turn % 5}`;

  const load = async (groupBy: GroupBy, stride: Stride) => {
    for (let round = 0; round < ROUNDS; round++) {
      const workspaceIds = some(WORKSPACES_PER_REQUEST);
      const scopeIds = await scopesOf(store.db, { sourceId, groupBy, stride, workspaceIds });
      const window = {
        stride,
        start: FIRST_DAY,
        end: FIRST_DAY + (stride === "hour" ? 12 * HOUR_MS : DAY_MS),
      };
      const response = new ResponseCollector({ window, groupBy, workspaceIds });
      response.add(
        workspaceIds.map((workspaceId, i) => ({
          bucketStart: FIRST_DAY,
          workspaceId,
          dimensionId: groupBy === "workspace" ? workspaceId : `p${(turn + i * 11) % 60}`,
          dimensionName: name(),
          traces: 1,
        })),
      );
      const fetchToken = await drawFetchToken(store.db);
      await loadResponse(store, {
        meter: "traces",
        sourceId,
        groupBy,
        window,
        fetchToken,
        scopeIds,
        response,
        settleAfterMs: DAY_MS,
      });
    }
  };
  const list = async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const workspaces = some(all.length).map((workspaceId) => ({
        workspaceId,
        name: name(),
        isDeleted: false,
      }));
      await applyListing(store, { sourceId, workspaces, fetchToken: await drawFetchToken(store.db) });
      const named = some(100);
      await noteAccess(store, { sourceId, requested: named, named, at: FIRST_DAY + round });
    }
  };

  // The store would retry after a deadlock, but each one costs a second.
  const errors: unknown[] = [];
  const failed = (error: unknown) => void errors.push(error);
  await intercepted({ failed }, () =>
    Promise.all([
      load("workspace", "hour"),
      load("workspace", "day"),
      load("project", "hour"),
      load("project", "day"),
      list(),
      list(),
    ]),
  );
  expect(errors).toEqual([]);
});
