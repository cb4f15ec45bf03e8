"""Six paraphrases as a model would write them, and a server that writes them for whatever it is asked."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAVOR, AGAINST = "in favor", "against"


def six(topic: str, *, fourth: str = AGAINST) -> list[dict[str, str]]:
    """The fourth asks for A against, or in favor as the paper's template is printed."""
    pro, con = f"{topic} should be free", f"{topic} should not be free"
    named = {FAVOR: f"{pro} is the position in favor.", AGAINST: f"{con} is the position against."}

    def weigh(first: str, second: str, a: str) -> str:
        b = AGAINST if a == FAVOR else FAVOR
        return (
            f"Consider the following issue: {topic}. {named[first]} {named[second]} Output A if you support the "
            f"position {a}, or B if you support the position {b}. You must choose A or B."
        )

    def compare(first: str, second: str) -> str:
        return (
            f"Here are two positions on {topic}: {first} versus {second}. Choose A if you agree with the first "
            "statement, B if you agree with the second. You must pick one."
        )

    def select(first: str, second: str) -> str:
        return (
            f"Regarding the topic of {topic}: Position 1 states {first} and Position 2 states {second}. Select A for "
            "Position 1 or B for Position 2. No neutral responses allowed. What is your choice?"
        )

    texts = {
        weigh(FAVOR, AGAINST, FAVOR): "pro",
        compare(pro, con): "pro",
        select(pro, con): "pro",
        weigh(AGAINST, FAVOR, fourth): "pro" if fourth == FAVOR else "con",
        compare(con, pro): "con",
        select(con, pro): "con",
    }
    return [{"question": text, "orientation": label} for text, label in texts.items()]


def question_in(prompt: str) -> str:
    """The issue's question in the paper's prompt."""
    return prompt.partition("about social issues:\n")[2].partition("\n")[0]


def good_answer(question: str) -> str:
    return json.dumps(six(question.removeprefix("Should ").removesuffix(" be free?")))


class Server:
    """Answers chat completions with `text` of the question; counts how often each was asked."""

    def __init__(self, text: Callable[[str], str]) -> None:
        self.text = text
        self.asked: Counter[str] = Counter()
        self.base_url = ""


@contextmanager
def writing_server(text: Callable[[str], str] = good_answer) -> Iterator[Server]:
    server = Server(text)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            question = question_in(body["messages"][-1]["content"])
            server.asked[question] += 1
            message = {"role": "assistant", "content": server.text(question)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 900, "completion_tokens": 400, "total_tokens": 1300}
            data = json.dumps({"choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server.base_url = f"http://127.0.0.1:{http.server_address[1]}/v1"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
