"""What a failed tool raises, in this interpreter and in a container's."""


class ToolError(Exception):
    """A tool did not do its job. Catch it to go on without."""

    def __init__(self, failure):
        if not isinstance(failure, dict):
            failure = {"error": "TOOL_EXCEPTION", "message": str(failure)}
        self.error = failure.get("error", "")
        self.message = failure.get("message", "")
        self.tool = failure.get("tool", "")
        self.context = failure.get("context", {})
        self.recovery_suggestion = failure.get("recovery_suggestion")
        self.advice = failure.get("advice")
        super().__init__(self.message)

    def __str__(self):
        text = f"{self.error}: {self.message}" if self.error else self.message
        if self.recovery_suggestion:
            call = self.recovery_suggestion.get("tool_call", {})
            arguments = ", ".join(f"{name}={value!r}" for name, value in call.get("arguments", {}).items())
            text += f"\nsuggestion: {call.get('name', '')}({arguments})  # {self.recovery_suggestion.get('rationale', '')}"
        if self.advice:
            text += f"\n{self.advice}"
        return text
