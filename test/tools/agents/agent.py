"""An agent without a model: it echoes. `delay=MS`, `fail` and `question` in a text make it slow, fail or ask."""

import asyncio
import re
from typing import Annotated

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict):
    messages: Annotated[list, add_messages]


async def agent(state: State):
    content = state["messages"][-1].content if state["messages"] else ""
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    delay = re.search(r"\bdelay=(\d+)\b", text)
    await asyncio.sleep(int(delay.group(1)) / 1000 if delay else 0)
    if re.search(r"\bfail\b", text, re.I):
        raise ValueError("The input asks for a failure")
    if re.search(r"\bquestion\b", text, re.I):
        return {"messages": [AIMessage(f"Answer: {interrupt('Which one?')}")]}
    return {"messages": [AIMessage(f"Echo: {text}")]}


graph = StateGraph(State).add_node("agent", agent).add_edge(START, "agent").add_edge("agent", END).compile()
