import { expect } from "vitest";
import {
  DAY_MS,
  floorToGrid,
  HOUR_MS,
  STRIDE_MS,
  type Stride,
} from "../../../../src/core/domain/time/stride.ts";
import type { Window } from "../../../../src/core/domain/time/window.ts";
import type { GroupBy } from "../../../../src/core/domain/usage/record.ts";
import { ResponseCollector } from "../../../../src/core/domain/usage/response.ts";
import { FIRST_DAY } from "../setup.ts";
import type { ModelRecord, ModelResponse } from "./model.ts";
import type { Fault } from "./statements.ts";

/**
 * One step of a history. It is plain data, so that a failing history can be printed and shrunk. A `pick` is taken modulo
 * the number of choices. `advance` moves the clock before the fetch is stamped.
 */
export type Command<Q = Question> =
  | { readonly do: "request"; readonly advance: number; readonly question: Q; readonly rows: readonly Row[] }
  | { readonly do: "deliver"; readonly pick: number; readonly again: boolean; readonly fault: Fault | null }
  | {
      readonly do: "load";
      readonly advance: number;
      readonly question: Q;
      readonly rows: readonly Row[];
      readonly fault: Fault | null;
    }
  | { readonly do: "fail"; readonly pick: number }
  | { readonly do: "lose"; readonly pick: number }
  | {
      readonly do: "confirm";
      readonly advance: number;
      readonly pick: number;
      readonly listed: number;
      readonly rows: readonly Row[] | "same";
    }
  /** A listing that is applied now and was requested `late` milliseconds ago. */
  | {
      readonly do: "list";
      readonly advance: number;
      readonly late: number;
      readonly listed: number;
      readonly names: readonly number[];
      readonly deleted: boolean;
    }
  | {
      readonly do: "name";
      readonly advance: number;
      readonly late: number;
      readonly named: number;
      readonly isStatistics: boolean;
    }
  | { readonly do: "settle"; readonly afterMs: number }
  | { readonly do: "capability"; readonly stride: "hour" | "day"; readonly known: boolean };

export interface Question {
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly at: number;
  readonly length: number;
  readonly workspaces: number;
}

export interface Row {
  readonly workspace: number;
  readonly bucket: number;
  readonly id: string;
  readonly name: string | null;
  readonly traces: number;
}

export const WORKSPACES = ["w1", "w2", "w3"] as const;
export const NAMES = ["Alpha", "Beta", "Gamma é"];

interface Places {
  readonly unit: number;
  readonly first: number;
  readonly starts: number;
  readonly least: number;
  readonly most: number;
}

/** Few places, so that windows overlap. Four times six hours are a day. */
const PLACES: Readonly<Partial<Record<Stride, Places>>> = {
  hour: { unit: 6 * HOUR_MS, first: FIRST_DAY, starts: 4, least: 1, most: 3 },
  day: { unit: DAY_MS, first: FIRST_DAY, starts: 3, least: 1, most: 3 },
  week: {
    unit: 7 * DAY_MS,
    first: floorToGrid(FIRST_DAY, 7 * DAY_MS) - 8 * 7 * DAY_MS,
    starts: 2,
    least: 5,
    most: 6,
  },
};

export function windowOf({ stride, at, length }: Question): Window {
  const { unit, first, starts, least, most } = PLACES[stride] as Places;
  const start = first + (at % starts) * unit;
  return { stride, start, end: start + (least + (length % (most - least + 1))) * unit };
}

export function workspacesOf({ workspaces }: Pick<Question, "workspaces">): string[] {
  return WORKSPACES.filter((_, i) => workspaces & (1 << i));
}

export function recordsOf(question: Question, rows: readonly Row[]): ModelRecord[] {
  const { start, end, stride } = windowOf(question);
  const requested = workspacesOf(question);
  const size = STRIDE_MS[stride];
  return rows.map((row) => {
    const workspaceId = requested[row.workspace % requested.length] as string;
    return {
      workspaceId,
      id: question.groupBy === "workspace" ? workspaceId : row.id,
      name: question.groupBy === "api_key" ? null : row.name,
      bucket: start + (row.bucket % ((end - start) / size)) * size,
      traces: row.traces,
    };
  });
}

export function listedName(i: number): string | null {
  return NAMES[i] ?? null;
}

/** Collects a response as the client does, in batches. A window of one bucket may leave the bucket unnamed. */
export function collect(response: ModelResponse): ResponseCollector {
  const { groupBy, stride, start, end, workspaceIds, records } = response;
  const collector = new ResponseCollector({ window: { stride, start, end }, groupBy, workspaceIds });
  const single = end - start === STRIDE_MS[stride];
  const alone = workspaceIds.length === 1;
  records.forEach((record, i) => {
    collector.add([
      {
        bucketStart: single && i % 2 === 1 ? null : record.bucket,
        workspaceId: alone && i % 2 === 1 ? null : record.workspaceId,
        dimensionId: groupBy === "workspace" && alone && i % 3 === 2 ? "" : record.id,
        dimensionName: record.name,
        traces: record.traces,
      },
    ]);
  });
  expect(collector.problem(stride)).toBeUndefined();
  return collector;
}
