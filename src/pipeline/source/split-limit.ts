/** Keeps a server that refuses everything from being asked for every single bucket. */
export interface SplitLimit {
  allows(): boolean;
  refused(): void;
  usable(): void;
}

/** Splitting is allowed until refusals outnumber 40 plus ten for each usable answer. */
export function createSplitLimit(): SplitLimit {
  let [refusals, answers] = [0, 0];
  return {
    allows: () => refusals < 40 + 10 * answers,
    refused: () => void refusals++,
    usable: () => void answers++,
  };
}
