import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";

/**
 * Each rule of measured.md is a request, or some, and a short text of what the server responds. The page has the texts of
 * the real servers. Rules run beside each other, each on a thread of its own.
 */

type Rules = Readonly<Record<string, (server: AgentServer) => Promise<unknown>>>;

const AGENT = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";
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
    return body.result ?? body;
  }

  say = (text: string, more: object = { contextId: randomUUID() }): Promise<Wire> =>
    this.result("message/send", message(text, more));

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

function normal(observed: unknown): string {
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
  "M a body that is no JSON": async (s) => code(await s.send("POST", "/threads", "{")),
  "S the state of a new thread": async (s) => {
    const { values, next } = (await s.get(`/threads/${await s.thread()}/state`)).body;
    return [values, next];
  },
  "S the state after a run: type and content of each message": async (s) =>
    s.messages((await s.ended("hello")).thread),
  "M the state of an unknown thread": async (s) => code(await s.get(`/threads/${NOBODY}/state`)),
  "M the state while a run is active: messages, next": async (s) => {
    const { thread } = await s.running("delay=3000 hello");
    await s.until(async () => (await s.messages(thread)).length > 0);
    return [await s.messages(thread), (await s.get(`/threads/${thread}/state`)).body.next];
  },
};

const RUNS: Rules = {
  "S a new run: status and its fields": async (s) => {
    const { status, body } = await s.run(await s.thread(), "hello");
    return [status, body.status, keys(body)];
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
  "M a run on an unknown thread": async (s) => code(await s.run(NOBODY, "hello")),
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
  "M the list of runs: newest first, limit": async (s) => {
    const first = await s.ended("one");
    const second = await s.ended("two", first.thread);
    const list = async (query: string) =>
      (await s.get(`/threads/${first.thread}/runs${query}`)).body.map((one: Wire) =>
        [first.run, second.run].indexOf(one.run_id),
      );
    return [await list(""), await list("?limit=1"), await list("?limit=1&offset=1")];
  },
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
  "M a new message in place of an answer": async (s) =>
    s.messages((await s.ended("two", (await s.ended("question")).thread)).thread),
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
  "M an unknown path": async (s) => code(await s.get("/nowhere")),
  "M no key": async (s) => (await fetch(`${s.url}/threads/${NOBODY}/state`)).status,
  "M a wrong key": async (s) =>
    (await s.send("GET", `/threads/${NOBODY}/state`, undefined, { "x-api-key": "wrong" })).status,
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
  "M a run that fails, by A2A": async (s) => task(await s.say("fail", {})),
  "M a run that asks, by A2A": async (s) => task(await s.say("question")),
  "M an answer with `contextId` and `taskId`": async (s) => {
    const { id, contextId } = await s.say("question");
    return task(await s.say("this", { contextId, taskId: id }));
  },
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
};

const RPC = { jsonrpc: "2.0", id: "7", method: "tasks/get", params: {} };

const ENVELOPE: Rules = {
  "M an envelope: an unknown method": async (s) => {
    const body = { ...RPC, method: "message/shout" };
    return code(await s.send("POST", `/a2a/${AGENT}`, body, { accept: "application/json" }));
  },
  "S the `id` of the response is the request's, text or number": async (s) => {
    const headers = { accept: "application/json" };
    const of = async (id: unknown) => s.send("POST", `/a2a/${AGENT}`, { ...RPC, id }, headers);
    return [JSON.stringify((await of("7")).body.id), JSON.stringify((await of(7)).body.id)];
  },
};

const OFF: Rules = {
  "S `http.disable_a2a`: `POST /a2a/{id}`": async (s) => code(await s.rpc("message/send", message("hello"))),
  "S `http.disable_a2a`: the card": async (s) => code(await card(s)),
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
