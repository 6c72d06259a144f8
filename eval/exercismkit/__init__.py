"""The parts of eval/exercism: the exercises, the server with its counter, the contenders, the results."""
