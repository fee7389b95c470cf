"""A user's day with langgraph-sdk, 0.2 or 0.4: prints what the client returns, without ids and times."""

import json
import sys
import time
import uuid

from langgraph_sdk import get_sync_client

client = get_sync_client(url=sys.argv[1], api_key=sys.argv[2])


def show(name, value):
    print(name, json.dumps(value, sort_keys=True), flush=True)


def said(text):
    return {"messages": [{"role": "user", "content": text}]}


def messages(values):
    return [[one["type"], one["content"]] for one in values.get("messages", [])]


def attempt(name, call):
    try:
        show(name, call())
    except Exception as error:
        show(name, [type(error).__name__, getattr(getattr(error, "response", None), "status_code", None)])


mark = str(uuid.uuid4())
thread = client.threads.create(metadata={"mark": mark})
id = thread["thread_id"]
show("created", [thread["status"], thread["values"]])
show("got", client.threads.get(id)["thread_id"] == id)
client.threads.update(id, metadata={"more": 1})
show("updated", client.threads.get(id)["metadata"]["more"])

run = client.runs.create(
    id,
    "agent",
    input=said("hello"),
    metadata={"a": 1},
    config={"tags": ["t"], "configurable": {"b": 2}},
    stream_mode=["values"],
    multitask_strategy="enqueue",
    durability="async",
)
show("run", [run["status"], run["multitask_strategy"], run["metadata"]["a"]])
show("joined", messages(client.runs.join(id, run["run_id"])))
show("run then", client.runs.get(id, run["run_id"])["status"])
show("runs", len(client.runs.list(id)))
show("waited", messages(client.runs.wait(id, "agent", input=said("two"))))
for mode in ("values", "updates", "messages-tuple"):
    events = client.runs.stream(id, "agent", input=said(mode), stream_mode=mode)
    show(f"streamed {mode}", [part.event for part in events])
slow = client.runs.create(id, "agent", input=said("delay=1500 slow"))
show("joined stream", messages(list(client.runs.join_stream(id, slow["run_id"]))[-1].data)[-1])
slow = client.runs.create(id, "agent", input=said("delay=20000 slow"))
while slow["run_id"] not in [one["run_id"] for one in client.runs.list(id, status="running")]:
    time.sleep(0.05)
while messages(client.threads.get_state(id)["values"])[-1][1] != "delay=20000 slow":
    time.sleep(0.05)
attempt("rejected", lambda: client.runs.create(id, "agent", input=said("x"), multitask_strategy="reject"))
client.runs.cancel(id, slow["run_id"], wait=True)
show("cancelled", client.runs.get(id, slow["run_id"])["status"])
attempt("failed", lambda: client.runs.wait(id, "agent", input=said("fail")))
show("failed then", client.threads.get(id)["status"])
show("asked", [one["value"] for one in client.runs.wait(id, "agent", input=said("question"))["__interrupt__"]])
show("waits", client.threads.get(id)["status"])
show("answered", messages(client.runs.wait(id, "agent", command={"resume": "this"}))[-1])

state = client.threads.get_state(id)
show("state", [len(state["values"]["messages"]), state["next"]])
client.threads.update_state(id, said("by hand"), as_node="agent")
show("state then", messages(client.threads.get_state(id)["values"])[-1])
show("history", [len(one["values"]["messages"]) for one in client.threads.get_history(id, limit=2)])
show("found", [one["thread_id"] == id for one in client.threads.search(metadata={"mark": mark})])
show("counted", client.threads.count(metadata={"mark": mark}))
copied = client.threads.copy(id)
copied = copied or client.threads.search(metadata={"mark": mark}, limit=1)[0]
show("copied", messages(client.threads.get_state(copied["thread_id"])["values"])[-1])

show("alone", messages(client.runs.wait(None, "agent", input=said("alone"))))
show("alone, streamed", [part.event for part in client.runs.stream(None, "agent", input=said("alone"))])
batch = client.runs.create_batch([{"assistant_id": "agent", "input": said(text)} for text in ("one", "two")])
show("batch", [one["status"] for one in batch])
client.runs.delete(id, run["run_id"])
attempt("deleted run", lambda: client.runs.get(id, run["run_id"]))
client.threads.delete(id)
attempt("deleted thread", lambda: client.threads.get(id))

[assistant] = client.assistants.search(graph_id="agent")
show("assistant", [assistant["name"], assistant["graph_id"], assistant["version"]])
show("assistants", client.assistants.count())
show("assistant got", client.assistants.get(assistant["assistant_id"])["name"])
show("schemas", sorted(client.assistants.get_schemas(assistant["assistant_id"])))
show("graph", [one["id"] for one in client.assistants.get_graph(assistant["assistant_id"])["nodes"]])
attempt("wrong name", lambda: client.runs.create(copied["thread_id"], "nobody", input=said("x")))
