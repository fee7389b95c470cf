/** A slice that was fed to the queue; `routine` work goes before backfills. */
export interface QueueMessage {
  readonly sliceId: number;
  readonly generation: number;
  readonly routine: boolean;
}

/** The queue of one source, as the pipeline sees it. It may lose everything at any time. */
export interface FetchQueue {
  add(tickets: readonly QueueMessage[]): Promise<void>;
  /** Ids of the tickets that wait, are delayed or at work. */
  present(): Promise<Set<string>>;
  /** Takes tickets out, but for those at work; returns how many. */
  remove(ids: readonly string[]): Promise<number>;
}

/** The id under which a ticket stands in the queue: another one each time the slice is fed. */
export function messageId({ sliceId, generation }: Pick<QueueMessage, "sliceId" | "generation">): string {
  return `${sliceId}-${generation}`;
}

/** Whether an id is one that `messageId` gives: what a person or another release put into the queue is not ours to judge. */
export function isMessageId(id: string): boolean {
  return /^\d+-\d+$/.test(id);
}
