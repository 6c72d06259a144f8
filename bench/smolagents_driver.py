"""A task given to an agent of smolagents, as its documentation writes it; run by a Python that has smolagents.

usage: smolagents_driver.py tools|code ADDRESS STEPS RUNS TASK

With more than one run, each has a thread of its own in this one process.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from smolagents import CodeAgent, OpenAIServerModel, ToolCallingAgent, tool


@tool
def read_file(path: str) -> str:
    """Read a text file.

    Args:
        path: File path relative to the project root.
    """
    with open(path) as file:
        return file.read()


def answer(kind, address, steps, task):
    model = OpenAIServerModel(model_id="scripted", api_base=address, api_key="none")
    if kind == "code":
        agent = CodeAgent(tools=[read_file], model=model, max_steps=steps, verbosity_level=0)
    else:
        agent = ToolCallingAgent(tools=[read_file], model=model, max_steps=steps, verbosity_level=0)
    return agent.run(task)


kind, address, steps, runs, task = sys.argv[1:]
with ThreadPoolExecutor(int(runs)) as threads:
    for result in threads.map(lambda _: answer(kind, address, int(steps), task), range(int(runs))):
        print(result)
