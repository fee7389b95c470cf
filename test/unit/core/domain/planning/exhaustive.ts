/**
 * The planner's objective searched exhaustively, written from docs/rules.md ("Rules") and the range table of
 * docs/platform.md without a line of `src/`. Time is counted in whole hours.
 */

interface Row {
  readonly stride: string;
  readonly size: number;
  readonly least: number;
  readonly most: number;
}

const DAY = 24;

/** docs/platform.md, "Buckets", finest first. */
const PLATFORM: readonly Row[] = [
  { stride: "hour", size: 1, least: 1, most: DAY - 1 },
  { stride: "day", size: DAY, least: 1 * DAY, most: 31 * DAY },
  { stride: "week", size: 7 * DAY, least: 32 * DAY, most: 93 * DAY },
  { stride: "month", size: 30 * DAY, least: 94 * DAY, most: 366 * DAY },
  { stride: "year", size: 365 * DAY, least: 366 * DAY + 1, most: Number.POSITIVE_INFINITY },
];

interface Piece {
  readonly start: number;
  readonly end: number;
  readonly stride: string;
}

/** Every window that may begin at `at` and end by `end`: whole buckets on the grid, of a length that gets the stride. */
function candidates(at: number, end: number, table: readonly Row[]): Piece[] {
  const pieces: Piece[] = [];
  for (const { stride, size, least, most } of table) {
    if (at % size !== 0) continue;
    for (let next = at + size; next <= end && next - at <= most; next += size) {
      if (next - at >= least) pieces.push({ start: at, end: next, stride });
    }
  }
  return pieces;
}

function steps(stride: string, wanted: string, table: readonly Row[]): number {
  const [at, top] = [stride, wanted].map((name) => table.findIndex((row) => row.stride === name));
  if (at === undefined || top === undefined) throw new Error(`no such stride: ${stride} or ${wanted}`);
  return at <= top ? top - at : table.length;
}

/**
 * The best tiling by dynamic programming over every cut. Costs are lists added element by element and compared like
 * words in a dictionary, so the best tiling of a range ends in a best tiling of its rest.
 */
export function searchBest(start: number, end: number, wanted: string): Piece[] {
  const table = PLATFORM;
  const depth = new Map(table.map((row) => [row.stride, steps(row.stride, wanted, table)]));
  const levels = table.length;
  const best: (readonly number[] | undefined)[] = [];
  const choice: (Piece | undefined)[] = [];
  best[end - start] = new Array(levels + 1).fill(0);
  for (let at = end - 1; at >= start; at--) {
    for (const piece of candidates(at, end, table)) {
      const rest = best[piece.end - start];
      if (rest === undefined) continue;
      const below = depth.get(piece.stride) ?? levels;
      const length = piece.end - piece.start;
      const added = (level: number) => (level === levels ? 1 : below > level ? length : 0);
      const known = best[at - start];
      let order = known === undefined ? -1 : 0;
      for (let level = 0; order === 0 && level <= levels; level++) {
        order = (rest[level] as number) + added(level) - (known?.[level] as number);
      }
      if (order < 0 || (order === 0 && piece.end < (choice[at - start]?.end ?? end))) {
        best[at - start] = rest.map((sum, level) => sum + added(level));
        choice[at - start] = piece;
      }
    }
  }
  const tiling: Piece[] = [];
  for (let at = start; at < end; ) {
    const piece = choice[at - start];
    if (piece === undefined) throw new Error(`nothing tiles from ${at}`);
    tiling.push(piece);
    at = piece.end;
  }
  return tiling;
}
