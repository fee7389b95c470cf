import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";

/**
 * Each rule of measured.md is a request, or some, and a short text of what the server responds. The page has the texts of
 * the real servers. Rules run beside each other, each on a thread of its own.
 */

type Rules = Readonly<Record<string, (server: AgentServer) => Promise<unknown>>>;

export const AGENT = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";
const NOBODY = "00000000-0000-4000-8000-000000000000";

interface Responded {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: What a server responds is what is measured.
  readonly body: any;
  readonly headers: Headers;
}

// biome-ignore lint/suspicious/noExplicitAny: As above.
type Wire = any;

export class AgentServer {
  readonly url: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(url: string, apiKey?: string) {
    this.url = url;
    this.#headers = { "content-type": "application/json", ...(apiKey && { "x-api-key": apiKey }) };
  }

  async send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await fetch(this.url + path, {
      method,
      headers: { ...this.#headers, ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json") && text !== "";
    return {
      status: response.status,
      body: isJson ? JSON.parse(text) : text,
      headers: response.headers,
    } as Responded;
  }

  get = (path: string) => this.send("GET", path);
  post = (path: string, body: unknown = {}) => this.send("POST", path, body);

  async thread(body: object = {}): Promise<string> {
    return (await this.post("/threads", body)).body.thread_id;
  }

  run(thread: string, text: string, more: object = {}) {
    return this.post(`/threads/${thread}/runs`, { ...said(text), ...more });
  }

  join = (thread: string, run: string) => this.get(`/threads/${thread}/runs/${run}/join`);

  async ended(text: string, thread?: string): Promise<{ thread: string; run: string; path: string }> {
    const on = thread ?? (await this.thread());
    const run = (await this.run(on, text)).body.run_id;
    await this.join(on, run);
    return { thread: on, run, path: `/threads/${on}/runs/${run}` };
  }

  async running(text: string): Promise<{ thread: string; run: string; path: string }> {
    const thread = await this.thread();
    const run = (await this.run(thread, text)).body.run_id;
    const path = `/threads/${thread}/runs/${run}`;
    await this.until(async () => (await this.get(path)).body.status !== "pending");
    return { thread, run, path };
  }

  async until(isSo: () => Promise<boolean>): Promise<void> {
    for (let i = 0; i < 600; i++) {
      if (await isSo()) return;
      await wait(25);
    }
    throw new Error("It did not happen within 15 s");
  }

  async messages(thread: string): Promise<string[]> {
    const { values } = (await this.get(`/threads/${thread}/state`)).body;
    return (values?.messages ?? []).map(shown);
  }

  rpc(method: string, params: unknown, { assistant = AGENT, ...headers }: Record<string, string> = {}) {
    const id = "7";
    return this.send(
      "POST",
      `/a2a/${assistant}`,
      { jsonrpc: "2.0", id, method, params },
      { accept: "application/json", ...headers },
    );
  }

  async result(method: string, params: unknown, headers?: Record<string, string>): Promise<Wire> {
    const { body } = await this.rpc(method, params, headers);
    return body.result?.task ?? body.result ?? body;
  }

  say = (text: string, more: object = { contextId: randomUUID() }): Promise<Wire> =>
    this.result("message/send", message(text, more));

  async streamed({ text = "hello", ...more } = {} as { text?: string; stream_mode?: string }) {
    return eventsOf(
      (await this.post(`/threads/${await this.thread()}/runs/stream`, { ...said(text), ...more })).body,
    );
  }

  async events(method: string, params: unknown): Promise<Wire[]> {
    const { body } = await this.rpc(method, params, { accept: "text/event-stream" });
    return typeof body === "string" ? eventsOf(body).map(({ data }) => data.result ?? data) : [body];
  }

  async task(text: string, method = "message/send") {
    const contextId = randomUUID();
    const sent = this.result(method, message(text, { contextId }));
    // A rule may end before its task.
    sent.catch(() => {});
    const runs = `/threads/${contextId}/runs`;
    const running = async () => ((await this.get(runs)).body as Wire[])?.[0];
    await this.until(async () => (await running())?.status === "running");
    return { contextId, run: (await running()).run_id as string, sent };
  }
}

const said = (text: string) => ({
  assistant_id: "agent",
  input: { messages: [{ role: "user", content: text }] },
});
const shown = ({ type, content }: Wire) =>
  `${type}: ${typeof content === "string" ? content : JSON.stringify(content)}`;
const keys = (value: object) => Object.keys(value).sort().join(" ");
const message = (text: string, more: object = {}) => ({
  message: {
    kind: "message",
    role: "user",
    messageId: randomUUID(),
    parts: [{ kind: "text", text }],
    ...more,
  },
});
const message1 = (text: string, more: object = {}) => ({
  message: { role: "ROLE_USER", messageId: randomUUID(), parts: [{ text }], ...more },
});
const V1 = { "a2a-version": "1.0" };

function eventsOf(text: string): { event: string; data: Wire }[] {
  return text
    .split(/\r?\n\r?\n/)
    .map((one) => ({
      event: /^event: ?(.*)$/m.exec(one)?.[1]?.trim() ?? "",
      data: /^data: ?(.*)$/m.exec(one)?.[1],
    }))
    .filter(({ data }) => data !== undefined)
    .map(({ event, data }) => ({ event, data: JSON.parse(`${data}`) }));
}

function code({ status, body }: Responded): string {
  const error = body?.error?.code;
  return error === undefined ? `${status}` : `${status}, error ${error}`;
}

const textsOf = (parts: Wire) =>
  (parts ?? []).map(({ text, data }: Wire) => text ?? JSON.stringify(data)).join(" + ");

const sentence = ({ status, body }: Responded) => [status, body.detail ?? body];

function task(wire: Wire): string {
  if (wire.error !== undefined) return `error ${wire.error.code}`;
  const artifacts = (wire.artifacts ?? []).map(
    ({ name, parts }: Wire) => `; artifact ${name}: ${textsOf(parts)}`,
  );
  const status = wire.status?.message ? `; status: ${textsOf(wire.status.message.parts)}` : "";
  return `${wire.status?.state}${artifacts.join("")}${status}`;
}

const history = (wire: Wire) =>
  wire.history?.map(({ role, parts }: Wire) => `${role}: ${textsOf(parts)}`) ??
  (wire.error ? `error ${wire.error.code}` : "none");

function event(wire: Wire): string {
  const of = wire.task ?? wire;
  const wrapped = wire.task === undefined ? "" : "task in task: ";
  const parts = of.artifact?.parts ?? of.status?.message?.parts;
  const texts = parts === undefined ? "" : ` ${textsOf(parts)}`;
  return `${wrapped}${of.error ? `error ${of.error.code}` : of.kind} ${of.artifact?.name ?? of.status?.state ?? ""}${texts}${of.final === true ? ", final" : ""}`;
}

const statusOf = async (s: AgentServer, path: string) => {
  const { status, body } = await s.get(path);
  return status === 200 ? body.status : status;
};

export function normal(observed: unknown): string {
  const text = Array.isArray(observed)
    ? observed.map(normal).join(" / ")
    : typeof observed === "object" && observed !== null
      ? JSON.stringify(observed)
      : `${observed}`;
  return text
    .replaceAll(AGENT, "AGENT")
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, "ID")
    .replaceAll(/\b[0-9a-f]{32}\b/g, "ID")
    .replaceAll(/http:\/\/[\w.:]+/g, "URL")
    .replaceAll(/\s+/g, " ")
    .replaceAll("|", "/")
    .trim();
}

const THREADS: Rules = {
  "S a new thread: its fields": async (s) => keys((await s.post("/threads")).body),
  "M a new thread: status, values, metadata": async (s) => {
    const { status, values, metadata } = (await s.post("/threads", { metadata: { a: 1 } })).body;
    return [status, values, metadata];
  },
  "M a new thread with an id of its own": async (s) => {
    const id = randomUUID();
    return (await s.post("/threads", { thread_id: id })).body.thread_id === id;
  },
  "M a new thread with a known id": async (s) =>
    code(await s.post("/threads", { thread_id: await s.thread() })),
  "M a new thread with a known id and `if_exists: do_nothing`": async (s) => {
    const id = await s.thread();
    const { status, body } = await s.post("/threads", { thread_id: id, if_exists: "do_nothing" });
    return [status, body.thread_id === id];
  },
  "M a new thread whose id is no UUID": async (s) => code(await s.post("/threads", { thread_id: "t" })),
  "M a new thread with an unknown field": async (s) => code(await s.post("/threads", { strange: 1 })),
  "M a new thread without a body": async (s) => code(await s.send("POST", "/threads")),
  "M a body that is no JSON": async (s) => code(await s.send("POST", "/threads", "{")),
  "M a thread is read": async (s) => {
    const { thread } = await s.ended("hello");
    const { body } = await s.get(`/threads/${thread}`);
    return [body.status, body.values.messages.map(shown)];
  },
  "M an unknown thread": async (s) => sentence(await s.get(`/threads/${NOBODY}`)),
  "M a thread whose id is no UUID": async (s) => code(await s.get("/threads/t")),
  "M `PATCH` of a thread adds metadata": async (s) => {
    const id = await s.thread({ metadata: { a: 1 } });
    const { status } = await s.send("PATCH", `/threads/${id}`, { metadata: { b: 2 } });
    return [status, (await s.get(`/threads/${id}`)).body.metadata];
  },
  "M `PATCH` of an unknown thread": async (s) =>
    code(await s.send("PATCH", `/threads/${NOBODY}`, { metadata: {} })),
  "M `DELETE` of a thread, then reading it": async (s) => {
    const id = await s.thread();
    return [(await s.send("DELETE", `/threads/${id}`)).status, code(await s.get(`/threads/${id}`))];
  },
  "M `DELETE` of an unknown thread": async (s) => code(await s.send("DELETE", `/threads/${NOBODY}`)),
  "M search of threads by metadata": async (s) => {
    const mark = randomUUID();
    const id = await s.thread({ metadata: { mark } });
    return (await s.post("/threads/search", { metadata: { mark } })).body.map(
      (one: Wire) => one.thread_id === id,
    );
  },
  "M search of threads by metadata and status": async (s) => {
    const mark = randomUUID();
    for (const text of ["hello", "fail"]) await s.ended(text, await s.thread({ metadata: { mark } }));
    const count = async (status: string) =>
      (await s.post("/threads/search", { metadata: { mark }, status })).body.length;
    return [await count("idle"), await count("error"), await count("busy")];
  },
  "M search of threads: limit and order": async (s) => {
    const mark = randomUUID();
    const ids = [await s.thread({ metadata: { mark } }), await s.thread({ metadata: { mark } })];
    const { body } = await s.post("/threads/search", {
      metadata: { mark },
      limit: 1,
      sort_by: "created_at",
      sort_order: "asc",
    });
    return body.map((one: Wire) => ids.indexOf(one.thread_id));
  },
  "M count of threads by metadata": async (s) => {
    const mark = randomUUID();
    await s.thread({ metadata: { mark } });
    return (await s.post("/threads/count", { metadata: { mark } })).body;
  },
  "M a copied thread has its own id and the messages": async (s) => {
    const { thread } = await s.ended("hello");
    const { status, body } = await s.post(`/threads/${thread}/copy`);
    return [status, body.thread_id !== thread, await s.messages(body.thread_id)];
  },
  "M copy of an unknown thread": async (s) => code(await s.post(`/threads/${NOBODY}/copy`)),
  "S the state of a new thread": async (s) => {
    const { values, next } = (await s.get(`/threads/${await s.thread()}/state`)).body;
    return [values, next];
  },
  "S the state after a run: type and content of each message": async (s) =>
    s.messages((await s.ended("hello")).thread),
  "M the state: its fields": async (s) =>
    keys((await s.get(`/threads/${(await s.ended("hello")).thread}/state`)).body),
  "M the state of an unknown thread": async (s) => code(await s.get(`/threads/${NOBODY}/state`)),
  "M the state while a run is active: messages, next": async (s) => {
    const { thread } = await s.running("delay=3000 hello");
    await s.until(async () => (await s.messages(thread)).length > 0);
    return [await s.messages(thread), (await s.get(`/threads/${thread}/state`)).body.next];
  },
  "M a state that is written adds its message": async (s) => {
    const { thread } = await s.ended("hello");
    const { status, body } = await s.post(`/threads/${thread}/state`, {
      values: said("more").input,
      as_node: "agent",
    });
    return [status, Object.hasOwn(body, "checkpoint"), await s.messages(thread)];
  },
  "M history after one run: messages of each state, newest first; then without a limit": async (s) => {
    const { thread } = await s.ended("hello");
    const count = async (query: string) =>
      (await s.get(`/threads/${thread}/history${query}`)).body.map(
        ({ values }: Wire) => values.messages?.length ?? 0,
      );
    return [await count("?limit=10"), await count("")];
  },
  "M history by `POST` with a limit": async (s) => {
    const { thread } = await s.ended("hello");
    return (await s.post(`/threads/${thread}/history`, { limit: 1 })).body.length;
  },
  "M history of a new thread": async (s) => (await s.get(`/threads/${await s.thread()}/history`)).body,
  "M a thread is busy while a run is active": async (s) => {
    const { thread } = await s.running("delay=3000 hello");
    return (await s.get(`/threads/${thread}`)).body.status;
  },
  "M status of a thread after success, failure, question": async (s) => {
    const of = async (text: string) => (await s.get(`/threads/${(await s.ended(text)).thread}`)).body.status;
    return [await of("hello"), await of("fail"), await of("question")];
  },
  "M status of a thread after a cancelled run": async (s) => {
    const { thread, path } = await s.running("delay=20000 one");
    await s.post(`${path}/cancel?wait=1`);
    return (await s.get(`/threads/${thread}`)).body.status;
  },
};

const RUNS: Rules = {
  "S a new run: status and its fields": async (s) => {
    const { status, body } = await s.run(await s.thread(), "hello");
    return [status, body.status, keys(body)];
  },
  "M a new run: `Content-Location` is its path": async (s) => {
    const thread = await s.thread();
    const { body, headers } = await s.run(thread, "hello");
    return headers.get("content-location") === `/threads/${thread}/runs/${body.run_id}`;
  },
  "S an assistant by name and by id": async (s) => {
    const of = async (assistant_id: string) =>
      (await s.run(await s.thread(), "hello", { assistant_id })).body.assistant_id;
    return [await of("agent"), await of(AGENT)];
  },
  "M an unknown assistant's name": async (s) =>
    code(await s.run(await s.thread(), "x", { assistant_id: "nobody" })),
  "M an unknown assistant's id": async (s) =>
    code(await s.run(await s.thread(), "x", { assistant_id: NOBODY })),
  "M no assistant": async (s) => code(await s.post(`/threads/${await s.thread()}/runs`, { input: null })),
  "M a run on an unknown thread": async (s) => code(await s.run(NOBODY, "hello")),
  "M a run on an unknown thread with `if_not_exists: create`": async (s) => {
    const id = randomUUID();
    return [
      (await s.run(id, "hello", { if_not_exists: "create" })).status,
      (await s.get(`/threads/${id}`)).status,
    ];
  },
  "M a run on a thread whose id is no UUID": async (s) => code(await s.run("t", "hello")),
  "M an unknown field": async (s) => code(await s.run(await s.thread(), "hello", { strange: 1 })),
  "M a run without input: its status at the end": async (s) => {
    const { body } = await s.run(await s.thread(), "", { input: null });
    await s.join(body.thread_id, body.run_id);
    return statusOf(s, `/threads/${body.thread_id}/runs/${body.run_id}`);
  },
  "M a missing input": async (s) =>
    code(await s.post(`/threads/${await s.thread()}/runs`, { assistant_id: "agent" })),
  "M content that is a list of parts": async (s) => {
    const thread = await s.thread();
    const content = [
      { type: "text", text: "one" },
      { type: "text", text: " two" },
    ];
    const { body } = await s.run(thread, "", { input: { messages: [{ role: "user", content }] } });
    await s.join(thread, body.run_id);
    return s.messages(thread);
  },
  "M types of the roles user, human, assistant, ai, system": async (s) => {
    const thread = await s.thread();
    const messages = ["user", "human", "assistant", "ai", "system"].map((role) => ({ role, content: "x" }));
    const { body } = await s.run(thread, "", { input: { messages } });
    await s.join(thread, body.run_id);
    return (await s.messages(thread)).map((one) => one.split(":")[0]);
  },
  "M a run of another role": async (s) => {
    const thread = await s.thread();
    const { body } = await s.run(thread, "", { input: { messages: [{ role: "stranger", content: "x" }] } });
    const path = `/threads/${thread}/runs/${body.run_id}`;
    await s.join(thread, body.run_id);
    return statusOf(s, path);
  },
  "M metadata of a run": async (s) => {
    const { metadata } = (await s.run(await s.thread(), "hello", { metadata: { a: 1 } })).body;
    return [metadata.a, metadata.graph_id, metadata.assistant_id];
  },
  "M the default strategy": async (s) => (await s.run(await s.thread(), "hello")).body.multitask_strategy,
  "M an unknown strategy": async (s) =>
    code(await s.run(await s.thread(), "hello", { multitask_strategy: "x" })),
  "M `reject` while a run is active": async (s) => {
    const { thread } = await s.running("delay=3000 one");
    return sentence(await s.run(thread, "two", { multitask_strategy: "reject" }));
  },
  "M `reject` changes nothing": async (s) => {
    const { thread, run } = await s.running("delay=3000 one");
    await s.run(thread, "two", { multitask_strategy: "reject" });
    await s.join(thread, run);
    return [await s.messages(thread), (await s.get(`/threads/${thread}/runs`)).body.length];
  },
  "M `enqueue`: a later run is pending, then follows": async (s) => {
    const { thread } = await s.running("delay=3000 one");
    const later = (await s.run(thread, "two")).body;
    const before = (await s.get(`/threads/${thread}/runs/${later.run_id}`)).body.status;
    await s.join(thread, later.run_id);
    return [before, await s.messages(thread)];
  },
  "M `enqueue` behind a run that fails": async (s) => {
    const { thread, path } = await s.running("delay=3000 fail");
    const later = (await s.run(thread, "two")).body;
    await s.join(thread, later.run_id);
    return [await statusOf(s, path), await statusOf(s, `/threads/${thread}/runs/${later.run_id}`)];
  },
  "M `interrupt`: the earlier run, and the messages": async (s) => {
    const { thread, path } = await s.running("delay=20000 one");
    await s.until(async () => (await s.messages(thread)).length > 0);
    const later = (await s.run(thread, "two", { multitask_strategy: "interrupt" })).body;
    await s.join(thread, later.run_id);
    return [await statusOf(s, path), await s.messages(thread)];
  },
  "S `rollback`: reading the earlier run": async (s) => {
    const { thread, path } = await s.running("delay=20000 one");
    await s.until(async () => (await s.messages(thread)).length > 0);
    const later = (await s.run(thread, "two", { multitask_strategy: "rollback" })).body;
    await s.join(thread, later.run_id);
    return statusOf(s, path);
  },
  "S `rollback`: the messages are the new run's alone": async (s) => {
    const { thread } = await s.running("delay=20000 one");
    await s.until(async () => (await s.messages(thread)).length > 0);
    const later = (await s.run(thread, "two", { multitask_strategy: "rollback" })).body;
    await s.join(thread, later.run_id);
    return s.messages(thread);
  },
  "M `rollback` removes the earlier run from the list at once": async (s) => {
    const { thread } = await s.running("delay=20000 one");
    const later = (await s.run(thread, "two", { multitask_strategy: "rollback" })).body;
    await s.join(thread, later.run_id);
    return (await s.get(`/threads/${thread}/runs`)).body.map((one: Wire) => one.run_id === later.run_id);
  },
  "M `rollback` removes waiting runs and keeps ended ones": async (s) => {
    const done = await s.ended("before");
    await s.run(done.thread, "delay=20000 one");
    await s.run(done.thread, "waiting");
    const last = (await s.run(done.thread, "two", { multitask_strategy: "rollback" })).body.run_id;
    await s.join(done.thread, last);
    const { body } = await s.get(`/threads/${done.thread}/runs`);
    return [body.map((one: Wire) => [done.run, last].indexOf(one.run_id)), await s.messages(done.thread)];
  },
  "M a join while its run is rolled back": async (s) => {
    const { thread, run } = await s.running("delay=20000 one");
    const joined = s.join(thread, run);
    await s.run(thread, "two", { multitask_strategy: "rollback" });
    return code(await joined);
  },
  "M an unknown run": async (s) => code(await s.get(`/threads/${await s.thread()}/runs/${NOBODY}`)),
  "M a run whose id is no UUID": async (s) => code(await s.get(`/threads/${await s.thread()}/runs/r`)),
  "M the list of runs: newest first, limit": async (s) => {
    const first = await s.ended("one");
    const second = await s.ended("two", first.thread);
    const list = async (query: string) =>
      (await s.get(`/threads/${first.thread}/runs${query}`)).body.map((one: Wire) =>
        [first.run, second.run].indexOf(one.run_id),
      );
    return [await list(""), await list("?limit=1"), await list("?limit=1&offset=1")];
  },
  "M the list of runs by status": async (s) => {
    const { thread } = await s.ended("hello");
    const count = async (status: string) =>
      (await s.get(`/threads/${thread}/runs?status=${status}`)).body.length;
    return [await count("success"), await count("error")];
  },
  "M runs of an unknown thread": async (s) => code(await s.get(`/threads/${NOBODY}/runs`)),
  "S a join: the messages at its end": async (s) => {
    const { thread, run } = await s.ended("hello");
    return (await s.join(thread, run)).body.messages.map(shown);
  },
  "M a join of an earlier run: the messages at present": async (s) => {
    const first = await s.ended("one");
    await s.ended("two", first.thread);
    return (await s.join(first.thread, first.run)).body.messages.map(shown);
  },
  "M a join of a run that fails": async (s) => {
    const { thread, run } = await s.ended("fail");
    const { status, body } = await s.join(thread, run);
    return [status, body.__error__];
  },
  "M a join of a run that asks": async (s) => {
    const thread = await s.thread();
    const { body } = await s.join(thread, (await s.run(thread, "question")).body.run_id);
    return body.__interrupt__.map(({ value }: Wire) => value);
  },
  "M a join of an unknown run": async (s) => {
    const { status, body } = await s.join(await s.thread(), NOBODY);
    return [status, body];
  },
  "M a run that fails: status": async (s) => statusOf(s, (await s.ended("fail")).path),
  "M a run that fails: the messages": async (s) => s.messages((await s.ended("fail")).thread),
  "M a run that asks: status, and the question in the state": async (s) => {
    const { thread, path } = await s.ended("question");
    const { interrupts, next } = (await s.get(`/threads/${thread}/state`)).body;
    return [await statusOf(s, path), interrupts.map(({ value }: Wire) => value), next];
  },
  "M `command: {resume}` answers the question": async (s) => {
    const { thread } = await s.ended("question");
    const { body } = await s.post(`/threads/${thread}/runs`, {
      assistant_id: "agent",
      command: { resume: "this" },
    });
    await s.join(thread, body.run_id);
    return s.messages(thread);
  },
  "M a new message in place of an answer": async (s) =>
    s.messages((await s.ended("two", (await s.ended("question")).thread)).thread),
  "M cancelling an active run, and its status": async (s) => {
    const { path } = await s.running("delay=20000 one");
    const { status } = await s.post(`${path}/cancel`);
    await s.until(async () => (await statusOf(s, path)) !== "running");
    return [status, await statusOf(s, path)];
  },
  "M cancelling with `wait=1`": async (s) =>
    (await s.post(`${(await s.running("delay=20000 one")).path}/cancel?wait=1`)).status,
  "M cancelling with `action=rollback`, then reading the run": async (s) => {
    const { path } = await s.running("delay=20000 one");
    const { status } = await s.post(`${path}/cancel?action=rollback`);
    await s.until(async () => (await s.get(path)).status === 404);
    return [status, (await s.get(path)).status];
  },
  "M cancelling with an unknown action": async (s) => {
    const { path } = await s.running("delay=20000 one");
    return code(await s.post(`${path}/cancel?action=x`));
  },
  "M cancelling a run that has ended": async (s) =>
    code(await s.post(`${(await s.ended("hello")).path}/cancel`)),
  "M cancelling an unknown run": async (s) =>
    code(await s.post(`/threads/${await s.thread()}/runs/${NOBODY}/cancel`)),
  "M deleting an ended run: then the run, then the messages": async (s) => {
    const { thread, path } = await s.ended("hello");
    return [(await s.send("DELETE", path)).status, (await s.get(path)).status, await s.messages(thread)];
  },
  "M deleting an active run": async (s) => {
    const { thread, path } = await s.running("delay=20000 one");
    await s.until(async () => (await s.messages(thread)).length > 0);
    return [(await s.send("DELETE", path)).status, (await s.get(path)).status, await s.messages(thread)];
  },
  "M deleting an unknown run": async (s) =>
    code(await s.send("DELETE", `/threads/${await s.thread()}/runs/${NOBODY}`)),
  "M `runs/wait`: the messages": async (s) => {
    const { status, body } = await s.post(`/threads/${await s.thread()}/runs/wait`, said("hello"));
    return [status, body.messages.map(shown)];
  },
  "M `runs/wait` of a run that fails": async (s) => {
    const { status, body } = await s.post(`/threads/${await s.thread()}/runs/wait`, said("fail"));
    return [status, body.__error__];
  },
  "M `runs/stream`: type and events": async (s) => {
    const { headers, body } = await s.post(`/threads/${await s.thread()}/runs/stream`, said("hello"));
    return [headers.get("content-type"), eventsOf(body).map((one) => one.event)];
  },
  "M `runs/stream`: messages of the last event": async (s) => {
    const { body } = await s.post(`/threads/${await s.thread()}/runs/stream`, said("hello"));
    return eventsOf(body).at(-1)?.data.messages.map(shown);
  },
  "M `runs/stream` with `stream_mode: updates`": async (s) =>
    (await s.streamed({ stream_mode: "updates" })).map(({ event, data }) =>
      event === "updates" ? `${event} ${keys(data)}: ${data.agent.messages.map(shown)}` : event,
    ),
  "M `runs/stream` of a run that fails": async (s) =>
    (await s.streamed({ text: "fail" })).map(({ event, data }) =>
      event === "error" ? `${event} ${data.error}: ${data.message}` : event,
    ),
  "M the stream of a run that is active": async (s) => {
    const { path } = await s.running("delay=1000 hello");
    const { status, body } = await s.get(`${path}/stream`);
    return [status, eventsOf(body).at(-1)?.event];
  },
  "M `/runs/wait` without a thread: the messages": async (s) => {
    const { status, body } = await s.post("/runs/wait", said("hello"));
    return [status, body.messages.map(shown)];
  },
  "M `/runs` without a thread: its thread afterwards": async (s) => {
    const { status, body } = await s.post("/runs", said("hello"));
    await s.until(async () => (await s.get(`/threads/${body.thread_id}`)).status === 404);
    return [status, body.status, (await s.get(`/threads/${body.thread_id}`)).status];
  },
  "M `/runs/stream` without a thread: events": async (s) =>
    eventsOf((await s.post("/runs/stream", said("hello"))).body).map((one) => one.event),
  "M `/runs` with `on_completion: keep`: its thread": async (s) => {
    const { run_id, thread_id } = (await s.post("/runs", { ...said("hello"), on_completion: "keep" })).body;
    await s.join(thread_id, run_id);
    return (await s.get(`/threads/${thread_id}`)).status;
  },
  "M `runs/stream` with `stream_mode: messages-tuple`": async (s) =>
    (await s.streamed({ stream_mode: "messages-tuple" })).map(({ event, data }) =>
      event === "messages" ? `${event} ${shown(data[0])}` : event,
    ),
  "M `/runs/batch`: runs": async (s) => {
    const { status, body } = await s.post("/runs/batch", [said("one"), said("two")]);
    return [status, body.map((one: Wire) => one.status)];
  },
  "M `/runs/cancel` of one run by its ids": async (s) => {
    const { thread, run, path } = await s.running("delay=20000 one");
    const { status } = await s.post("/runs/cancel", { thread_id: thread, run_ids: [run] });
    await s.until(async () => (await statusOf(s, path)) !== "running");
    return [status, await statusOf(s, path)];
  },
  "M options of a run": async (s) => {
    const config = { tags: ["t"], configurable: { a: 1 } };
    const more = {
      durability: "async",
      on_disconnect: "continue",
      interrupt_before: [],
      stream_mode: ["values"],
    };
    return code(await s.run(await s.thread(), "hello", { config, metadata: {}, after_seconds: 0, ...more }));
  },
  "M `after_seconds` holds a run back": async (s) => {
    const thread = await s.thread();
    const { run_id } = (await s.run(thread, "hello", { after_seconds: 30 })).body;
    await wait(1200);
    return statusOf(s, `/threads/${thread}/runs/${run_id}`);
  },
};

const ASSISTANTS: Rules = {
  "M search of assistants": async (s) =>
    (await s.post("/assistants/search")).body.map((one: Wire) => [
      one.assistant_id,
      one.graph_id,
      one.name,
      one.version,
    ]),
  "M search of assistants by graph": async (s) =>
    (await s.post("/assistants/search", { graph_id: "agent" })).body.length,
  "M search of assistants by an unknown graph": async (s) => {
    const { status, body } = await s.post("/assistants/search", { graph_id: "nobody" });
    return [status, body.detail ?? body];
  },
  "M search of assistants by metadata": async (s) => {
    const count = async (created_by: string) =>
      (await s.post("/assistants/search", { metadata: { created_by } })).body.length;
    return [await count("system"), await count("nobody")];
  },
  "M count of assistants": async (s) => (await s.post("/assistants/count")).body,
  "M an assistant: its fields": async (s) => keys((await s.get(`/assistants/${AGENT}`)).body),
  "M an assistant by its graph's name": async (s) => code(await s.get("/assistants/agent")),
  "M an unknown assistant": async (s) => code(await s.get(`/assistants/${NOBODY}`)),
  "M schemas of an assistant": async (s) => {
    const { body } = await s.get(`/assistants/${AGENT}/schemas`);
    return [body.graph_id, keys(body.input_schema.properties)];
  },
  "M the graph of an assistant: its nodes": async (s) =>
    (await s.get(`/assistants/${AGENT}/graph`)).body.nodes.map(({ id }: Wire) => id),
  "M versions of an assistant": async (s) =>
    (await s.post(`/assistants/${AGENT}/versions`)).body.map(({ version }: Wire) => version),
  "M `GET /ok`": async (s) => (await s.get("/ok")).body.ok,
  "M `GET /info`: the version": async (s) => (await s.get("/info")).body.version,
  "M an unknown path": async (s) => code(await s.get("/nowhere")),
  "M no key": async (s) => (await fetch(`${s.url}/threads/${NOBODY}`)).status,
  "M a wrong key": async (s) =>
    (await s.send("GET", `/threads/${NOBODY}`, undefined, { "x-api-key": "wrong" })).status,
};

const card = (s: AgentServer) => s.get(`/.well-known/agent-card.json?assistant_id=${AGENT}`);

const CARDS: Rules = {
  "S the card: its fields": async (s) => keys((await card(s)).body),
  "S the card: name, description, address": async (s) => {
    const { name, description, url } = (await card(s)).body;
    return [name, description, url];
  },
  "S the card: modes of input and output": async (s) => {
    const { defaultInputModes, defaultOutputModes } = (await card(s)).body;
    return [defaultInputModes, defaultOutputModes];
  },
  "S the card: skills": async (s) =>
    (await card(s)).body.skills.map(({ id, name, tags }: Wire) => [id, name, tags]),
  "M the card: versions of A2A": async (s) => {
    const { protocolVersion, supportedInterfaces } = (await card(s)).body;
    return [
      protocolVersion ?? "none",
      supportedInterfaces?.map((one: Wire) => `${one.protocolBinding} ${one.protocolVersion}`) ?? "none",
    ];
  },
  "M the card: capabilities": async (s) => keys((await card(s)).body.capabilities),
  "S the card without `assistant_id`": async (s) => code(await s.get("/.well-known/agent-card.json")),
  "M the card of a graph's name": async (s) =>
    code(await s.get("/.well-known/agent-card.json?assistant_id=agent")),
  "M the card of an unknown assistant": async (s) =>
    code(await s.get(`/.well-known/agent-card.json?assistant_id=${NOBODY}`)),
  "M `GET /a2a/{id}`": async (s) => {
    const { status, body } = await s.get(`/a2a/${AGENT}`);
    return [status, body.name ?? "no card"];
  },
  "M `GET /a2a/{id}/.well-known/agent-card.json`": async (s) => {
    const { status, body } = await s.get(`/a2a/${AGENT}/.well-known/agent-card.json`);
    return [status, body.name ?? "no card"];
  },
  "M `DELETE /a2a/{id}`": async (s) => code(await s.send("DELETE", `/a2a/${AGENT}`)),
  "M the extended card": async (s) => {
    const { body } = await s.rpc("GetExtendedAgentCard", {}, V1);
    return body.result?.name ?? code({ status: 200, body, headers: new Headers() });
  },
};

const SEND: Rules = {
  "S `message/send`: state and reply": async (s) => task(await s.say("hello", {})),
  "S `message/send`: fields of the task": async (s) => keys(await s.say("hello", {})),
  "M `message/send`: history": async (s) => history(await s.say("hello", {})),
  "M `message/send`: form of the task's id": async (s) => {
    const { id, contextId } = await s.say("hello", {});
    return `${id.replace(contextId, "CONTEXT")}`;
  },
  "S the first message without `contextId` gets one": async (s) => (await s.say("hello", {})).contextId,
  "M a thread of a first message without `contextId`, afterwards": async (s) =>
    (await s.get(`/threads/${(await s.say("hello", {})).contextId}`)).status,
  "M the first message with a `contextId` keeps it": async (s) => {
    const contextId = randomUUID();
    return (await s.say("hello", { contextId })).contextId === contextId;
  },
  "S a context is a thread: its messages after two of them": async (s) => {
    const contextId = randomUUID();
    for (const text of ["one", "two"]) await s.result("message/send", message(text, { contextId }));
    return s.messages(contextId);
  },
  "M history after two messages of a context": async (s) => {
    const contextId = randomUUID();
    await s.say("one", { contextId });
    return history(await s.say("two", { contextId }));
  },
  "S a later message with the id of an ended task": async (s) => {
    const contextId = randomUUID();
    const { id } = await s.say("one", { contextId });
    return task(await s.say("two", { contextId, taskId: id }));
  },
  "M a message with the id of an unknown task": async (s) =>
    task(await s.say("x", { contextId: randomUUID(), taskId: NOBODY })),
  "M a message with a `taskId` and no `contextId`": async (s) => {
    const { id } = await s.say("one");
    return task(await s.say("two", { taskId: id }));
  },
  "M a `contextId` that is no UUID": async (s) => task(await s.say("x", { contextId: "c" })),
  "M an assistant by its graph's name, by A2A": async (s) =>
    code(await s.rpc("message/send", message("x"), { assistant: "agent" })),
  "M an unknown assistant, by A2A": async (s) =>
    code(await s.rpc("message/send", message("x"), { assistant: NOBODY })),
  "M no message": async (s) => code(await s.rpc("message/send", {})),
  "M no parameters": async (s) => code(await s.rpc("message/send", undefined)),
  "M a message without parts": async (s) => code(await s.rpc("message/send", message("", { parts: [] }))),
  "M a message without `messageId`": async (s) => task(await s.say("hello", { messageId: undefined })),
  "M a file": async (s) =>
    code(await s.rpc("message/send", message("", { parts: [{ kind: "file", file: { uri: "x" } }] }))),
  "M a part without text": async (s) =>
    code(await s.rpc("message/send", message("", { parts: [{ kind: "text" }] }))),
  "M two texts": async (s) =>
    task(
      await s.result(
        "message/send",
        message("", { parts: ["one", "two"].map((text) => ({ kind: "text", text })) }),
      ),
    ),
  "M a run that fails, by A2A": async (s) => task(await s.say("fail", {})),
  "M a run that asks, by A2A": async (s) => task(await s.say("question")),
  "M an answer with `contextId` and `taskId`": async (s) => {
    const { id, contextId } = await s.say("question");
    return task(await s.say("this", { contextId, taskId: id }));
  },
  "M a run that is cancelled by REST during `message/send`: response, then task": async (s) => {
    const { contextId, run, sent } = await s.task("delay=20000 one");
    await s.post(`/threads/${contextId}/runs/${run}/cancel`);
    const { id } = await sent;
    return [task(await sent), task(await s.result("tasks/get", { id, contextId }))];
  },
  "M `configuration: {blocking: false}`": async (s) =>
    task(await s.result("message/send", { ...message("hello"), configuration: { blocking: false } })),
  "M `SendMessage`: the task is in `task`": async (s) =>
    keys((await s.rpc("SendMessage", message1("hello"), V1)).body.result ?? { error: 1 }),
  "M `SendMessage`: state and reply": async (s) => task(await s.result("SendMessage", message1("hello"), V1)),
  "M `SendMessage` without its header": async (s) => task(await s.result("SendMessage", message1("hello"))),
  "M `SendMessage`: roles of the history": async (s) =>
    history(await s.result("SendMessage", message1("hello"), V1)),
};

const TASKS: Rules = {
  "S `tasks/get`: state, and where the text is": async (s) => {
    const { id, contextId } = await s.say("hello");
    return task(await s.result("tasks/get", { id, contextId }));
  },
  "M `tasks/get`: history": async (s) => {
    const { id, contextId } = await s.say("hello");
    return history(await s.result("tasks/get", { id, contextId }));
  },
  "M `tasks/get` without `contextId`": async (s) => {
    const { id } = await s.say("hello");
    return task(await s.result("tasks/get", { id })).split(";")[0];
  },
  "M `tasks/get` by the run's id alone": async (s) => {
    const { id, contextId } = await s.say("hello");
    return task(await s.result("tasks/get", { id: id.split(":").at(-1), contextId })).split(";")[0];
  },
  "M `tasks/get` of a task under way": async (s) => {
    const { contextId, run } = await s.task("delay=3000 hello");
    const states = [];
    for (const id of [run, `${contextId}:${run}`])
      states.push(task(await s.result("tasks/get", { id, contextId })));
    return states;
  },
  "M `tasks/get` of a task that failed": async (s) => {
    const { id, contextId } = await s.say("fail");
    return task(await s.result("tasks/get", { id, contextId }));
  },
  "M `tasks/get` of a task that asks": async (s) => {
    const { id, contextId } = await s.say("question");
    return task(await s.result("tasks/get", { id, contextId }));
  },
  "M `tasks/get` of a run that was rolled back": async (s) => {
    const { thread, run } = await s.running("delay=20000 one");
    await s.join(thread, (await s.run(thread, "two", { multitask_strategy: "rollback" })).body.run_id);
    const states = [];
    for (const id of [run, `${thread}:${run}`])
      states.push(task(await s.result("tasks/get", { id, contextId: thread })));
    return states;
  },
  "M `tasks/get` of an unknown task": async (s) =>
    code(await s.rpc("tasks/get", { id: NOBODY, contextId: await s.thread() })),
  "M `tasks/get` in an unknown context": async (s) =>
    code(await s.rpc("tasks/get", { id: `${NOBODY}:${NOBODY}`, contextId: NOBODY })),
  "M `tasks/get` without an id": async (s) => code(await s.rpc("tasks/get", {})),
  "M `tasks/get` with `historyLength` 0, 1, 11": async (s) => {
    const { id, contextId } = await s.say("hello");
    const of = async (historyLength: number) =>
      history(await s.result("tasks/get", { id, contextId, historyLength }));
    return [await of(0), await of(1), await of(11)];
  },
  "M `GetTask`: state": async (s) => {
    const { id, contextId } = await s.result(
      "SendMessage",
      message1("hello", { contextId: randomUUID() }),
      V1,
    );
    return task(await s.result("GetTask", { id, contextId }, V1));
  },
  "M `tasks/cancel` of an active task, then its state": async (s) => {
    const { contextId, run } = await s.task("delay=20000 one");
    const id = `${contextId}:${run}`;
    const canceled = task(await s.result("tasks/cancel", { id, contextId }));
    return [canceled, task(await s.result("tasks/get", { id, contextId }))];
  },
  "M `tasks/cancel` of an ended task": async (s) => {
    const { id, contextId } = await s.say("hello");
    return code(await s.rpc("tasks/cancel", { id, contextId }));
  },
  "M `tasks/cancel` of an unknown task": async (s) =>
    code(await s.rpc("tasks/cancel", { id: `${NOBODY}:${NOBODY}` })),
  "M `CancelTask` of an ended task": async (s) => {
    const { id } = await s.result("SendMessage", message1("hello", { contextId: randomUUID() }), V1);
    return code(await s.rpc("CancelTask", { id }, V1));
  },
  "M `ListTasks` of a context": async (s) => {
    const { contextId } = await s.say("hello");
    const { result, error } = (await s.rpc("ListTasks", { contextId }, V1)).body;
    return error ? `error ${error.code}` : [keys(result), result.tasks.map(task)];
  },
  "M `tasks/resubscribe`": async (s) => code(await s.rpc("tasks/resubscribe", { id: NOBODY })),
  "M `tasks/pushNotificationConfig/set`": async (s) =>
    code(await s.rpc("tasks/pushNotificationConfig/set", { id: NOBODY })),
};

const STREAM: Rules = {
  "S `message/stream`: events": async (s) => (await s.events("message/stream", message("hello"))).map(event),
  "M `message/stream`: type, and name of the events": async (s) => {
    const { headers, body } = await s.rpc("message/stream", message("hello"), {
      accept: "text/event-stream",
    });
    return [headers.get("content-type"), [...new Set(eventsOf(body).map((one) => one.event))]];
  },
  "M `message/stream`: the ids are the same in each event": async (s) => {
    const events = await s.events("message/stream", message("hello"));
    return new Set(events.map((one) => `${one.taskId ?? one.id} ${one.contextId}`)).size;
  },
  "M `message/stream` of a run that fails": async (s) =>
    (await s.events("message/stream", message("fail"))).map(event),
  "M `message/stream` of a run that asks": async (s) =>
    (await s.events("message/stream", message("question"))).map(event),
  "M `message/stream` to an unknown assistant": async (s) => {
    const { status, body } = await s.rpc("message/stream", message("x"), {
      assistant: NOBODY,
      accept: "text/event-stream",
    });
    return [
      status,
      (typeof body === "string" ? eventsOf(body).map(({ data }) => data) : [body]).map(
        ({ error }) => `error ${error.code}`,
      ),
    ];
  },
  "M `message/stream` with the id of an ended task": async (s) => {
    const { id, contextId } = await s.say("one");
    const { status, body } = await s.rpc("message/stream", message("two", { contextId, taskId: id }), {
      accept: "text/event-stream",
    });
    return [
      status,
      (typeof body === "string"
        ? eventsOf(body).map(({ data }) => event(data.result ?? data))
        : [code({ status, body, headers: new Headers() })]
      ).at(-1),
    ];
  },
  "M `SendStreamingMessage`: events": async (s) =>
    (await s.events("SendStreamingMessage", message1("hello"))).map(event),
  "M a run that is cancelled by REST during `message/stream`: the last event": async (s) => {
    const contextId = randomUUID();
    const streamed = s.events("message/stream", message("delay=20000 one", { contextId }));
    const runs = `/threads/${contextId}/runs`;
    const newest = async () => ((await s.get(runs)).body as Wire[])?.[0];
    await s.until(async () => (await newest())?.status === "running");
    await s.post(`${runs}/${(await newest()).run_id}/cancel`);
    return event((await streamed).at(-1));
  },
};

const RPC = { jsonrpc: "2.0", id: "7", method: "tasks/get", params: {} };
const envelopes: Readonly<Record<string, unknown>> = {
  "text that is no JSON": "{",
  "no `jsonrpc`": { ...RPC, jsonrpc: undefined },
  "`jsonrpc` 1.0": { ...RPC, jsonrpc: "1.0" },
  "a notification, without `id`": { ...RPC, id: undefined, method: "message/send", params: message("hello") },
  "a response": { jsonrpc: "2.0", id: "7", result: {} },
  "neither method nor id": { jsonrpc: "2.0" },
  "a list of requests": [RPC],
  "an unknown method": { ...RPC, method: "message/shout" },
};
const STREAMED = "text/event-stream";
const ACCEPT = {
  "message/send": ["", "*/*", "application/*", `application/json, ${STREAMED}`, STREAMED],
  "message/stream": ["application/json", "*/*"],
};

const ENVELOPE: Rules = Object.fromEntries([
  ...Object.entries(ACCEPT).flatMap(([method, headers]) =>
    headers.map((accept) => [
      `M \`Accept\` of \`${method}\`: ${accept === "" ? "none" : `\`${accept}\``}`,
      async (s: AgentServer) => code(await s.rpc(method, message("hello"), { accept })),
    ]),
  ),
  ...Object.entries(envelopes).map(([name, body]) => [
    `M an envelope: ${name}`,
    async (s: AgentServer) =>
      code(await s.send("POST", `/a2a/${AGENT}`, body, { accept: "application/json" })),
  ]),
  [
    "S the `id` of the response is the request's, text or number",
    async (s: AgentServer) => {
      const headers = { accept: "application/json" };
      const of = async (id: unknown) => s.send("POST", `/a2a/${AGENT}`, { ...RPC, id }, headers);
      return [JSON.stringify((await of("7")).body.id), JSON.stringify((await of(7)).body.id)];
    },
  ],
]);

const OFF: Rules = {
  "S `http.disable_a2a`: `POST /a2a/{id}`": async (s) => code(await s.rpc("message/send", message("hello"))),
  "S `http.disable_a2a`: the card": async (s) => code(await card(s)),
  "S `http.disable_a2a`: `GET /a2a/{id}`": async (s) => code(await s.get(`/a2a/${AGENT}`)),
};

export const RULES: Readonly<Record<string, Rules>> = {
  Threads: THREADS,
  Runs: RUNS,
  "Assistants and the server": ASSISTANTS,
  "Agent card": CARDS,
  "A2A messages": SEND,
  "A2A tasks": TASKS,
  "A2A streams": STREAM,
  "A2A envelopes": ENVELOPE,
};
/** For a server with `http.disable_a2a`. */
export const RULES_OFF: Readonly<Record<string, Rules>> = { "A2A switched off": OFF };

const AT_ONCE = 8;

export async function measure(
  server: AgentServer,
  rules: Readonly<Record<string, Rules>>,
): Promise<Map<string, string>> {
  const observed = new Map<string, string>();
  const waiting = Object.values(rules).flatMap((some) => Object.entries(some));
  const work = async () => {
    for (let rule = waiting.shift(); rule !== undefined; rule = waiting.shift()) {
      const [name, observe] = rule;
      observed.set(name, normal(await observe(server).catch((error) => `no response: ${error.message}`)));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return observed;
}
