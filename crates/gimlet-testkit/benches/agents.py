"""The same agents with smolagents, a thread for each. Prints its name and how it went as the last line."""

import json
import sys
import threading
import time

import smolagents
from smolagents import ChatMessage, MessageRole, Model, Tool, ToolCallingAgent
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction
from smolagents.monitoring import LogLevel

AGENTS, CALLS, THINKING = (int(word) for word in sys.argv[1:4])


class LookUp(Tool):
    name = "look_up"
    description = "Look a number up."
    inputs = {"number": {"type": "integer", "description": "Which."}}
    output_type = "integer"

    def forward(self, number: int) -> int:
        return number * 3


class Adder(Model):
    """Looks up one number after the other, beginning with that of its task, and answers with the sum."""

    def generate(self, messages, stop_sequences=None, response_format=None, tools_to_call_from=None, **kwargs):
        time.sleep(THINKING / 1000)
        texts = ["".join(part.get("text", "") for part in message.content) for message in messages]
        own = next(int(text.rsplit(" ", 1)[1]) for text in texts if "begin with " in text)
        found = [int(text.split("Observation:")[1].strip()) for text in texts if text.startswith("Observation:")]
        if len(found) < CALLS:
            function = ChatMessageToolCallFunction(name="look_up", arguments={"number": own + len(found)})
        else:
            function = ChatMessageToolCallFunction(name="final_answer", arguments={"answer": str(sum(found))})
        call = ChatMessageToolCall(id=f"call_{len(found)}", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


def one(own):
    agent = ToolCallingAgent(tools=[LookUp()], model=Adder(), verbosity_level=LogLevel.OFF, max_steps=CALLS + 2)
    answer = agent.run(f"begin with {own}")
    return str(answer) == str(sum((own + step) * 3 for step in range(CALLS)))


def memory(line):
    with open("/proc/self/status") as status:
        return next(int(of.split()[1]) for of in status if of.startswith(line))


assert one(1), "the workload is wrong"
before = memory("VmRSS:")
right = [False] * AGENTS


def work(own):
    right[own] = one(own)


threads = [threading.Thread(target=work, args=(own,)) for own in range(AGENTS)]
begun = time.perf_counter()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
went = {
    "right": sum(right),
    "seconds": time.perf_counter() - begun,
    "before": before,
    "peak": memory("VmHWM:"),
}
print(f"smolagents {smolagents.__version__}\t{json.dumps(went)}")
