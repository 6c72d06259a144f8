"""A hierarchy of five layers: one agent leads four others, each with its own model, tools and limit of steps.

usage: python five_layers.py QUESTION [MODEL] [SMALL_MODEL]
"""

from __future__ import annotations

import sys
from pathlib import Path

from gimlet import Agent, Ask, mcp, tool

REVISIONS: list[str] = []


@tool
def revise_model(text: str) -> str:
    """Change what is believed.

    Args:
        text: the new belief
    """
    REVISIONS.append(text)
    return f"revision {len(REVISIONS)}"


@tool(reads_only=True)
def reflect(on: str) -> dict[str, object]:
    """Look back on an idea.

    Args:
        on: the idea
    """
    return {"words": len(on.split()), "revisions": len(REVISIONS)}


def allowed(ask: Ask) -> bool | str:
    """Memories may be recalled and kept; beliefs may change once."""
    if ask.tool == "revise_model" and REVISIONS:
        return "Beliefs change once a run."
    return ask.tool in {"semantic_recall", "create_memory", "get_state", "revise_model"}


def hierarchy(model: str | None = None, small: str | None = None) -> Agent:
    server = Path(__file__).with_name("memory_server.py")
    memory = mcp.stdio("python", str(server), name="memory", required=["semantic_recall", "create_memory", "get_state"])
    recall = "memory__semantic_recall"
    layers = [
        Agent(small or model, name="perceptual", description="Recalls facts, fast.", action="tools", max_steps=3, tools=[memory]),
        Agent(model, name="conceptual", description="Makes one idea of several facts.", max_steps=5, tools=[recall]),
        Agent(model, name="abstract", description="Finds the rule behind ideas.", max_steps=7, tools=[recall, reflect]),
        Agent(model, name="metacognitive", description="Judges ideas and revises beliefs.", max_steps=7, tools=[reflect, revise_model, recall]),
    ]
    return Agent(model, name="consciousness", max_steps=10, step_budget=40, tools=["memory__create_memory"], managed_agents=layers,
                 approve=allowed, checks=[lambda answer, run: bool(answer.strip()) or "answer in a sentence"])


if __name__ == "__main__":
    stream = hierarchy(*sys.argv[2:4]).stream(sys.argv[1])
    for event in stream:
        if event.type in ("agent.started", "tool.requested", "agent.finished"):
            print(f"{event.path or 'consciousness':40} {event.type} {event.get('tool', '')}", file=sys.stderr)
    print(stream.result)
