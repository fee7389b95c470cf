/** A task in the queue. A stale message, whose generation is over, does nothing. `routine` work goes before backfills. */
export interface QueueMessage {
  readonly taskId: number;
  readonly generation: number;
  readonly routine: boolean;
}

/** The queue of one source, as the pipeline sees it. It may lose everything at any time. */
export interface FetchQueue {
  add(messages: readonly QueueMessage[]): Promise<void>;
  /** Ids of the messages that wait, are delayed or at work. */
  present(): Promise<Set<string>>;
  /** Removes messages, but for those at work; returns how many. */
  remove(ids: readonly string[]): Promise<number>;
}

/** The id of a message in the queue. It differs each time the task is enqueued. */
export function messageId({ taskId, generation }: Pick<QueueMessage, "taskId" | "generation">): string {
  return `${taskId}-${generation}`;
}

/** Whether `messageId` gave an id. Messages of a person or of another release are left alone. */
export function isMessageId(id: string): boolean {
  return /^\d+-\d+$/.test(id);
}
